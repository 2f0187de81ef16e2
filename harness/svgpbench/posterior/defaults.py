"""What a fit does where its caller leaves the choice to it: the method, the training, the number of points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from svgpbench.config import NEW_MODEL_DEFAULTS

AUTO: Final = "auto"
"""The method that `fit` chooses by the likelihood and the number of rows."""

LIMIT: Final = 100
"""Most EM iterations of a fit. Of the fits in docs/default-fits.md most settle after 20 to 40."""

MOST_WORK: Final = 5e7
"""Largest n·M² at which a Gaussian fit takes all rows in every step: about two minutes on one core."""

MINIBATCHES: Final[Mapping[str, Any]] = {
    "batch_size": 1000,
    "e_steps": 4,
    "e_rate": {"start": 0.5, "decay": 0.5},
    "m_rate": 0.05,
}
"""Training of larger Gaussian fits, whose rate has to fall for the bound to settle."""

Fitted = Literal["collapsed", "first order", "natural gradients"]


def auto_method(gaussian: bool, training: Mapping[str, Any], rows: int, inducing: int) -> str:
    """Return the method for a likelihood: SGPR for Gaussian noise if the rows allow it, else t-SVGP.

    SGPR takes all rows in every step. So a training that says otherwise, or that moves θ by other steps than
    full-batch ones, has t-SVGP.
    """
    full_batch = "batch_size" not in training and training.get("kind", "em") == "em"
    return "sgpr" if gaussian and full_batch and not is_large(rows, inducing) else "t-svgp"


def is_large(rows: int, inducing: int) -> bool:
    """Return True if a step on all rows takes too long."""
    return rows * inducing**2 > MOST_WORK


def training_of(
    given: Mapping[str, Any], kind: Fitted, dtype: str, *, large: bool = False
) -> dict[str, Any]:
    """Return the `[training]` table of a fit: the keys that the caller gives, and defaults for others.

    Args:
        given: the caller's keys, which stay.
        kind: how the method's E-step moves q.
        dtype: of the backend; L-BFGS needs float64.
        large: whether the fit is to take minibatches.
    """
    usual: dict[str, Any] = dict(NEW_MODEL_DEFAULTS["training"])
    if given.get("kind", "em") != "em":
        return usual | dict(given)
    usual |= {"until": "settled", "em_iterations": LIMIT}
    steps = {"optimiser", "m_rate", "batch_size", "joint"} & given.keys()
    if large and not steps:
        usual |= MINIBATCHES
    elif not steps and dtype == "float64":
        usual["optimiser"] = "l-bfgs"
    if kind == "natural gradients" and not given.get("joint"):
        usual.setdefault("e_steps", 4)
    return usual | dict(given)
