"""`svgpbench speed`: time backends next to peer libraries, each peer in its own environment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from svgpbench.atomic import refuse_absent_folder
from svgpbench.backends import framework_missing
from svgpbench.benchmarks.timing.cases import STEPS, USUAL_STEPS
from svgpbench.benchmarks.timing.compare import MAX_OTHER_CORES, run_speed
from svgpbench.benchmarks.timing.floor_run import add_floor
from svgpbench.benchmarks.timing.peers import locate_peers
from svgpbench.benchmarks.timing.problems import FAMILIES, TIMED
from svgpbench.benchmarks.timing.report import SpeedReport
from svgpbench.cli.options import (
    AsJson,
    Backends,
    Device,
    MaxOtherCores,
    OnDevice,
    Threads,
    default_threads,
)
from svgpbench.cli.printing import FAILED, INTERRUPTED, print_json, tell
from svgpbench.cli.speed_records import draw_roofline, print_report, show_ratios, show_records
from svgpbench.errors import UserError
from svgpbench.output.figure import check_figure_path
from svgpbench.plugins import PEERS, frameworks, plugins

ANY_M = f"any M of {', '.join(FAMILIES)}, such as reg-M2048"


def speed_command(
    *,
    problem: Annotated[
        list[str] | None,
        typer.Option(
            "--problem",
            help=f"Problem: {', '.join(TIMED)}, or {ANY_M}; repeat for several.",
        ),
    ] = None,
    backend: Backends = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method", help="Name of a method (see `svgpbench list methods`); repeat for several."
        ),
    ] = None,
    step: Annotated[
        list[str] | None,
        typer.Option("--step", help=f"Step: {', '.join(STEPS)}; repeat for several."),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option("--peers", help="Time every peer library too; missing environments are made."),
    ] = False,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="NAME[@PATH]",
            help=f"Peer library: {', '.join(plugins(PEERS))}; @PATH adds a candidate: a wheel or folder.",
        ),
    ] = None,
    peer_python: Annotated[
        str | None,
        typer.Option("--peer-python", metavar="PATH", help="Python interpreter that has the peer."),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Number of clean rounds per cell.")
    ] = 9,
    threads: Threads = None,
    device: OnDevice = Device.cpu,
    max_other_cores: MaxOtherCores = MAX_OTHER_CORES,
    floor: Annotated[
        bool, typer.Option(help="Measure the machine's rates and each step's least time.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File for a JSON record.")
    ] = None,
    as_json: AsJson = False,
    load: Annotated[
        list[Path] | None,
        typer.Option(
            "--load",
            metavar="FILE",
            help="Record of an earlier --out to print, or a folder of them; repeat for several.",
        ),
    ] = None,
    roofline: Annotated[
        Path | None,
        typer.Option(
            "--roofline", metavar="FILE", help="File for a roofline figure: .png, .pdf or .svg."
        ),
    ] = None,
    ratio: Annotated[
        str | None,
        typer.Option(
            "--ratio",
            metavar="A/B",
            help="Times of method A over those of B in the records of --load, such as t-svgp/q-svgp.",
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure", metavar="FILE", help="File for the figure of --ratio: .png, .pdf or .svg."
        ),
    ] = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the summary of --ratio as Markdown.")
    ] = False,
) -> None:
    """Time the steps of training, next to peer libraries and to the least that their arithmetic takes."""
    if load and (out is not None or as_json):
        raise UserError("--load prints what was timed before: leave out --out and --json")
    if ratio is not None or figure is not None or as_markdown:
        show_ratios(load or (), ratio, figure, as_markdown)
        return
    if load:
        show_records(load, roofline)
        return
    # before the timing, whose times would be lost
    if out is not None:
        refuse_absent_folder(out, "--out ")
    if roofline is not None:
        check_figure_path(roofline)
        if not floor:
            raise UserError("--roofline draws what --floor measures: leave --no-floor out")

    def save(report: SpeedReport) -> None:
        if out is not None:
            report.write(out)

    report = run_speed(
        problem or TIMED,
        backend or [b for b in frameworks() if framework_missing(b) is None],
        step or USUAL_STEPS,
        locate_peers(
            [*(plugins(PEERS) if peers else ()), *(peer or ())] or None, peer_python, tell
        ),
        repeats,
        threads or default_threads(),
        tell,
        methods=method or (),
        max_other_cores=max_other_cores,
        device=device,
        # after each step of each problem, so that a crash loses one step
        on_step=save,
    )
    if floor:
        add_floor(report, tell)
    save(report)
    if as_json:
        print_json(report.to_json())
    else:
        print_report(report)
    if roofline is not None:
        draw_roofline([report], roofline)
    if report.interrupted:
        raise typer.Exit(INTERRUPTED)
    if not report.ok:
        raise typer.Exit(FAILED)
