"""What does not go together: a method, a likelihood and the way of training."""

from __future__ import annotations

from svgpbench.config import TrainingConfig
from svgpbench.errors import UserError
from svgpbench.likelihoods import Likelihood
from svgpbench.methods.method import Method


def refuse_misfits(
    method: Method, likelihood: Likelihood, settings: TrainingConfig, dtype: str
) -> None:
    """Raise `UserError` for a combination that cannot run."""
    if reason := method.refuses(likelihood):
        raise UserError(
            f"method {method.name!r} cannot take likelihood {likelihood.name!r}: {reason}"
        )
    if settings.batch_size is not None and method.collapsed:
        raise UserError(
            f"method {method.name!r} takes all data in every step; remove training.batch_size"
        )
    if settings.optimiser != "l-bfgs":
        return
    if settings.batch_size is not None:
        raise UserError(
            "training.optimiser 'l-bfgs' takes all data in every step; "
            "remove training.batch_size or use 'adam'"
        )
    if dtype != "float64":
        raise UserError(
            f"training.optimiser 'l-bfgs' runs in float64, not {dtype}; use 'adam' or float64"
        )
