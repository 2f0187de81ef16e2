"""`svgpbench verify`: run the cells of records again and compare the results."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.cli.options import AsJson, Jobs, RecordsFolder, records_folder
from svgpbench.cli.printing import FAILED, print_json, say, show
from svgpbench.cli.progress import cell_title, reporter
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment
from svgpbench.output.table import Column, Table, number

if TYPE_CHECKING:
    from svgpbench.runs.verification import Verdict


def verify_command(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT]", help="Experiment whose records run again; all by default."
        ),
    ] = None,
    *,
    results: RecordsFolder = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            metavar="K",
            min=1,
            help="Number of records to draw from those that can run.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed of the sample.")] = 0,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Run the cells of records again and compare the numbers."""
    from svgpbench.results.store import experiments
    from svgpbench.runs.verification import verify

    results = records_folder(results)
    name, recorded = experiment, experiments(results) if results.is_dir() else []
    # records of the suite, or of a file that is not here, belong to no experiment that can be loaded
    if experiment is not None and experiment not in recorded:
        name = load_experiment(experiment).name
    if not results.is_dir():
        raise UserError(
            f"--results {results}: there is no such folder; name one with records, such "
            "as the `results` of a clone"
        )
    with reporter() as on_event:
        verdicts = verify(results, name, sample, jobs, on_event, seed)
    if as_json:
        print_json(
            [
                {
                    "cell_id": verdict.record.cell_id,
                    "experiment": verdict.record.config.experiment,
                    "cell": cell_title(verdict.record.config),
                    "verdict": verdict.kind,
                    "difference": verdict.difference,
                    "spread": verdict.spread,
                    "reason": verdict.reason,
                    "newer": sorted(verdict.newer),
                }
                for verdict in verdicts
            ]
        )
    else:
        _print(verdicts)
    kinds = {verdict.kind for verdict in verdicts}
    # nothing that could be compared is a failure too, else a folder of skipped records would pass
    if "different" in kinds or not kinds & {"bitwise", "rounding", "chaotic"}:
        raise typer.Exit(FAILED)


def _print(verdicts: list[Verdict]) -> None:
    columns = (
        *(Column("cell"), Column("verdict")),
        *(number("difference", ".0e"), number("1e-15 replicas", ".0e")),
    )
    rows = [
        [
            cell_title(verdict.record.config),
            f"{verdict.kind}: {verdict.reason}" if verdict.reason else verdict.kind,
            *(verdict.difference, verdict.spread),
        ]
        for verdict in verdicts
    ]
    show(Table(columns, rows))
    counts = Counter(verdict.kind for verdict in verdicts)
    say(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    say("largest relative difference of a column of the trace, times left out")
    newer = sorted({name for verdict in verdicts for name in verdict.newer})
    if newer:
        say(f"not in all of these records, and not compared there: {', '.join(newer)}")
