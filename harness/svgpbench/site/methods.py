"""Facts for the page of each method: options, counted costs, and results in the records."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from svgpbench.config import LikelihoodConfig
from svgpbench.cost import Size, count, exponents
from svgpbench.errors import UserError
from svgpbench.kernels import Model
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.methods import AnyMethod
from svgpbench.methods.method import MethodInfo
from svgpbench.methods.registry import refusals
from svgpbench.output.number_formats import scaled
from svgpbench.output.table import Table, columns
from svgpbench.plugins import METHODS, load_all
from svgpbench.site.fields import Field, ScoreSummary

STEPS = {"e_step": "E-step from θ", "m_step": "M-step", "prediction": "prediction of a batch"}
LETTERS = {"n": "n", "b": "b", "M": "M", "D": "D", "gamma": "M_γ"}


@dataclass(frozen=True)
class MethodFacts:
    """A method with all that its page shows."""

    name: str
    version: int
    about: str
    info: MethodInfo
    options: tuple[tuple[str, str], ...]
    likelihoods: tuple[str, ...]  # names of those that it takes
    refused: tuple[tuple[str, str], ...]
    costs: Table | None
    sizes: str  # at which the costs were counted
    summaries: tuple[ScoreSummary, ...]


def method_facts(fields: Sequence[Field]) -> list[MethodFacts]:
    """Return the facts of every installed method, in the order of `svgpbench list`."""
    return [_facts(name, cls, fields) for name, cls in load_all(METHODS).items()]


def _facts(name: str, cls: type[AnyMethod], fields: Sequence[Field]) -> MethodFacts:
    method = cls()
    refused = refusals(method)
    # sizes at which one term of each cost dominates, as far as the method allows
    gamma = 512 if method.basis == "decoupled" else None
    size = Size(n=100_000, M=256, D=8, b=1024, gamma=gamma)
    if method.basis == "data":
        size = Size(n=2000, M=1, D=8)
    elif method.collapsed:
        size = Size(n=100_000, M=256, D=8)
    summaries = [
        summary
        for field in fields
        for label, method_name in field.names.items()
        if method_name == name
        for summary in field.summaries(label)
        if summary.is_informative
    ]
    return MethodFacts(
        name,
        cls.version,
        " ".join((cls.__doc__ or "").split()),
        cls.info,
        tuple(
            (f.name, str(f.default).lower() if isinstance(f.default, bool) else str(f.default))
            for f in dataclasses.fields(cls)
        ),
        tuple(likelihood for likelihood in likelihoods() if likelihood not in refused),
        tuple(refused.items()),
        _cost_table(method, size),
        ", ".join(f"{LETTERS[x]} = {getattr(size, x)}" for x in _size_names(size)),
        tuple(summaries),
    )


def _size_names(size: Size) -> list[str]:
    """Return the names of the sizes that are set, without M if the data are the basis (M = 1)."""
    return [k for k, v in dataclasses.asdict(size).items() if v is not None and (k, v) != ("M", 1)]


def _cost_table(method: AnyMethod, size: Size) -> Table | None:
    """Return FLOPs, memory and their exponents in each size, one row per step.

    Return None if they cannot be counted.
    """
    model = Model(kernel("matern52"), build_likelihood(LikelihoodConfig(name="gaussian")))
    names, rows = _size_names(size), []
    try:
        cost = count(method, model, size)
        for step, words in STEPS.items():
            tally = getattr(cost, step)
            flops, memory = (
                [f"{exponents(method, model, size, step, quantity)[name]:.2f}" for name in names]
                for quantity in ("flops", "peak_bytes")
            )
            numbers = (scaled(tally.flops), *flops, f"{scaled(tally.peak_bytes)}B", *memory)
            rows.append((words, *numbers))
    except UserError:
        return None
    sizes = [f"in {LETTERS[name]}" for name in names]
    return Table(columns(["step"], ["FLOPs", *sizes, "peak memory", *sizes]), rows)
