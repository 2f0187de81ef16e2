"""`svgpbench speed`: time backends, and peers in their own environments, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from svgpbench.cli.speed_records import draw_roofline, print_report, show_records
from svgpbench.errors import UserError
from svgpbench.plugins import PEERS, framework_missing, frameworks, plugins
from svgpbench.runner.cores import usable_cores
from svgpbench.speed.cases import STEPS
from svgpbench.speed.compare import MAX_OTHER_CORES, run_speed
from svgpbench.speed.floor_run import add_floor
from svgpbench.speed.peers import locate_peers
from svgpbench.speed.problems import TIMED

FAILED, INTERRUPTED = 1, 130


def speed_command(
    *,
    problem: Annotated[
        list[str] | None, typer.Option("--problem", help=f"{', '.join(TIMED)}; repeat for several.")
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", metavar="NAME[:MODE]", help="Repeat for several."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="A name of `list methods`; repeat for several."),
    ] = None,
    step: Annotated[
        list[str] | None, typer.Option("--step", help=f"{', '.join(STEPS)}; repeat for several.")
    ] = None,
    peers: Annotated[
        bool,
        typer.Option("--peers", help="Beside every peer; environments are made where none is."),
    ] = False,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="NAME[@PATH]",
            help=f"{', '.join(plugins(PEERS))}; with a wheel or source folder, that candidate too.",
        ),
    ] = None,
    peer_python: Annotated[
        str | None,
        typer.Option("--peer-python", metavar="PATH", help="Python that has the peer."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Clean rounds wanted.")] = 9,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Of each process; 2 where there are 2.")
    ] = None,
    max_other_cores: Annotated[
        float,
        typer.Option("--max-other-cores", min=0, help="CPU of others that a round may lose."),
    ] = MAX_OTHER_CORES,
    floor: Annotated[
        bool, typer.Option(help="Measure the machine's rates and each step's least time.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write a JSON record.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    from_records: Annotated[
        list[Path] | None,
        typer.Option(
            "--from-records", metavar="FILE", help="Print a record of --out; repeat for several."
        ),
    ] = None,
    roofline: Annotated[
        Path | None,
        typer.Option("--roofline", metavar="FILE", help="Draw it: a .png, .pdf or .svg file."),
    ] = None,
) -> None:
    """Time the steps of training, next to peer libraries and to the least that their arithmetic takes."""
    if from_records and (out is not None or as_json):
        raise UserError("--from-records prints what was timed before: leave out --out and --json")
    if from_records:
        show_records(from_records, roofline)
        return
    if out is not None and not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: its folder does not exist; make it first")
    console = Console(stderr=True)

    def progress(text: str) -> None:
        console.print(text, markup=False, highlight=False, style="dim")

    report = run_speed(
        problem or TIMED,
        backend or [b for b in frameworks() if framework_missing(b) is None],
        step or tuple(STEPS),
        locate_peers(
            [*(plugins(PEERS) if peers else ()), *(peer or ())] or None, peer_python, progress
        ),
        repeats,
        threads or min(2, len(usable_cores())),
        progress,
        methods=method or (),
        max_other_cores=max_other_cores,
    )
    if floor:
        add_floor(report, progress)
    text = json.dumps(report.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    if as_json:
        typer.echo(text)
    else:
        print_report(report)
    if roofline is not None:
        draw_roofline([report], roofline)
    if report.interrupted:
        raise typer.Exit(INTERRUPTED)
    if not report.ok:
        raise typer.Exit(FAILED)
