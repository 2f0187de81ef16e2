"""The base of likelihoods with several classes: one latent function per class, labels 0 … C−1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from svgpbench.errors import UserError
from svgpbench.likelihoods.likelihood import Likelihood, PerDatum, PerLatent, Support
from svgpbench.ops import Array, Ops, Tree


@dataclass(frozen=True)
class MulticlassLikelihood(Likelihood):
    """A likelihood P(y | f_1 … f_C) with one latent per class; `classes` 0 means: not yet read from data."""

    classes: Annotated[int, Field(ge=2)] = 0
    task: ClassVar[Literal["regression", "classification"]] = "classification"
    support: ClassVar[Support] = "classes"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes < 0 or self.classes == 1:
            raise UserError(
                f"likelihood {self.name!r} needs at least 2 classes, not {self.classes}"
            )

    @property
    def latents(self) -> int:
        return self.classes

    def latent_mean(self, ops: Ops, p: Tree, y: PerDatum) -> Float[Array, "P"]:
        """Return the logarithms of the class frequencies, less their mean.

        A class without rows counts half a row.
        """
        rows = np.sum(self.one_hot(ops, y), axis=-1)
        log_rows = np.log(np.maximum(rows, 0.5))
        return np.asarray(log_rows - np.mean(log_rows))

    def one_hot(self, ops: Ops, y: PerDatum) -> PerLatent:
        """Return 1 at the label's class, else 0, from labels y."""
        labels = ops.asarray(np.arange(self.classes, dtype=np.float64))[:, None]
        zero = ops.zeros((self.classes, y.shape[0]))
        return ops.where(ops.abs(y - labels) < 0.5, zero + 1.0, zero)
