"""Reverse mode over shapes: nodes that keep what their adjoints need, and the pass that frees them."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

Pull = Callable[[Any], Sequence[Any]]


class Node:
    """One operation on the tape: its inputs' nodes, and how a cotangent is pulled back to them."""

    __slots__ = ("parents", "pull", "serial")
    _serials: ClassVar[itertools.count[int]] = itertools.count()

    def __init__(self, parents: Sequence[Node] = (), pull: Pull = lambda g: ()) -> None:
        self.parents, self.pull, self.serial = tuple(parents), pull, next(Node._serials)

    def __lt__(self, other: Node) -> bool:
        return self.serial > other.serial  # a heap gives the last operation first


def reverse_pass(end: Node, seed: Any, starts: Sequence[Node]) -> list[Any | None]:
    """The cotangent of each of `starts`, None for one that `end` does not depend on.

    A node gives up what it kept as soon as it has been pulled back.
    """
    found: dict[Node, Any] = {end: seed}
    del seed
    waiting, leaves = [end], set(starts)
    while waiting:
        node = heapq.heappop(waiting)
        if node not in leaves:
            _pull_back(node, found, waiting)
    return [found.get(node) for node in starts]


def _pull_back(node: Node, found: dict[Node, Any], waiting: list[Node]) -> None:
    for parent, g in zip(node.parents, node.pull(found.pop(node)), strict=True):
        if parent in found:
            found[parent] = found[parent] + g
        else:
            found[parent] = g
            heapq.heappush(waiting, parent)
    node.parents, node.pull = (), _spent


def _spent(_: Any) -> Sequence[Any]:
    raise RuntimeError("this part of the tape was pulled back before")
