"""The file in which a long run keeps its place.

A run that goes on from its file, after whatever ended the process, gives the same bits as one that was
never disturbed: the file has every digit, the streams of draws, and the evaluations of an ascent whose
memory SciPy keeps to itself.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from svgpbench.atomic import write_whole
from svgpbench.ops import Ops
from svgpbench.training.place import Place

EVERY_S = 60.0
"""Least seconds between two writes: a run loses no more than that and one iteration."""


class Checkpoint:
    """The file of one run, written whole or not at all; `key` says what it may be continued by."""

    def __init__(self, path: Path | None, key: str = "", every_s: float = EVERY_S) -> None:
        self.path, self.key, self.every_s = path, key, every_s
        self.passed_over = ""  # why a file that is there was not gone on from
        self._written = time.monotonic()

    def keep(self, ops: Ops, place: Place) -> None:
        """Write the place where the last write is long enough ago.

        Raises `UserError` where the file cannot be written.
        """
        if self.path is None or time.monotonic() - self._written < self.every_s:
            return
        write_whole(self.path, _packed(ops, self.key, place))
        self._written = time.monotonic()

    def read(self, ops: Ops, like: Place) -> Place | None:
        """The place that was kept, shaped like one of this run; None where there is none of this key."""
        if self.path is None or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                head = json.loads(file["head"].tobytes())
                arrays = [file[f"a{i}"] for i in range(head["arrays"])]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            self.passed_over = "began anew: its checkpoint was damaged"
            return None
        if head["key"] != self.key:
            self.passed_over = "began anew: its checkpoint was made by other software or elsewhere"
            return None
        place: Place = _rebuilt(head["place"], like, arrays, ops)
        if place.best:
            best = head["place"]["tuple"][Place._fields.index("best")]
            place = place._replace(best=_rebuilt(best, like, arrays, ops))
        return place


NO_CHECKPOINT = Checkpoint(None)
"""Of a run that keeps nothing."""


def _packed(ops: Ops, key: str, place: Place) -> bytes:
    """The bytes of a place: its numbers as arrays, everything else as one text of JSON."""
    arrays: list[Any] = []

    def described(value: Any) -> Any:
        if isinstance(value, tuple):
            return {"tuple": [described(item) for item in value]}
        if isinstance(value, np.generic | np.ndarray):
            arrays.append(np.asarray(value))
            return {"host": len(arrays) - 1}
        if value is None or isinstance(value, bool | int | float | str | dict | list):
            return {"plain": value}
        arrays.append(ops.to_numpy(value))
        return {"device": len(arrays) - 1}

    layout = described(place._replace(prior=()))
    head = json.dumps({"key": key, "place": layout, "arrays": len(arrays)})
    file = io.BytesIO()
    named = {f"a{i}": x for i, x in enumerate(arrays)}
    np.savez(file, head=np.frombuffer(head.encode(), dtype=np.uint8), **named)
    return file.getvalue()


def _rebuilt(layout: dict[str, Any], like: Any, arrays: list[Any], ops: Ops) -> Any:
    """The value of a layout; a tuple gets the type of `like` where that has as many parts."""
    if "plain" in layout:
        return layout["plain"]
    if "host" in layout:
        return arrays[layout["host"]]
    if "device" in layout:
        return ops.asarray(arrays[layout["device"]])
    parts = layout["tuple"]
    same = isinstance(like, tuple) and len(like) == len(parts)
    likes = like if same else ((),) * len(parts)
    made = [_rebuilt(part, one, arrays, ops) for part, one in zip(parts, likes, strict=True)]
    return type(like)(*made) if same and hasattr(like, "_fields") else tuple(made)
