"""The ledger of the counting backend: FLOPs by kind, bytes, Cholesky factors and memory in use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["product", "cholesky", "solve", "elementwise"]


class Counted(NamedTuple):
    """Cost of a call, in the order of `svgpbench.cost.Tally`."""

    flops: int
    bytes: int
    peak_bytes: int
    choleskys: int  # matrices
    product_flops: int
    cholesky_flops: int
    solve_flops: int


class Ledger:
    """Counts of FLOPs, bytes moved and Cholesky factors, with live and peak memory in bytes."""

    def __init__(self) -> None:
        self.live = self.peak = 0
        self._times = 1
        self.restart()

    def operation(self, flops: int, bytes_moved: int, kind: Kind) -> None:
        """Count one operation: its FLOPs, and the bytes it reads and writes."""
        self._flops[kind] += self._times * flops
        self._bytes += self._times * bytes_moved

    def factorised(self, matrices: int) -> None:
        """Count matrices that were factorised by Cholesky."""
        self._choleskys += self._times * matrices

    @contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """Count operations in the context `times` times; memory is counted once."""
        before, self._times = self._times, self._times * times
        try:
            yield
        finally:
            self._times = before

    def restart(self) -> None:
        """Reset the counts, and set the peak to the live memory."""
        self._flops: dict[Kind, int] = dict.fromkeys(
            ("product", "cholesky", "solve", "elementwise"), 0
        )
        self._bytes = self._choleskys = 0
        self.peak = self.live

    def counted(self) -> Counted:
        """Return the counts since the restart."""
        flops = self._flops
        return Counted(
            flops=sum(flops.values()),
            bytes=self._bytes,
            peak_bytes=self.peak,
            choleskys=self._choleskys,
            product_flops=flops["product"],
            cholesky_flops=flops["cholesky"],
            solve_flops=flops["solve"],
        )

    def hold(self, size: int) -> None:
        """Add allocated memory of `size` bytes."""
        self.live += size
        self.peak = max(self.peak, self.live)

    def release(self, size: int) -> None:
        """Subtract freed memory of `size` bytes."""
        self.live -= size


class Buffer:
    """Memory of one array and its views, counted until the last reference is gone."""

    __slots__ = ("ledger", "size")

    def __init__(self, ledger: Ledger, size: int) -> None:
        self.ledger, self.size = ledger, size
        ledger.hold(size)

    # CPython calls this at the last reference, as an eager framework frees an array
    def __del__(self) -> None:
        self.ledger.release(self.size)
