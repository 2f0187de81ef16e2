"""`svgpbench cost`: FLOPs, bytes and memory of a method's steps, counted without running them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from svgpbench.cli.options import AsJson, Dtype, KernelName
from svgpbench.cli.printing import print_json, show
from svgpbench.config import LikelihoodConfig
from svgpbench.cost import Size, count, exponents
from svgpbench.errors import UserError
from svgpbench.kernels import Model
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.methods import build_method
from svgpbench.output.number_formats import scaled
from svgpbench.output.table import Column, Table, number

TITLES = {"e_step": "E-step from θ", "m_step": "M-step", "prediction": "prediction"}


def cost_command(
    method: Annotated[
        str,
        typer.Argument(metavar="METHOD", help="Name of a method; see `svgpbench list methods`."),
    ],
    *,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="Option of the method; repeat for several."
        ),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Number of rows of the data.")] = 10_000,
    batch: Annotated[
        int | None, typer.Option("--batch", help="Number of rows per batch; all rows by default.")
    ] = None,
    M: Annotated[
        int,
        typer.Option(
            "--M", help="Number of inducing points; of the covariance if the method is decoupled."
        ),
    ] = 100,
    gamma: Annotated[
        int | None,
        typer.Option(
            "--gamma", help="Number of inducing points of the mean; for decoupled methods."
        ),
    ] = None,
    D: Annotated[int, typer.Option("--D", help="Number of inputs.")] = 8,
    P: Annotated[
        int, typer.Option("--P", min=2, help="Number of classes; for multiclass likelihoods.")
    ] = 10,
    likelihood: Annotated[
        str, typer.Option("--likelihood", help="Likelihood of the model.")
    ] = "gaussian",
    kernel_name: KernelName = "matern52",
    dtype: Annotated[
        Dtype, typer.Option("--dtype", help="Floating-point type of the steps.")
    ] = Dtype.float64,
    peak_flops: Annotated[
        float | None,
        typer.Option(
            "--peak-flops", help="FLOP/s of a machine; with --bandwidth, print times too."
        ),
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option("--bandwidth", help="Memory bandwidth of a machine, in bytes/s.")
    ] = None,
    with_exponents: Annotated[
        bool, typer.Option("--exponents", help="Print how FLOPs and memory grow with each size.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count FLOPs, bytes and memory of a method's steps."""
    if (peak_flops, bandwidth) != (None, None) and not (
        (peak_flops or 0) > 0 and (bandwidth or 0) > 0
    ):
        raise UserError("--peak-flops and --bandwidth go together, each above 0")
    built = build_method(method, dict(map(_option, option or ())))
    built_likelihood = build_likelihood(LikelihoodConfig(name=likelihood))
    if isinstance(built_likelihood, MulticlassLikelihood):
        built_likelihood = replace(built_likelihood, classes=P)
    model = Model(kernel(kernel_name), built_likelihood)
    size = Size(n=n, M=M, D=D, b=batch, gamma=gamma)
    tallies = count(built, model, size, dtype=dtype.value)._asdict()
    rows: dict[str, dict[str, Any]] = {step: tally._asdict() for step, tally in tallies.items()}
    if peak_flops and bandwidth:  # the time of a step if no operations are fused
        for step, tally in tallies.items():
            # roofline (Williams et al. 2009): a step waits for its arithmetic or for memory
            rows[step]["seconds"] = max(tally.flops / peak_flops, tally.bytes / bandwidth)
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
    # int first: strict options refuse 5.0 where they want an integer
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            continue
    return key, value


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


def _powers(slopes: dict[str, float]) -> str:
    # a smaller slope would be shown as x^0.00
    return " ".join(f"{size}^{slope:.2f}" for size, slope in slopes.items() if abs(slope) >= 0.005)
