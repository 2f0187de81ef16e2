"""`svgpbench verify`: run the cells of records again and compare the results."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from svgpbench.cli.options import RESULTS, AsJson, ResultsFolder
from svgpbench.cli.printing import printer
from svgpbench.cli.progress import cell_title, reporter
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment
from svgpbench.experiments.outcome import json_value

if TYPE_CHECKING:
    from svgpbench.runs.verification import Verdict

FAILED = 1


def verify_command(
    experiment: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT]", help="All there are, where left out.")
    ] = None,
    *,
    results: ResultsFolder = RESULTS,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="K", min=1, help="Only K, drawn of those that can run."),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of the drawing: another seed, another sample.")
    ] = 0,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Workers at a time; as many as fit by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run records again from themselves and compare."""
    from svgpbench.runs.verification import verify

    name = None if experiment is None else load_experiment(experiment).name
    if not results.is_dir():
        raise UserError(
            f"--results {results}: there is no such folder; name one with records, such "
            "as the `results` of a clone"
        )
    with reporter() as on_event:
        verdicts = verify(results, name, sample, jobs, on_event, seed)
    if as_json:
        content = [_plain(verdict) for verdict in verdicts]
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        _print(verdicts)
    kinds = {verdict.kind for verdict in verdicts}
    if "different" in kinds or not kinds & {"bitwise", "rounding", "chaotic"}:
        raise typer.Exit(FAILED)


def _plain(verdict: Verdict) -> dict[str, object]:
    return {
        "cell_id": verdict.record.cell_id,
        "experiment": verdict.record.config.experiment,
        "cell": cell_title(verdict.record.config),
        "verdict": verdict.kind,
        "difference": json_value(verdict.difference),
        "spread": json_value(verdict.spread),
        "reason": verdict.reason,
        "newer": sorted(verdict.newer),
    }


def _print(verdicts: list[Verdict]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("cell", "verdict", "difference", "1e-15 replicas"):
        table.add_column(name, justify="left" if name in ("cell", "verdict") else "right")
    for one in verdicts:
        numbers = ("" if math.isnan(x) else f"{x:.0e}" for x in (one.difference, one.spread))
        verdict = f"{one.kind}: {one.reason}" if one.reason else one.kind
        table.add_row(cell_title(one.record.config), verdict, *numbers)
    out = printer()
    out.print(table)
    counts = Counter(verdict.kind for verdict in verdicts)
    typer.echo(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    typer.echo("largest relative difference of a column of the trace, times left out")
    newer = sorted({name for verdict in verdicts for name in verdict.newer})
    if newer:
        typer.echo(f"not in all of these records, and not compared there: {', '.join(newer)}")
