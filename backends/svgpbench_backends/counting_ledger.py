"""What the counting backend writes down: FLOPs by kind, bytes, Choleskys, memory while referenced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["product", "cholesky", "solve", "elementwise"]


class Counted(NamedTuple):
    """What a call cost, in the order of `svgpbench.cost.Tally`."""

    flops: int
    bytes: int
    peak_bytes: int
    choleskys: int  # matrices
    product_flops: int
    cholesky_flops: int
    solve_flops: int


class Ledger:
    """FLOPs, bytes and Choleskys so far, bytes alive now and at most; loops count many times."""

    def __init__(self) -> None:
        self.live = self.peak = 0
        self._times = 1
        self.restart()

    def operation(self, flops: int, moved: int, kind: Kind) -> None:
        """One operation of so many FLOPs and bytes read and written."""
        self._flops[kind] += self._times * flops
        self._moved += self._times * moved

    def factorised(self, matrices: int) -> None:
        """So many matrices went through a Cholesky."""
        self._choleskys += self._times * matrices

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
        self._flops: dict[Kind, int] = dict.fromkeys(
            ("product", "cholesky", "solve", "elementwise"), 0
        )
        self._moved = self._choleskys = 0
        self.peak = self.live

    def counted(self) -> Counted:
        """What was written down since the restart."""
        flops = self._flops
        return Counted(
            flops=sum(flops.values()),
            bytes=self._moved,
            peak_bytes=self.peak,
            choleskys=self._choleskys,
            product_flops=flops["product"],
            cholesky_flops=flops["cholesky"],
            solve_flops=flops["solve"],
        )

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
