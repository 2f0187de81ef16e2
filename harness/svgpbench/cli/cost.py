"""`svgpbench cost`: FLOPs, bytes and memory of a method's steps, counted without running them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from svgpbench.cli.options import AsJson, Dtype
from svgpbench.cli.printing import print_json, show
from svgpbench.config import LikelihoodConfig
from svgpbench.cost import Cost, Size, Tally, count, exponents
from svgpbench.errors import UserError
from svgpbench.kernels import Model
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import Likelihood, build_likelihood
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.methods import build_method
from svgpbench.output.number_formats import scaled
from svgpbench.output.table import Column, Table, number

TITLES = {"e_step": "E-step from θ", "m_step": "M-step", "prediction": "prediction"}


def cost_command(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="A name of `list methods`.")],
    *,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="Option of the method; repeat for several."
        ),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Rows of the data.")] = 10_000,
    batch: Annotated[
        int | None, typer.Option("--batch", help="Rows of a batch; all by default.")
    ] = None,
    M: Annotated[
        int, typer.Option("--M", help="Inducing points; of the covariance where decoupled.")
    ] = 100,
    gamma: Annotated[
        int | None, typer.Option("--gamma", help="Inducing points of the mean, where decoupled.")
    ] = None,
    D: Annotated[int, typer.Option("--D", help="Input dimensions.")] = 8,
    P: Annotated[int, typer.Option("--P", min=2, help="Classes, of a likelihood of several.")] = 10,
    likelihood: Annotated[str, typer.Option("--likelihood")] = "gaussian",
    kernel_name: Annotated[str, typer.Option("--kernel")] = "matern52",
    dtype: Annotated[Dtype, typer.Option("--dtype")] = Dtype.float64,
    peak_flops: Annotated[
        float | None,
        typer.Option("--peak-flops", help="FLOP/s of a machine; with --bandwidth, times."),
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option("--bandwidth", help="Bytes/s of its memory.")
    ] = None,
    with_exponents: Annotated[
        bool, typer.Option("--exponents", help="How FLOPs and memory grow with each size, there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count FLOPs, bytes and memory of a method's steps."""
    machine = _machine(peak_flops, bandwidth)
    built = build_method(method, dict(map(_option, option or ())))
    model = Model(kernel(kernel_name), _likelihood(likelihood, P))
    size = Size(n=n, M=M, D=D, b=batch, gamma=gamma)
    rows = _rows(count(built, model, size, dtype=dtype.value), machine)
    if with_exponents:
        for step, row in rows.items():
            for quantity in ("flops", "peak_bytes"):
                row[f"{quantity}_exponents"] = exponents(built, model, size, step, quantity)
    if as_json:
        print_json(rows)
    else:
        sizes = ", ".join(f"{k} = {v}" for k, v in asdict(size).items() if v is not None)
        latents = model.likelihood.latents
        sizes += f", P = {latents}" if latents > 1 else ""
        title = f"{method}, {likelihood}, {kernel_name}, {dtype.value}; {sizes}"
        show(_table(rows, title), notes=_exponents(rows))


def _likelihood(name: str, classes: int) -> Likelihood:
    built = build_likelihood(LikelihoodConfig(name=name))
    return replace(built, classes=classes) if isinstance(built, MulticlassLikelihood) else built


def _machine(peak_flops: float | None, bandwidth: float | None) -> tuple[float, float] | None:
    if peak_flops is None and bandwidth is None:
        return None
    if not (peak_flops or 0) > 0 or not (bandwidth or 0) > 0:
        raise UserError("--peak-flops and --bandwidth go together, each above 0")
    return float(peak_flops or 0), float(bandwidth or 0)


def _option(text: str) -> tuple[str, str | bool | int | float]:
    """Parse `key=value` into a key and a bool, an int, a float or else a string.

    Raises `UserError` without a key or an equals sign.
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UserError(f"--option {text!r}: give KEY=VALUE, such as tying=untied")
    words = {"true": True, "false": False}
    if value in words:
        return key, words[value]
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            continue
    return key, value


def _rows(cost: Cost, machine: tuple[float, float] | None) -> dict[str, dict[str, Any]]:
    return {
        step: tally._asdict() | ({"seconds": _unfused_time(tally, machine)} if machine else {})
        for step, tally in cost._asdict().items()
    }


def _unfused_time(tally: Tally, machine: tuple[float, float]) -> float:
    """Return the longer of the times for the arithmetic and for the memory traffic, in seconds."""
    return max(tally.flops / machine[0], tally.bytes / machine[1])


def _table(rows: dict[str, dict[str, Any]], title: str) -> Table:
    columns = [
        *(Column("step", wrap=False), number("FLOPs", scaled), number("Choleskys")),
        *(
            number("bytes moved", _bytes),
            number("FLOPs/byte", ".3g"),
            number("peak memory", _bytes),
        ),
    ]
    values = [
        [
            *(TITLES[step], row["flops"], row["choleskys"], row["bytes"]),
            *(row["flops"] / row["bytes"], row["peak_bytes"]),
            *([row["seconds"]] if "seconds" in row else ()),
        ]
        for step, row in rows.items()
    ]
    if len(values[0]) > len(columns):
        columns.append(number("time, unfused", ".3g", "s"))
    return Table(columns, values, title)


def _bytes(size: float) -> str:
    return f"{scaled(size)}B"


def _exponents(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    for step, row in rows.items():
        if "flops_exponents" in row:
            time, space = _powers(row["flops_exponents"]), _powers(row["peak_bytes_exponents"])
            yield f"{TITLES[step]}: FLOPs ∝ {time}, memory ∝ {space}"


def _powers(found: dict[str, float]) -> str:
    return " ".join(f"{x}^{slope:.2f}" for x, slope in found.items() if abs(slope) >= 0.005)
