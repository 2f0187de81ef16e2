"""`svgpbench inducing`: say how many inducing points are enough for a table, with a bound as certificate."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console

from svgpbench.cli.data.audit import Features, Groups, NoHeader, TableTask, TargetKind
from svgpbench.cli.one_data_set import USUAL_LIKELIHOODS, one_data_set
from svgpbench.cli.options import AsJson, KernelName
from svgpbench.cli.printing import print_json, show, tell
from svgpbench.errors import DataWarning
from svgpbench.experiments.cell import load_data
from svgpbench.experiments.leaks import audit_table, leak_notes, target_notes
from svgpbench.output.figure import check_figure_path, write_figure
from svgpbench.output.table import Column, Table, number
from svgpbench.posterior.inducing_counts import COUNTS, answer, compare_inducing_counts
from svgpbench.posterior.plots import plot_inducing_counts


def inducing_command(
    data: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help="Name of a data set, or a table file of your own."
        ),
    ],
    *,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="COLUMN", help="Column to predict, in a file of your own."
        ),
    ] = None,
    task: TableTask = None,
    no_header: NoHeader = False,
    features: Features = None,
    groups: Groups = None,
    count: Annotated[
        list[int] | None,
        typer.Option(
            "--count",
            min=1,
            help="Number of inducing points to try; repeat for several.",
            show_default=", ".join(map(str, COUNTS)),
        ),
    ] = None,
    likelihood: Annotated[
        str | None,
        typer.Option("--likelihood", help="Likelihood; the usual one of the task by default."),
    ] = None,
    kernel: KernelName = "matern52",
    backend: Annotated[
        str, typer.Option("--backend", metavar="NAME[:MODE]", help="Backend of the fits.")
    ] = "numpy",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the initial values.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Image of the bounds against the number."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit all rows with more and more inducing points, and say how many are enough."""
    if out:
        check_figure_path(out)
    config = one_data_set(
        data,
        [target] if target else [],
        task,
        no_header=no_header,
        features=features,
        groups=groups,
    )
    rows = load_data(config)
    X = pd.DataFrame(rows.X, columns=list(rows.feature_names))
    settings: dict[str, Any] = {
        "kernel": kernel,
        "backend": backend,
        "seed": seed,
        "progress": True,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # notes below the table say it
        table = compare_inducing_counts(
            X,
            rows.y,
            count or COUNTS,
            likelihood=likelihood or USUAL_LIKELIHOODS[TargetKind(rows.task)][0],
            on_fit=_tell_of_fit,
            **settings,
        )
    if out:
        write_figure(plot_inducing_counts(table, len(rows.y)), out)
    if as_json:
        print_json({"rows": table.to_dict("records"), "answer": answer(table)})
        return
    shown = Table(
        (
            number("M"),
            number("bound", ".6g"),
            number("gain", ".2g"),
            number("upper bound", ".6g"),
            number("missing", ".2g"),
            Column("enough"),
            number("share", lambda x: f"{100 * x:.1f} %"),
            number("seconds", ".2g"),
            Column("settled"),
        ),
        [
            (
                *(row.inducing, row.bound, row.gain, row.upper_bound, row.missing),
                *("yes" if row.enough else "no", row.share, row.seconds),
                "no" if row.warning else "yes",
            )
            for row in table.itertuples()
        ],
        notes=(
            "gain: over the previous M, in nats per row of the data; missing: the most that more points "
            "could add to the bound, at the hyperparameters of the largest M; share: of what any number "
            "could gain over a noise model; settled: no, if the bound still moved in the last quarter of "
            "the fit",
        ),
    )
    # by no split, as all rows train
    audits = [audit_table(config, [])] if config.path else []
    show(shown, answer(table), *leak_notes(audits), *target_notes(audits))


def _tell_of_fit(row: Mapping[str, Any]) -> None:
    """Say on a terminal that a fit has ended; the next may take minutes."""
    if Console(stderr=True).is_terminal:
        tell(f"M = {row['inducing']}: bound {row['bound']:.6g} after {row['seconds']:.0f} s")
