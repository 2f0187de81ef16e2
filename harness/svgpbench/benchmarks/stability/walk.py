"""A walk: natural-gradient steps of one library on one problem, until the last step or until q dies.

    PYTHON walk.py WALKER_FILE

The Python is that of the library; this file imports NumPy alone and a walker nothing of svgpbench, but
for our own. A request comes as a line on stdin; answers leave as lines on stdout: how far the walk is,
then how it ended. The judge is one for all libraries: a step kills that raises or leaves a q that is
not finite, a look at the bound that finds none, or an absurd one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[Any]
ABSURD = 10.0
"""A bound is absurd that lies this many times as far below 0 as at the start, where q is the prior; at the
end one is that lies below the start's at all."""


class Walker(Protocol):
    """A model with its q, at θ that stands still."""

    def step(self, k: int) -> None:
        """One natural-gradient step on the rows of minibatch `k`, from 0."""

    def bound(self) -> float:
        """The library's own bound for all data, from the checked rows."""

    def state(self) -> Any:
        """Q as the library keeps it: arrays that no step changes in place."""

    def restore(self, state: Any) -> None:
        """Put q back."""

    def variances(self, k: int) -> Floats:
        """Variances of q(f) at minibatch `k`, as the library computes them."""


Say: TypeAlias = Callable[[dict[str, Any]], None]


def main() -> None:
    """Serve one request."""
    parent = int(sys.argv[sys.argv.index("--parent") + 1])
    request = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints goes to stderr

    def say(message: dict[str, Any]) -> None:
        if os.getppid() != parent:
            os._exit(1)  # nobody listens any more
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    module = load(sys.argv[1])
    with np.load(request["arrays"], allow_pickle=False) as file:
        arrays = dict(file)
    try:
        say({"step": 0, "n": len(arrays["y"]), "versions": module.versions()})
        walker: Walker = module.build(arrays, request)
    except Exception as error:
        say({"died": 0, "of": "error", "message": one_line(error)})
        return
    say(walk(walker, request["steps"], request["check_every"], say))


def load(path: str) -> Any:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location("walker", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def one_line(error: Exception) -> str:
    """An exception's type, and the line of it that says what happened.

    TensorFlow's first line ends in a colon, and a traceback lies between it and the last.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    said = [line for line in lines if not line.startswith("[[")]
    line = said[-1] if lines[0].endswith(":") and said else lines[0]
    return f"{type(error).__name__}: {line}"[:200]


def walk(walker: Walker, steps: int, check_every: int, say: Say) -> dict[str, Any]:
    """How a walk ends: `lived`, or `died` at which step (from 1), `of` what; with bounds on the way."""
    bounds: list[float] = []
    before, k = walker.state(), 0

    def end(how: dict[str, Any]) -> dict[str, Any]:
        return {**how, "bounds": bounds}

    try:
        if not np.isfinite(start := walker.bound()):
            return end({"died": 0, "of": "start"})
        bounds.append(start)
        for k in range(1, steps + 1):
            before = walker.state()
            walker.step(k - 1)
            if not finite(walker.state()):
                return end({"died": k, "of": "q", **autopsy(walker, before, k - 1)})
            if k % check_every == 0 or k == steps:
                bound = walker.bound()
                if not np.isfinite(bound):
                    return end({"died": k, "of": "bound", **autopsy(walker, before, k - 1)})
                bounds.append(bound)
                if bound < -ABSURD * abs(bounds[0]):
                    return end({"died": k, "of": "diverged"})
                say({"step": k})
    except Exception as error:
        words = {"message": one_line(error)}
        return end({"died": k, "of": "error", **words, **autopsy(walker, before, max(k, 1) - 1)})
    return end({"died": k, "of": "diverged"} if bounds[-1] < bounds[0] else {"lived": steps})


def finite(state: Any) -> bool:
    """Whether all numbers of a state are."""
    return all(bool(np.all(np.isfinite(np.asarray(x)))) for x in state)


def autopsy(walker: Walker, before: Any, k: int) -> dict[str, Any]:
    """The smallest variance of q(f) at the minibatch that killed, at the state before it."""
    try:
        walker.restore(before)
        return {"smallest_variance": float(np.min(walker.variances(k)))}
    except Exception:  # a state that the library cannot even look at: its death says enough
        return {}


if __name__ == "__main__":
    main()
