"""One run: natural-gradient steps of one library on one problem, until the last step or a failure.

It runs in the process of `benchmarks/timing/peers/serve.py`, and so needs only NumPy. Answers are the
progress, then how the run ended. The criteria are the same for all libraries. A run fails if a step raises or
gives a non-finite q, or if a checked bound is not finite or implausible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from svgpbench.runs.parent_process import error_line

Floats: TypeAlias = npt.NDArray[Any]
DIVERGENCE_FACTOR = 10.0
"""A run has diverged if a bound is below −DIVERGENCE_FACTOR · |first bound|, where the first bound is that of
q = p, or if the last bound is below the first one."""


class Walker(Protocol):
    """Model with its q, at a fixed θ."""

    def step(self, k: int) -> None:
        """Take one natural-gradient step on the rows of minibatch `k`, from 0."""

    def bound(self) -> float:
        """Return the library's own bound for all data, from the checked rows."""

    def state(self) -> Any:
        """Return q in the library's form, as arrays that no step changes in place."""

    def restore(self, state: Any) -> None:
        """Set q to a state that `state` returned."""

    def variances(self, k: int) -> Floats:
        """Return the variances of q(f) at minibatch `k`, as the library computes them."""


Say: TypeAlias = Callable[[dict[str, Any]], None]


def start_and_walk(
    script: Any, arrays: dict[str, Any], request: dict[str, Any], say: Say
) -> dict[str, Any]:
    """Say that the run begins, build the script's walker, and return the answer of `walk`."""
    # before the model is built: if that kills the process, its record still has n
    say({"step": 0, "n": len(arrays["y"])})
    problem = arrays | {
        "n": len(arrays["y"]),
        "Z": arrays["Z"][: request["inducing"]],
        "jitter": request["jitter"],
    }
    try:
        walker: Walker = script.natural_gradient_run(problem, request)
    except Exception as error:
        return {"died": 0, "of": "error", "message": error_line(error)}
    return walk(walker, request["steps"], request["check_every"], say)


def walk(walker: Walker, steps: int, check_every: int, say: Say) -> dict[str, Any]:
    """Take the steps and return how the run ended, with the bounds at the start and at each check.

    The answer has `lived`, the number of steps, or `died`, the failing step from 1, and its cause `of`.
    """
    bounds: list[float] = []
    before, k = walker.state(), 0

    def end(how: dict[str, Any]) -> dict[str, Any]:
        return {**how, "bounds": bounds}

    try:
        # at q = p the covariance is the prior's: only K(Z, Z) can have failed
        if not np.isfinite(start := walker.bound()):
            return end({"died": 0, "of": "start"})
        bounds.append(start)
        for k in range(1, steps + 1):
            # kept for the autopsy: after a failed step the library may hold no q at all
            before = walker.state()
            walker.step(k - 1)
            # checked after every step, not only where the bound is: libraries go on with NaN for a while
            if not finite(walker.state()):
                return end({"died": k, "of": "q", **autopsy(walker, before, k - 1)})
            if k % check_every == 0 or k == steps:
                bound = walker.bound()
                if not np.isfinite(bound):
                    return end({"died": k, "of": "bound", **autopsy(walker, before, k - 1)})
                bounds.append(bound)
                if bound < -DIVERGENCE_FACTOR * abs(bounds[0]):
                    return end({"died": k, "of": "diverged"})
                say({"step": k})
    except Exception as error:
        words = {"message": error_line(error)}
        return end({"died": k, "of": "error", **words, **autopsy(walker, before, max(k, 1) - 1)})
    return end({"died": k, "of": "diverged"} if bounds[-1] < bounds[0] else {"lived": steps})


def finite(state: Any) -> bool:
    """Return True if all numbers of a state are finite."""
    return all(bool(np.all(np.isfinite(np.asarray(x)))) for x in state)


def autopsy(walker: Walker, before: Any, k: int) -> dict[str, Any]:
    """Return the smallest variance of q(f) at the failing minibatch, with q as before the step.

    The answer is empty if the library cannot compute it.
    """
    try:
        walker.restore(before)
        return {"smallest_variance": float(np.min(walker.variances(k)))}
    except Exception:  # the library cannot evaluate this state
        return {}
