"""What a check must have measured: an array that nobody computed would agree with everything."""

from __future__ import annotations

from collections.abc import Iterator

from svgpbench.checks.cases import Case
from svgpbench.checks.evaluate import REFERENCE, Arrays
from svgpbench.checks.identities import IDENTITIES
from svgpbench.checks.matrix import GROUPS
from svgpbench.config import BackendConfig

SOURCE = "source"
"""The array of a case that names the backend which computed it."""


def groups_of(case: Case) -> tuple[str, ...]:
    """The groups of arrays that a case must have."""
    if case.trajectories == "none":
        return tuple(group for group in GROUPS if not group.endswith("trajectory"))
    return GROUPS


def arrays_of(index: int, found: Arrays) -> Arrays:
    """The arrays of one case among all that a backend computed."""
    prefix = f"{index}|"
    return {k.removeprefix(prefix): x for k, x in found.items() if k.startswith(prefix)}


def omissions(backend: BackendConfig, chosen: list[Case], found: Arrays) -> Iterator[str]:
    """What a backend should have computed and did not, or not itself, or not in its dtype."""
    for index, case in enumerate(chosen):
        arrays = arrays_of(index, found)
        lacking = [g for g in groups_of(case) if not any(k.startswith(f"{g}/") for k in arrays)]
        dtype = "float64" if backend.name == REFERENCE else case.dtype
        if lacking:
            yield f"{backend.title}: {case.name}: nothing for {', '.join(lacking)}"
        elif (source := str(arrays[SOURCE])) != backend.name:
            yield f"{backend.title}: {case.name}: computed by {source}"
        elif (computed := str(arrays["values/elbo"].dtype)) != dtype:
            yield f"{backend.title}: {case.name}: computed in {computed}"
    names = [f"identity|{number}" for number in IDENTITIES] + ["trajectory|0"]
    lacking = [name.replace("|", " ") for name in names if name not in found]
    if lacking:
        yield f"{backend.title}: no {', '.join(lacking)}"
