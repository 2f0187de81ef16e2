"""Checkpoint files, from which a long run can be resumed.

A resumed run gives the same bits as an uninterrupted one. The file holds all digits, the states of the
random streams, and the evaluations of an L-BFGS ascent, whose memory SciPy does not expose.
"""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench.atomic import write_whole
from svgpbench.npz import DAMAGED
from svgpbench.ops import Ops
from svgpbench.training.state import TrainState

EVERY_S = 60.0
"""Least seconds between two writes; an interrupted run loses at most this time plus one iteration."""


class Checkpoint:
    """The checkpoint file of one run, written atomically; only a run with the same `key` resumes from it."""

    def __init__(self, path: Path | None, key: str = "", every_s: float = EVERY_S) -> None:
        self.path, self.key, self.every_s = path, key, every_s
        self.ignored_reason = ""  # the reason why an existing file was not used
        self._written = time.monotonic()

    def save(self, ops: Ops, state: TrainState) -> None:
        """Write the state if the last write is at least `every_s` seconds ago.

        Raises `UserError` if the file cannot be written.
        """
        if self.path is None or time.monotonic() - self._written < self.every_s:
            return
        write_whole(self.path, _packed(ops, self.key, state))
        self._written = time.monotonic()

    def read(self, ops: Ops, like: TrainState) -> TrainState | None:
        """Return the saved state, structured like `like`; None if there is no valid file with this key."""
        if self.path is None or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                head = json.loads(file["head"].tobytes())
                arrays = [file[f"a{i}"] for i in range(head["arrays"])]
        # a lost checkpoint costs time alone, so a damaged one is no failure of the cell
        except (OSError, KeyError, *DAMAGED):
            self.ignored_reason = "began anew: its checkpoint was damaged"
            return None
        # other versions may round otherwise, and no record is half of the one and half of the other
        if head["key"] != self.key:
            self.ignored_reason = (
                "began anew: its checkpoint was made by other software or elsewhere"
            )
            return None
        state: TrainState = _rebuilt(head["place"], like, arrays, ops)
        # `like` has () there, so this inner state has come back as bare tuples without field names
        if state.best_trial:
            best_trial = head["place"]["tuple"][TrainState._fields.index("best_trial")]
            state = state._replace(best_trial=_rebuilt(best_trial, like, arrays, ops))
        return state


NO_CHECKPOINT = Checkpoint(None)
"""The checkpoint of a run that saves nothing."""


def _packed(ops: Ops, key: str, state: TrainState) -> bytes:
    """Return the bytes of a state: numbers as arrays, everything else as one JSON text."""
    arrays: list[Any] = []

    def described(value: Any) -> Any:
        if isinstance(value, tuple):
            return {"tuple": [described(item) for item in value]}
        # first, as np.float64 is a float of Python too and would come back as another type
        if isinstance(value, np.generic | np.ndarray):
            arrays.append(np.asarray(value))
            return {"host": len(arrays) - 1}
        if value is None or isinstance(value, bool | int | float | str | dict | list):
            return {"plain": value}
        arrays.append(ops.to_numpy(value))
        return {"device": len(arrays) - 1}

    layout = described(state)
    # Python's JSON keeps what matters: all bits of a float, NaN, and PCG64's integers of 128 bits
    head = json.dumps({"key": key, "place": layout, "arrays": len(arrays)})
    file = io.BytesIO()
    named = {f"a{i}": x for i, x in enumerate(arrays)}
    np.savez(file, head=np.frombuffer(head.encode(), dtype=np.uint8), **named)
    return file.getvalue()


def _rebuilt(layout: dict[str, Any], like: Any, arrays: list[Any], ops: Ops) -> Any:
    """Return the value of a layout; a tuple gets the type of `like` if that has as many parts."""
    if "plain" in layout:
        return layout["plain"]
    if "host" in layout:
        return arrays[layout["host"]]
    if "device" in layout:
        return ops.asarray(arrays[layout["device"]])
    parts = layout["tuple"]
    same_length = isinstance(like, tuple) and len(like) == len(parts)
    likes = like if same_length else ((),) * len(parts)
    rebuilt = [
        _rebuilt(part, like_part, arrays, ops) for part, like_part in zip(parts, likes, strict=True)
    ]
    return type(like)(*rebuilt) if same_length and hasattr(like, "_fields") else tuple(rebuilt)
