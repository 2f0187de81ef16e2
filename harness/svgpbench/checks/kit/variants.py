"""Cases of a method in the kit: every variant once, and the first one with every likelihood."""

from __future__ import annotations

from collections.abc import Iterator

from svgpbench.checks.bench import Bench
from svgpbench.checks.cases import VARIANTS, MatrixCase, likelihoods_of, small_problem
from svgpbench.errors import UserError
from svgpbench.ops import Ops


def variants_of(method: str) -> Iterator[MatrixCase]:
    """Yield the cases of a method; raises `UserError` if a variant takes no installed likelihood."""
    titles = [title for title, (name, _) in VARIANTS.items() if name == method]
    for i, title in enumerate(titles):
        served = likelihoods_of(title)
        if not served:
            raise UserError(f"method {title!r} takes none of the likelihoods that are installed")
        for likelihood in served if i == 0 else served[:1]:
            yield MatrixCase(title, likelihood, "matern52")


def bench_of(ops: Ops, case: MatrixCase) -> Bench:
    """Return the bench of a case on the small problem."""
    return Bench(ops, *case.build(), small_problem())
