"""Who computes the sums: this process, its devices, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from svgpbench.runs.sharded.shards import Shard

T = TypeVar("T")


class Workers:
    """This process: one shard after another."""

    def total(
        self,
        function: Callable[..., T],
        shards: Sequence[Shard],
        arguments: tuple[Any, ...],
        add: Callable[[T, T], T],
    ) -> T:
        """The tree of sums of function(shard, *arguments) over all shards; raises what that raises."""
        shared = self._share(arguments)
        parts = (self._call(function, shard, *shared) for shard in shards)
        found: T = self._fetch(in_pairs(parts, lambda a, b: self._call(add, a, b)))
        return found

    def _share(self, arguments: tuple[Any, ...]) -> Sequence[Any]:
        return arguments

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def _fetch(self, found: Any) -> Any:
        return found


class OnDevices(Workers):
    """This process, its devices side by side: shards are dealt out to them, and a thread waits on each."""

    def __init__(self, count: int) -> None:
        self.count = count

    def total(
        self,
        function: Callable[..., T],
        shards: Sequence[Shard],
        arguments: tuple[Any, ...],
        add: Callable[[T, T], T],
    ) -> T:
        placed = [replace(shard, device=at % self.count) for at, shard in enumerate(shards)]
        with ThreadPoolExecutor(self.count) as pool:
            parts = list(pool.map(lambda shard: function(shard, *arguments), placed))
        return in_pairs(parts, add)


class OnDask(Workers):
    """The workers of a Dask client: a task a shard, sums added where they are; only the root comes here."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def _share(self, arguments: tuple[Any, ...]) -> Sequence[Any]:
        shared: Sequence[Any] = self.client.scatter(list(arguments), broadcast=True, hash=False)
        return shared

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def _fetch(self, found: Any) -> Any:
        return found.result()


def in_pairs(parts: Iterable[T], add: Callable[[T, T], T]) -> T:
    """The sum of some, as a tree: rounding grows with its depth, and pairs may be added anywhere."""
    row = list(parts)
    while len(row) > 1:
        pairs = [add(a, b) for a, b in zip(row[::2], row[1::2], strict=False)]
        row = pairs + row[len(pairs) * 2 :]
    return row[0]
