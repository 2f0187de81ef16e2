"""Default fits of hard data beside long runs of the same model: the table of docs/default-fits.md.

`python tests/posterior/default_fits.py` makes the table anew, in half an hour; with texts after it, the rows
whose setting has one of them.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.api import fit
from svgpbench.errors import UnsettledWarning

PAGE = Path(__file__).parents[2] / "docs" / "default-fits.md"
STRANGER = "exponential"
PACKAGE = '''
from dataclasses import dataclass

from svgpbench.likelihoods.quadrature import QuadratureLikelihood


@dataclass(frozen=True)
class Exponential(QuadratureLikelihood):
    """Waiting times with mean exp(f)."""

    name = "exponential"
    task = "regression"
    support = "positive"

    def log_density(self, ops, p, y, f):
        ratio = y * ops.exp(-f)
        return -f - ratio, ratio - 1.0

    def predict(self, ops, p, mu, v):
        return ops.exp(mu + 0.5 * v)[0, ...]
'''
"""A likelihood of somebody else's, with a log link."""

Rows = tuple[npt.NDArray[np.float64], npt.NDArray[Any]]
LONG = {"optimiser": "l-bfgs", "e_steps": 4, "em_iterations": 60, "until": "limit"}
INDUCING = 30


class Ended(NamedTuple):
    """How a default fit of a setting ended."""

    bound: float
    iterations: int
    ended: str  # "settled" or "limit"
    remedies: tuple[str, ...]


def counts(mean: float) -> Rows:
    rng = np.random.default_rng(12)
    X = rng.standard_normal((75, 1))
    return X, rng.poisson(mean * np.exp(0.3 * np.sin(2.0 * X[:, 0]))).astype(np.float64)


def waiting_times(mean: float) -> Rows:
    X, _ = counts(mean)
    rng = np.random.default_rng(4)
    return X, mean * np.exp(0.3 * np.sin(2.0 * X[:, 0])) * rng.exponential(size=len(X))


def heavy(scale: float, df: float) -> Rows:
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(0.0, 10.0, 60))[:, None]
    return X, np.sin(X[:, 0]) + scale * rng.standard_t(df, 60)


def separable(classes: int) -> Rows:
    rng = np.random.default_rng(3)
    c = rng.integers(0, classes, 120)
    centres = 3.0 * np.stack([f(2.0 * np.pi * c / classes) for f in (np.cos, np.sin)], axis=1)
    return centres + 0.2 * rng.standard_normal((120, 2)), c


def rare(n: int, positive: int) -> Rows:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 2))
    y = np.zeros(n, dtype=int)
    y[np.argsort(-X[:, 0] - 0.3 * rng.standard_normal(n))[:positive]] = 1
    return X, y


SWEEP: dict[str, tuple[Callable[[], Rows], Any]] = {
    **{
        f"Poisson, mean {mean:g}": (functools.partial(counts, mean), "poisson")
        for mean in (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
    },
    **{
        f"a stranger's exponential, mean {mean:g}": (
            functools.partial(waiting_times, mean),
            STRANGER,
        )
        for mean in (1e-3, 1.0, 1e4)
    },
    **{
        f"Student-t, scale {scale:g}, df {df:g}": (
            functools.partial(heavy, scale, df),
            {"name": "student-t", "df": df},
        )
        for scale in (1e-3, 0.01, 0.1, 1.0, 10.0)
        for df in (1.5, 3.0, 30.0)
    },
    **{
        f"{name}, {k} separable classes": (functools.partial(separable, k), name)
        for name in ("robust-max", "softmax")
        for k in (3, 8)
    },
    **{
        f"Bernoulli ({link}), {positive} of {n:,}": (
            functools.partial(rare, n, positive),
            f"bernoulli-{link}",
        )
        for link in ("probit", "logit")
        for n, positive in ((300, 3), (3000, 30))
    },
}


@contextmanager
def stranger_installed() -> Iterator[None]:
    """Install `PACKAGE` for this process and its workers."""
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / "waits-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: waits\nVersion: 1.0\n")
        point = f"[svgpbench.likelihoods]\n{STRANGER} = waits:Exponential\n"
        (info / "entry_points.txt").write_text(point)
        (Path(folder) / "waits.py").write_text(PACKAGE, "utf-8")
        sys.path.insert(0, folder)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, before)))
        try:
            yield
        finally:
            sys.path.remove(folder)
            os.environ.pop("PYTHONPATH")
            if before is not None:
                os.environ["PYTHONPATH"] = before


def default_fit(setting: str, **options: Any) -> Ended:
    """Fit a setting with the defaults, or with other options."""
    rows, likelihood = SWEEP[setting]
    X, y = rows()
    with stranger_installed(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = fit(X, y, likelihood=likelihood, inducing=INDUCING, **options)
    texts = [str(x.message) for x in seen if issubclass(x.category, UnsettledWarning)]
    last = int(found.trace["iteration"].iloc[-1])
    remedies = tuple(text for text in texts if "train longer" in text or "lower" in text)
    return Ended(found.elbo, last, str(found.facts.ended), remedies)


def is_density(setting: str) -> bool:
    """Return True if y has a density, whose bound may be 0 where nothing is learned."""
    return setting.startswith(("Student-t", "a stranger's exponential"))


def is_near(setting: str, bound: float, reference: float) -> bool:
    """Return True if a bound is at most 1 % below another or, for densities, 0.001 nats per row."""
    per_row = 0.001 * len(SWEEP[setting][0]()[1]) if is_density(setting) else 0.0
    return bound >= reference - max(0.01 * abs(reference), per_row)


def table_rows() -> dict[str, tuple[float, float, str]]:
    """Return the bound, the reference and how the fit ended, by setting, from the page."""
    cells = [
        [cell.strip() for cell in line.strip("| \n").split("|")]
        for line in PAGE.read_text("utf-8").split("\n## ")[0].splitlines()
        if line.startswith("| ") and not line.startswith("| setting")
    ]
    return {
        name: (float(bound), float(reference), ended)
        for name, bound, reference, _, _, ended in cells
    }


def table_row(setting: str) -> str:
    """Return a setting's row of the page, from a default fit and a long run."""
    found, long = default_fit(setting), default_fit(setting, training=LONG)
    difference = found.bound - long.bound
    ended = found.ended if not found.remedies else f"{found.ended}, says what to do"
    return (
        f"| {setting} | {found.bound:.2f} | {long.bound:.2f} | {difference:+.2f} "
        f"| {found.iterations} | {ended} |"
    )


if __name__ == "__main__":
    for name in SWEEP:
        if not sys.argv[1:] or any(text in name for text in sys.argv[1:]):
            print(table_row(name), flush=True)
