"""`svgpbench fetch`: download data sets, so that runs need no network."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from svgpbench.cli.download_progress import reporter
from svgpbench.cli.file_states import (
    FileRow,
    State,
    file_rows,
    files_to_fetch,
    print_table,
    without_files,
)
from svgpbench.cli.options import AsJson
from svgpbench.cli.printing import FAILED, print_json
from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment
from svgpbench.experiments.error_messages import as_user_errors
from svgpbench.plugins import registries, registry_of
from svgpbench_datasets.files import File


def fetch_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Names of data sets.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Fetch every data set.")] = False,
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            "--experiment", metavar="NAME|FILE", help="Experiment whose data sets are fetched."
        ),
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(
            "--mirror",
            metavar="DIR|URL",
            help="Mirror to try before upstream; repeat for several. SVGPBENCH_MIRROR by default.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache", metavar="DIR", help="Folder of downloaded files; SVGPBENCH_DATA by default."
        ),
    ] = None,
    downloads: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="File that you downloaded yourself for the data set NAME.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the files and download nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Download data sets, each file verified by its checksum, or by its form where none is known."""
    from svgpbench_datasets.fetch.cache import cache_folder
    from svgpbench_datasets.fetch.origins import mirrors_from_environment

    if downloads and dry_run:
        raise UserError("--from downloads nothing: leave --dry-run out")
    entries = _requested_entries(names or (), experiment or (), every)
    with as_user_errors():
        folder = cache_folder(cache)
        rows = list(file_rows(entries, folder, mirror or mirrors_from_environment()))
        others = list(without_files(entries, folder))
        if downloads:
            _adopt(downloads, entries, rows, folder)
        elif not dry_run:
            _download(rows, folder, mirror or mirrors_from_environment())
    if as_json:
        content = {
            "cache": str(folder),
            "files": [row.to_json() for row in rows],
            "without_files": [
                {"name": name, "at_hand": at_hand, "how": how} for name, at_hand, how in others
            ],
        }
        print_json(content)
    else:
        print_table(rows, others, folder, dry_run)
    failed = any(row.state == State.FAILED for row in rows)
    if failed or not (dry_run or all(at_hand for _, at_hand, _ in others)):
        raise typer.Exit(FAILED)


def _requested_entries(
    names: Iterable[str], experiments: Iterable[str], every: bool
) -> dict[str, Any]:
    """Return the declared entries of the requested data sets, by name, in the order of the request."""
    requested = [*names]
    for experiment in experiments:
        problems = load_experiment(experiment).problems
        requested += [
            data.name for problem in problems for data in problem.data if data.path is None
        ]
    with as_user_errors():
        if every:
            requested += [name for registry in registries() for name in registry.names()]
        if not requested:
            raise UserError("name a data set, or give --experiment or --all (see `svgpbench list`)")
        return {name: registry_of(name).describe(name) for name in requested}


def _adopt(
    downloads: Sequence[Path], entries: Mapping[str, Any], rows: Sequence[FileRow], cache: Path
) -> None:
    """Put downloaded files of one data set into the cache. Raises `UserError` if it needs none."""
    from svgpbench_datasets.fetch.fetching import Fetcher
    from svgpbench_datasets.sources import check_form

    if len(entries) != 1:
        raise UserError(f"--from is for one data set, not for {len(entries)}; name one")
    ((name, entry),) = entries.items()
    files = [row.file for row in rows if row.state != State.SHIPPED]
    if not rows:
        raise UserError(f"{name} has no files: --from is not needed")
    if not files:
        raise UserError(f"{name} comes with the package: --from is not needed")
    fetcher = Fetcher(cache, accept=partial(check_form, entry))
    for path in downloads:
        adopted = fetcher.adopt(path, files)
        for row in rows:
            if row.state == State.TO_FETCH and cache / row.file.path in adopted:
                row.set_fetched(cache)


def _download(rows: Sequence[FileRow], cache: Path, mirrors: Sequence[str]) -> None:
    """Fetch each file once. A file that cannot be fetched is reported, and the next one is tried."""
    from svgpbench_datasets.fetch.fetching import Fetcher
    from svgpbench_datasets.fetch.origins import Unavailable
    from svgpbench_datasets.sources import check_form

    files = files_to_fetch(rows)
    if not files:
        return

    def failed(file: File, error: Unavailable) -> None:
        # again, with the name of the data set, which the command in its message needs
        named = Unavailable(error.path, error.answers, files[file][0].name)
        print(f"error: {named}", file=sys.stderr)
        for row in files[file]:
            row.state, row.answers = State.FAILED, error.answers

    with reporter() as on_progress:
        fetcher = Fetcher(
            cache,
            mirrors,
            accept=lambda file, path: check_form(files[file][0].entry, file, path),
            on_progress=on_progress,
        )
        fetcher.fetch(list(files), failed=failed)
    for row in rows:
        if row.state == State.TO_FETCH:
            row.set_fetched(cache)
