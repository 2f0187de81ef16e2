"""Python functions for the tasks of the command line; they return records, data frames and posteriors.

No framework is imported in this process: everything that needs one runs in a worker process. Names in
`__all__` and their arguments follow semantic versioning; everything else may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from svgpbench.backends import known_backends
from svgpbench.errors import UserError
from svgpbench.experiments import Selection, TableEntry, load_experiment
from svgpbench.experiments.plan import Plan
from svgpbench.experiments.validation import checked_plan
from svgpbench.output.figure_and_table_types import TableKind, entries_of, kind_of
from svgpbench.papers import load_paper, paper_folders
from svgpbench.papers.judged_claims import judged_claims
from svgpbench.plugins import TABLES
from svgpbench.posterior import (
    Posterior,
    compare_inducing_counts,
    evidence_bounds,
    export_posterior,
    fit,
    import_posterior,
    load_posterior,
    save_posterior,
)
from svgpbench.results import store
from svgpbench.results.collect import collect
from svgpbench.results.frames import final_frame, trace_frame
from svgpbench.results.records import Record
from svgpbench.results.unsettled import unsettled
from svgpbench.runs.pool import run_cells

__all__ = [
    "Posterior",
    "Record",
    "UserError",
    "check",
    "claims",
    "compare_inducing_counts",
    "evidence_bounds",
    "export_posterior",
    "finals",
    "fit",
    "import_posterior",
    "load_posterior",
    "run",
    "save_posterior",
    "table",
    "traces",
]

RUNS = Path("runs")


def run(
    experiment: str | Path,
    *,
    preset: str | None = None,
    results: str | Path = RUNS,
    backends: Sequence[str] = (),
    methods: Sequence[str] = (),
    data: Sequence[str] = (),
    seeds: Sequence[int] = (),
    jobs: int | None = None,
    timeout: float | None = None,
    force: bool = False,
) -> list[Record]:
    """Run an experiment and return the records of its cells. Finished cells are not run again.

    Args:
        experiment: name of a shipped experiment, or path of a .toml file.
        preset: size of the experiment. None means `quick` if the experiment has it, else no preset.
        results: folder of records.
        backends: `jax`, `torch:compile`, …; they replace the experiment's own.
        methods: labels or names; if empty, all methods of the preset.
        data: names of data sets; if empty, all data sets of the preset.
        seeds: they replace the experiment's own.
        jobs: number of simultaneous workers; None means as many as fit.
        timeout: limit in seconds for each cell; None means no limit.
        force: run finished cells again.

    Raises:
        UserError: for a mistake in the file or in the arguments. A failed cell raises nothing: it is a
            record with a status.
        KeyboardInterrupt: if the run was interrupted.

    Examples:
        >>> import tempfile
        >>> from svgpbench import api
        >>> fig3 = "adam2021-fig3"
        >>> with tempfile.TemporaryDirectory() as runs:
        ...     records = api.run(
        ...         fig3, backends=["numpy"], methods=["t-SVGP"], data=["airfoil"], results=runs
        ...     )
        ...     table = api.table(fig3, results=runs)
        >>> api.finals(records)["status"].tolist()  # two variants of t-SVGP, two splits
        ['ok', 'ok', 'ok', 'ok']
        >>> trace = api.traces(records[:1])
        >>> bool(trace["elbo"].iloc[-1] > trace["elbo"].iloc[0])
        True
        >>> table["method"].tolist()
        ['t-SVGP', 't-SVGP untied']
    """
    name, folder = str(experiment), Path(results)
    selection = Selection(backends=backends, methods=methods, data=data, seeds=seeds)
    plan = checked_plan(name, preset, selection)
    summary = run_cells(plan.configs, results=folder, jobs=jobs, timeout=timeout, force=force)
    if summary.interrupted:
        raise KeyboardInterrupt
    return store.records_of(folder, summary.cells).records


def finals(records: Sequence[Record]) -> pd.DataFrame:
    """Return one row per record: configuration of the cell, status and final metrics.

    Args:
        records: what `run` returned.

    Returns:
        The metrics have the names of `svgpbench.metrics.METRICS`, such as `elbo` in nats and `nlpd` in nats
        per test row. They are NaN for a cell that failed, whose `status` is not `ok`.
        `unsettled` says how the bound still moved in the last quarter of a run; it is empty if it had
        settled.

    Examples:
        See `run`.
    """
    return final_frame(records).assign(unsettled=[unsettled(record) for record in records])


def traces(records: Sequence[Record]) -> pd.DataFrame:
    """Return one row per evaluated iteration of each record.

    Args:
        records: what `run` returned.

    Returns:
        The columns that say which cell it is, `iteration`, `seconds` of training until then, and the metrics
        that were evaluated. A failed cell has rows up to its failure.

    Examples:
        See `run`.
    """
    return trace_frame(records)


def table(
    experiment: str | Path,
    *,
    preset: str | None = None,
    results: str | Path = RUNS,
    name: str | None = None,
) -> pd.DataFrame:
    """Return a table that an experiment declares, with unrounded numbers.

    Args:
        experiment: name of a shipped experiment, or path of a .toml file.
        preset: size of the experiment whose cells the table has; None means all cells that have records.
        results: folder of records.
        name: name of the table; None means the first.

    Raises:
        UserError: if there are no records, or if the records do not fit together.

    Examples:
        See `run`.
    """
    declared = load_experiment(str(experiment))
    default = TableEntry(name="finals")
    entry = entries_of(declared.tables, default, f"table of {declared.name}", name)[0]
    kind: TableKind = kind_of(TABLES, entry, declared)
    cells = Plan.of(declared, preset) if preset else declared
    return kind.build(collect(Path(results), cells)).frame


def check(
    backends: Sequence[str] | None = None, *, full: bool = False, device: str = "cpu"
) -> pd.DataFrame:
    """Check that backends compute the same numbers.

    Args:
        backends: names such as `jax` or `torch:compile`; None means all that are installed.
        full: compare every pair of method and likelihood, which takes minutes, in place of a part of them.
        device: cpu or cuda.

    Returns:
        One row per comparison with its worst difference, the tolerance, and whether it is `ok`. A process
        that died gives a row with `ok` False.

    Raises:
        UserError: for a backend that cannot run.

    Examples:
        >>> from svgpbench.api import check
        >>> bool(check(["numpy"])["ok"].all())
        True
    """
    from svgpbench.checks import run_checks

    report = run_checks(known_backends(backends), full=full, device=device)
    found = report.to_json()
    died = [{"case": line, "ok": False} for line in found["failures"]]
    rows = [
        {"kind": kind} | row for kind in ("matrix", "identities", "rounding") for row in found[kind]
    ]
    return pd.DataFrame([*rows, *({"kind": "process"} | row for row in died)])


def claims(*ids: str, paper: str | None = None, results: str | Path = RUNS) -> pd.DataFrame:
    """Grade papers' claims by algebra and by records, and return one row per claim.

    Args:
        *ids: claims such as `adam2021-16`; none means all.
        paper: only claims of this paper, such as `adam2021`.
        results: folder of records. A claim whose records are not there is `not run`.

    Raises:
        UserError: for an unknown claim or paper.

    Examples:
        >>> from svgpbench.api import claims
        >>> claims("cheng2017-03")["grade"].tolist()  # of algebra: it needs no records
        ['holds']
    """
    papers = [load_paper(name) for name in ([paper] if paper else paper_folders())]
    judged = judged_claims(papers, Path(results), ids)
    return pd.DataFrame(
        {
            "id": [verdict.claim.id for _, verdict in judged],
            "paper": [source.name for source, _ in judged],
            "claim": [verdict.claim.claim for _, verdict in judged],
            "grade": [verdict.grade for _, verdict in judged],
            "fidelity": [verdict.fidelity for _, verdict in judged],
            "finding": [verdict.finding for _, verdict in judged],
            "effect": [verdict.effect for _, verdict in judged],
            "steadiness": [verdict.steady for _, verdict in judged],
        }
    )
