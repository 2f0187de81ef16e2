"""Who computes the sums: this process, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from svgpbench.sharded.climb import in_pairs
from svgpbench.sharded.shards import Shard

T = TypeVar("T")


class Here:
    """This process, one shard after another."""

    def total(
        self,
        function: Callable[..., T],
        shards: Sequence[Shard],
        arguments: tuple[Any, ...],
        add: Callable[[T, T], T],
    ) -> T:
        """The tree of sums over all shards."""
        return in_pairs((function(shard, *arguments) for shard in shards), add)


class OnDask:
    """The workers of a Dask client: a task a shard, sums added where they are."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def total(
        self,
        function: Callable[..., T],
        shards: Sequence[Shard],
        arguments: tuple[Any, ...],
        add: Callable[[T, T], T],
    ) -> T:
        """The tree of sums over all shards; only its root comes here. Raises what a worker raised."""
        client = self.client
        shared = client.scatter(list(arguments), broadcast=True, hash=False)
        parts = [client.submit(function, shard, *shared, pure=False) for shard in shards]
        total = in_pairs(parts, lambda a, b: client.submit(add, a, b, pure=False))
        found: T = total.result()
        return found
