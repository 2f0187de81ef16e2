"""`svgpbench scaling`: growth of step times with N, M, b, P and D, and predictions at any N."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from svgpbench.atomic import refuse_absent_folder
from svgpbench.benchmarks.scaling.laws import laws_of
from svgpbench.benchmarks.scaling.measure import AXES, ScalingReport, run_scaling, title_of
from svgpbench.benchmarks.scaling.tables import exponent_table, prediction_table
from svgpbench.benchmarks.timing.compare import MAX_OTHER_CORES
from svgpbench.benchmarks.timing.problems import Shape
from svgpbench.benchmarks.timing.record_files import read_report, write_report
from svgpbench.cli.exit_codes import FAILED, INTERRUPTED
from svgpbench.cli.options import AsJson, Device, OnDevice
from svgpbench.cli.printing import print_json, say, show, tell
from svgpbench.cli.timing_options import (
    MaxOtherCores,
    RecordFile,
    Repeats,
    Threads,
    default_threads,
)
from svgpbench.errors import UserError
from svgpbench.plugins import framework_missing, frameworks

SAMPLES = 100
"""Number of samples of a Monte Carlo likelihood."""

TEN_GIGABIT = 1.25e9


def scaling_command(
    *,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME[:MODE]",
            help="Backend, with a mode or without; the first installed one by default.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="Name of a method; see `svgpbench list methods`.")
    ] = "t-svgp",
    likelihood: Annotated[
        str, typer.Option("--likelihood", help="Likelihood: gaussian, bernoulli-probit or softmax.")
    ] = "gaussian",
    N: Annotated[
        int, typer.Option("--n", help="Number of rows of the data; the middle of its sizes.")
    ] = 100_000,
    M: Annotated[
        int, typer.Option("--M", help="Number of inducing points; the middle of its sizes.")
    ] = 256,
    b: Annotated[
        int, typer.Option("--batch", help="Number of rows per batch; the middle of its sizes.")
    ] = 1024,
    P: Annotated[
        int,
        typer.Option("--P", help="Number of latent functions of softmax; the middle of its sizes."),
    ] = 8,
    D: Annotated[int, typer.Option("--D", help="Number of inputs; the middle of its sizes.")] = 16,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            "--axis", help=f"Size to vary: {', '.join(AXES)}; repeat for several. All by default."
        ),
    ] = None,
    rungs: Annotated[
        int, typer.Option("--rungs", help="Number of sizes per axis, each twice the one before.")
    ] = 5,
    repeats: Repeats = 5,
    threads: Threads = None,
    device: OnDevice = Device.cpu,
    max_other_cores: MaxOtherCores = MAX_OTHER_CORES,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="Number of rows for which times are predicted.")
    ] = 10**9,
    workers: Annotated[
        list[int] | None,
        typer.Option(
            "--workers",
            min=1,
            help="Number of workers for which times are predicted; repeat for several.",
        ),
    ] = None,
    network: Annotated[
        float, typer.Option("--network", help="Network speed between two workers, in bytes/s.")
    ] = TEN_GIGABIT,
    out: RecordFile = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE", help="File for the figure: .png, .pdf or .svg."),
    ] = None,
    load: Annotated[
        Path | None,
        typer.Option(
            "--load", metavar="FILE", help="Record of an earlier --out to show, instead of timing."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how an E-step and an M-step grow with each size, and predict them where they cannot run."""
    if out is not None:
        refuse_absent_folder(out, "--out ")
    if not network > 0:
        raise UserError(f"--network {network:g}: bytes/s are above 0")
    if load is not None:
        report = read_report(load, "scaling", ScalingReport.from_json)
    else:
        multiclass = likelihood == "softmax"
        installed = [name for name in frameworks() if framework_missing(name) is None]
        if not backend and not installed:
            raise UserError("no framework is installed; install one, such as svgpbench[torch]")
        report = run_scaling(
            Shape(likelihood, N, D, M, b, 16, P if multiclass else 1, SAMPLES if multiclass else 0),
            backend or installed[0],
            method,
            axis or [name for name in AXES if multiclass or name != "P"],
            rungs,
            repeats,
            threads or default_threads(),
            tell,
            max_other_cores=max_other_cores,
            device=device,
            on_step=partial(write_report, out),
        )
    write_report(out, report)
    if as_json:
        print_json(report.to_json())
    else:
        _print(report, rows, workers or [1, 64, 1024], network)
    if figure is not None:
        from svgpbench.benchmarks.scaling.figure import draw_scaling

        say(f"{figure}\n{draw_scaling(report, figure)}")
    if report.speed.interrupted:
        raise typer.Exit(INTERRUPTED)
    if not report.speed.ok:
        raise typer.Exit(FAILED)


def _print(report: ScalingReport, N: int, workers: list[int], network: float) -> None:
    """Print exponents, predictions for `N` rows, and checks of the predictions on smaller batches."""
    settings = report.speed.settings
    title = f"{settings['method']}, {settings['backend']}, {report.centre.likelihood}"
    checks = [
        f"{law.step}: predicted from smaller batches, b = {law.check.b} is off by "
        f"{law.check.seconds:+.1%} in time and {law.check.growth:+.1%} in memory"
        for law in laws_of(report)
    ]
    show(
        f"{title}; centre {title_of(report.centre)}",
        exponent_table(report),
        prediction_table(report, N, workers, network),
        notes=[*checks, *report.speed.notes()],
    )
