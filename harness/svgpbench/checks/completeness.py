"""What a check must have measured: an array that nobody computed would agree with everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from svgpbench.checks.cases import Case
from svgpbench.checks.evaluate import REFERENCE, SKIPPED, Arrays, groups_of
from svgpbench.checks.identities import IDENTITIES
from svgpbench.config import BackendConfig

SOURCE = "source"
"""The array of a case that names the backend which computed it."""


FAILED = "failed"
"""The array of a case that says how it ended where it raised."""


@dataclass(frozen=True)
class Skip:
    """What a backend does not offer, and so was not asked for."""

    backend: str
    what: str  # a case's name, or `identity 7`, or `trajectory 0`
    group: str  # of a case; empty of the others
    why: str


def arrays_of(index: int, found: Arrays) -> Arrays:
    """The arrays of one case among all that a backend computed."""
    prefix = f"{index}|"
    return {k.removeprefix(prefix): x for k, x in found.items() if k.startswith(prefix)}


def omissions(backend: BackendConfig, chosen: list[Case], found: Arrays) -> Iterator[str]:
    """What a backend should have computed and did not, or not itself, or not in its dtype."""
    for index, case in enumerate(chosen):
        arrays = arrays_of(index, found)
        lacking = [
            g
            for g in groups_of(case.trajectories)
            if f"{SKIPPED}/{g}" not in arrays and not any(k.startswith(f"{g}/") for k in arrays)
        ]
        dtype = "float64" if backend.name == REFERENCE else case.dtype
        if FAILED in arrays:
            yield f"{backend.title}: {case.name}: {arrays[FAILED]}"
        elif lacking:
            yield f"{backend.title}: {case.name}: nothing for {', '.join(lacking)}"
        elif "values/elbo" not in arrays:  # all of it is skipped
            continue
        elif (source := str(arrays[SOURCE])) != backend.name:
            yield f"{backend.title}: {case.name}: computed by {source}"
        elif (computed := str(arrays["values/elbo"].dtype)) != dtype:
            yield f"{backend.title}: {case.name}: computed in {computed}"
    names = [f"identity|{number}" for number in IDENTITIES] + ["trajectory|0"]
    for name in names:
        if f"{name}|{FAILED}" in found:
            yield f"{backend.title}: {name.replace('|', ' ')}: {found[f'{name}|{FAILED}']}"
    absent = (n for n in names if not {n, f"{n}|{FAILED}", f"{n}|{SKIPPED}"} & found.keys())
    lacking = [name.replace("|", " ") for name in absent]
    if lacking:
        yield f"{backend.title}: no {', '.join(lacking)}"


def skips(backend: BackendConfig, chosen: list[Case], found: Arrays) -> Iterator[Skip]:
    """What a backend said that it does not offer."""
    for name, why in found.items():
        head, _, rest = name.partition("|")
        if rest.startswith(f"{SKIPPED}/"):
            group = rest.removeprefix(f"{SKIPPED}/")
            yield Skip(backend.title, chosen[int(head)].name, group, str(why))
        elif rest.endswith(f"|{SKIPPED}"):
            number = rest.removesuffix(f"|{SKIPPED}")
            yield Skip(backend.title, f"{head} {number}", "", str(why))
