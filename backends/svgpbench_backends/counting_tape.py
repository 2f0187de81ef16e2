"""Reverse mode over shapes: nodes that keep what their adjoints need, and a pass that frees it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

Pull = Callable[[Any], Sequence[Any]]


class Node:
    """An operation on the tape: its inputs' nodes, and a function that returns their cotangents."""

    __slots__ = ("parents", "pull", "serial")
    _serials: ClassVar[itertools.count[int]] = itertools.count()

    def __init__(self, parents: Sequence[Node] = (), pull: Pull = lambda g: ()) -> None:
        self.parents, self.pull, self.serial = tuple(parents), pull, next(Node._serials)

    def __lt__(self, other: Node) -> bool:
        return self.serial > other.serial  # a heap returns the last operation first


def reverse_pass(end: Node, seed: Any, starts: Sequence[Node]) -> list[Any | None]:
    """Return the cotangent of each node in `starts`; None if `end` does not depend on it.

    A node frees what it keeps as soon as its cotangent has been pulled back.
    """
    cotangents: dict[Node, Any] = {end: seed}
    # memory is counted by references: this one would hold the first cotangent for the whole pass
    del seed
    waiting, leaves = [end], set(starts)
    while waiting:
        # serial numbers rise along the tape, so that all users of a node come first and its
        # cotangent is complete
        node = heapq.heappop(waiting)
        if node not in leaves:
            _pull_back(node, cotangents, waiting)
    return [cotangents.get(node) for node in starts]


def _pull_back(node: Node, cotangents: dict[Node, Any], waiting: list[Node]) -> None:
    """Add the cotangents of a node's inputs, and free what the node keeps.

    A function of its own, so that no cotangent outlives it: the peak of memory is counted.
    """
    for parent, g in zip(node.parents, node.pull(cotangents.pop(node)), strict=True):
        if parent in cotangents:
            cotangents[parent] = cotangents[parent] + g
        else:
            cotangents[parent] = g
            heapq.heappush(waiting, parent)
    node.parents, node.pull = (), _spent


def _spent(_: Any) -> Sequence[Any]:
    raise RuntimeError("this part of the tape was pulled back before")
