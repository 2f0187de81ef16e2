"""Workers that compute the sums: this process, its devices, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from svgpbench.runs.sharded.shards import Shard

T = TypeVar("T")


class Workers:
    """Serial workers: this process computes one shard after another."""

    def total(
        self,
        function: Callable[..., T],
        shards: Sequence[Shard],
        arguments: tuple[Any, ...],
        add: Callable[[T, T], T],
    ) -> T:
        """Return the sum of function(shard, *arguments) over all shards; its errors are raised here."""
        shared = self._share(arguments)
        parts = (self._call(function, shard, *shared) for shard in shards)
        result: T = self._fetch(in_pairs(parts, lambda a, b: self._call(add, a, b)))
        return result

    def _share(self, arguments: tuple[Any, ...]) -> Sequence[Any]:
        return arguments

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def _fetch(self, result: Any) -> Any:
        return result


class OnDevices(Workers):
    """Devices of this process that compute in parallel: shards are assigned to them in turn."""

    def __init__(self, count: int) -> None:
        self.count = count

    def total(
        self,
        function: Callable[..., T],
        shards: Sequence[Shard],
        arguments: tuple[Any, ...],
        add: Callable[[T, T], T],
    ) -> T:
        assigned = [replace(shard, device=index % self.count) for index, shard in enumerate(shards)]
        with ThreadPoolExecutor(self.count) as pool:
            parts = list(pool.map(lambda shard: function(shard, *arguments), assigned))
        return in_pairs(parts, add)


class OnDask(Workers):
    """Dask workers of a client, with one task per shard.

    They also add the sums; only the total is returned to this process.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def _share(self, arguments: tuple[Any, ...]) -> Sequence[Any]:
        shared: Sequence[Any] = self.client.scatter(list(arguments), broadcast=True, hash=False)
        return shared

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, pure=False)

    def _fetch(self, result: Any) -> Any:
        return result.result()


def in_pairs(parts: Iterable[T], add: Callable[[T, T], T]) -> T:
    """Return the sum of parts by adding pairs.

    Rounding grows with the depth of the tree, and pairs may be added on any worker.
    """
    row = list(parts)
    while len(row) > 1:
        pairs = [add(a, b) for a, b in zip(row[::2], row[1::2], strict=False)]
        row = pairs + row[len(pairs) * 2 :]
    return row[0]
