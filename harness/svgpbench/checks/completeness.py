"""Detection of results that are missing or skipped.

Without it, an array that no backend computed would pass every comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from svgpbench.checks.cases import MatrixCase
from svgpbench.checks.evaluate import REFERENCE, SKIPPED, Arrays, groups_of
from svgpbench.checks.identities import IDENTITIES
from svgpbench.config import BackendConfig

SOURCE = "source"
"""Name of the array that holds the name of the backend that computed a case."""
FAILED = "failed"
"""Name of the array that holds the error message of a case that raised."""


@dataclass(frozen=True)
class Skip:
    """A part of the check that a backend does not offer."""

    backend: str
    what: str  # a case's name, or `identity steps agree`, or `trajectory 0`
    group: str  # of a case; empty for identities and trajectories
    why: str


def arrays_of(index: int, all_arrays: Arrays) -> Arrays:
    """Return the arrays of case number `index` from all arrays of a backend."""
    prefix = f"{index}|"
    return {k.removeprefix(prefix): x for k, x in all_arrays.items() if k.startswith(prefix)}


def omissions(
    backend: BackendConfig,
    cases: list[MatrixCase],
    all_arrays: Arrays,
    *,
    cases_only: bool = False,
) -> Iterator[str]:
    """Yield one line per result that failed, is missing, or has another source or dtype.

    With `cases_only`, identities and trajectories are not expected.
    """
    for index, case in enumerate(cases):
        arrays = arrays_of(index, all_arrays)
        lacking = [
            group
            for group in groups_of(case.trajectories)
            if f"{SKIPPED}/{group}" not in arrays
            and not any(name.startswith(f"{group}/") for name in arrays)
        ]
        dtype = "float64" if backend.name == REFERENCE else case.dtype
        if FAILED in arrays:
            yield f"{backend.title}: {case.name}: {arrays[FAILED]}"
        elif lacking:
            yield f"{backend.title}: {case.name}: nothing for {', '.join(lacking)}"
        elif "values/elbo" not in arrays:  # the values are skipped
            continue
        elif (source := str(arrays[SOURCE])) != backend.name:
            yield f"{backend.title}: {case.name}: computed by {source}"
        elif (computed := str(arrays["values/elbo"].dtype)) != dtype:
            yield f"{backend.title}: {case.name}: computed in {computed}"
    if cases_only:
        return
    names = [f"identity|{name}" for name in IDENTITIES] + ["trajectory|0"]
    for name in names:
        if f"{name}|{FAILED}" in all_arrays:
            yield f"{backend.title}: {name.replace('|', ' ')}: {all_arrays[f'{name}|{FAILED}']}"
    absent = (n for n in names if not {n, f"{n}|{FAILED}", f"{n}|{SKIPPED}"} & all_arrays.keys())
    lacking = [name.replace("|", " ") for name in absent]
    if lacking:
        yield f"{backend.title}: no {', '.join(lacking)}"


def skips(backend: BackendConfig, cases: list[MatrixCase], all_arrays: Arrays) -> Iterator[Skip]:
    """Yield the parts of the check that a backend does not offer."""
    for name, why in all_arrays.items():
        head, _, suffix = name.partition("|")
        if suffix.startswith(f"{SKIPPED}/"):
            group = suffix.removeprefix(f"{SKIPPED}/")
            yield Skip(backend.title, cases[int(head)].name, group, str(why))
        elif suffix.endswith(f"|{SKIPPED}"):
            part = suffix.removesuffix(f"|{SKIPPED}")
            yield Skip(backend.title, f"{head} {part}", "", str(why))
