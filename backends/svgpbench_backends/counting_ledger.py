"""What the counting backend writes down: FLOPs, bytes, Choleskys, and memory while arrays are referenced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Ledger:
    """FLOPs, bytes and Choleskys so far, bytes alive now and at most; loops count many times."""

    def __init__(self) -> None:
        self.flops = self.moved = self.choleskys = self.live = self.peak = 0
        self._times = 1

    def operation(self, flops: int, moved: int) -> None:
        """One operation of so many FLOPs and bytes read and written."""
        self.flops += self._times * flops
        self.moved += self._times * moved

    def factorised(self, matrices: int) -> None:
        """So many matrices went through a Cholesky."""
        self.choleskys += self._times * matrices

    @contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """Count what runs inside `times` times; memory is that of one of them."""
        before, self._times = self._times, self._times * times
        try:
            yield
        finally:
            self._times = before

    def restart(self) -> None:
        """Count from here; what is alive stays in the peak."""
        self.flops = self.moved = self.choleskys = 0
        self.peak = self.live

    def hold(self, size: int) -> None:
        """Memory taken."""
        self.live += size
        self.peak = max(self.peak, self.live)

    def release(self, size: int) -> None:
        """Memory given back."""
        self.live -= size


class Buffer:
    """Memory of one array and its views: taken when made, given back with the last reference."""

    __slots__ = ("ledger", "size")

    def __init__(self, ledger: Ledger, size: int) -> None:
        self.ledger, self.size = ledger, size
        ledger.hold(size)

    def __del__(self) -> None:
        self.ledger.release(self.size)
