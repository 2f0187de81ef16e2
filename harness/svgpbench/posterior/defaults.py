"""The method and the training of a fit whose caller leaves the choice to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from svgpbench.config import NEW_MODEL_DEFAULTS
from svgpbench.methods import AnyMethod

AUTO: Final = "auto"
"""The method that `fit` chooses by the likelihood and the number of rows."""

LIMIT: Final = 100
"""Most EM iterations of a fit; most settle after 20 to 40."""

MOST_WORK: Final = 5e7
"""Largest n·M² at which a Gaussian fit takes all rows in every step.

A fit of 20,000 rows of kin40k took 105 s of one core."""

FEW_ROWS: Final = 1000
"""Most rows that always train as one batch."""

MINIBATCHES: Final[Mapping[str, Any]] = {
    "batch_size": 256,
    "e_steps": 1,
    "m_steps": 1,
    "e_rate": 0.1,
    "m_rate": 0.03,
    "cool_down": 1 / 3,
    "em_iterations": 5000,
    "evaluation": {"count": 40},
    # the bound rises until the rates have cooled down, and a guard needs the bound of all rows
    "until": "limit",
    "steps": "full",
}
"""Training on minibatches: the protocol of the board, at its default rates of t-SVGP."""


def auto_method(gaussian: bool, training: Mapping[str, Any], rows: int, inducing: int) -> str:
    """Return the method for a likelihood: SGPR for Gaussian noise if the rows allow it, else t-SVGP.

    SGPR takes all rows in every step. So a training that says otherwise, or that moves θ by other steps than
    full-batch ones, has t-SVGP.
    """
    full_batch = "batch_size" not in training and training.get("kind", "em") == "em"
    return (
        "sgpr" if gaussian and full_batch and not is_large(training, rows, inducing) else "t-svgp"
    )


def is_large(training: Mapping[str, Any], rows: int, inducing: int) -> bool:
    """Return True if a step on all rows takes too long, and a minibatch has fewer rows.

    It is False if the caller's training names L-BFGS, which takes all rows.
    """
    if training.get("optimiser") == "l-bfgs":
        return False
    return rows > FEW_ROWS and rows * inducing**2 > MOST_WORK


def training_of(
    given: Mapping[str, Any], method: AnyMethod, dtype: str, *, large: bool = False
) -> dict[str, Any]:
    """Return the `[training]` table of a fit: the keys that the caller gives, and defaults for others.

    Args:
        given: the caller's keys, which stay.
        method: the method of the fit.
        dtype: of the backend; L-BFGS needs float64.
        large: whether the fit is to take minibatches.
    """
    usual: dict[str, Any] = dict(NEW_MODEL_DEFAULTS["training"])
    if given.get("kind", "em") != "em":
        return usual | dict(given)
    usual |= {"until": "settled", "em_iterations": LIMIT}
    # L-BFGS has no rate and runs in float64 alone; who gives a rate wants Adam
    if method.collapsed and "m_rate" not in given and dtype == "float64":
        usual["optimiser"] = "l-bfgs"
    if not (method.collapsed or method.first_order):
        usual["e_steps"] = 4
    # these rates are of natural gradients; a first-order method keeps those of Adam
    if large or ("batch_size" in given and not method.first_order):
        usual |= MINIBATCHES
        if "trace_every" in given:
            del usual["evaluation"]
    return usual | dict(given)
