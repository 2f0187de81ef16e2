"""`svgpbench fetch`: data sets onto this machine, so that runs need no network."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from svgpbench.cli.download_progress import in_bytes, reporter
from svgpbench.cli.options import AsJson
from svgpbench.errors import UserError, unknown
from svgpbench.experiments import load_experiment
from svgpbench.plugins import DATASETS, plugins
from svgpbench_datasets import DataError, DataFile
from svgpbench_datasets.files import LocalFile

if TYPE_CHECKING:
    from svgpbench_datasets.fetch import Answer

FAILED = 1
SHIPPED, CACHED, FETCHED, WANTED, FAILED_STATE = "shipped", "cached", "fetched", "wanted", "failed"
BY_HAND = "by hand"
MEANING = {
    SHIPPED: "needs no download",
    CACHED: "is there",
    FETCHED: "was fetched",
    WANTED: "is to be downloaded",
    FAILED_STATE: "could not be had",
    BY_HAND: "has no known hash: put it below a folder that SVGPBENCH_MIRROR names",
}


@dataclass
class Row:
    """One file of one data set, and what is known or came of it."""

    name: str
    file: DataFile | LocalFile
    state: str
    places: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    at: Path | None = field(default=None)

    def to_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "name": self.name,
            "path": self.file.path,
            "bytes": self.file.bytes,
            "sha256": self.file.sha256,
            "state": self.state,
            "at": None if self.at is None else str(self.at),
            "places": list(self.places),
            "answers": [asdict(answer) for answer in self.answers],
        }


def fetch_command(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Data sets.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every data set.")] = False,
    experiment: Annotated[
        list[str] | None,
        typer.Option("--experiment", metavar="NAME|FILE", help="The data sets of an experiment."),
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(
            "--mirror",
            metavar="DIR|URL",
            help="Ask it before upstream; repeat for several. SVGPBENCH_MIRROR by default.",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", metavar="DIR", help="Where files go. SVGPBENCH_DATA by default."),
    ] = None,
    given: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="FILE", help="What you downloaded for NAME yourself."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List, download nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Download data sets, each file verified by its checksum."""
    from svgpbench_datasets.fetch import cache_folder, mirrors_from_environment

    if given and dry_run:
        raise UserError("--from downloads nothing: leave --dry-run out")
    chosen = _chosen(names or (), experiment or (), every)
    folder = cache_folder(cache)
    with data_errors_are_the_users():
        rows = list(_rows(chosen, folder, mirror or mirrors_from_environment()))
        if given:
            _adopt(given, chosen, rows, folder)
        elif not dry_run:
            _download(rows, folder, mirror or mirrors_from_environment())
    if as_json:
        content = {"cache": str(folder), "files": [row.to_json() for row in rows]}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        _print(rows, folder, dry_run)
    if any(row.state == FAILED_STATE for row in rows):
        raise typer.Exit(FAILED)


@contextmanager
def data_errors_are_the_users() -> Iterator[None]:
    """A mistake in data or in how it was asked for, as the kind of error that ends in one line."""
    try:
        yield
    except DataError as error:
        raise UserError(str(error)) from None


def _chosen(
    names: Iterable[str], experiments: Iterable[str], every: bool
) -> dict[str, tuple[DataFile | LocalFile, ...]]:
    """The files of each data set asked for, in the order of asking."""
    with data_errors_are_the_users():
        known = {
            name: registry.describe(name)
            for point in plugins(DATASETS).values()
            for registry in (point.load(),)
            for name in registry.names()
        }
    wanted = [*names]
    for experiment in experiments:
        problems = load_experiment(experiment).problems
        wanted += [each.name for one in problems for each in one.data if each.path is None]
    if every:
        wanted += known
    if not wanted:
        raise UserError("name a data set, or give --experiment or --all (see `svgpbench list`)")
    for name in wanted:
        if name not in known:
            raise unknown("data set", name, known)
    # a registry of somebody else's need not know of published splits
    return {name: getattr(known[name], "all_files", known[name].files) for name in wanted}


def _rows(
    chosen: dict[str, tuple[DataFile | LocalFile, ...]], cache: Path, mirrors: Sequence[str]
) -> Iterator[Row]:
    """Each file of each data set; variants of a data set share theirs."""
    from svgpbench_datasets.fetch import is_cached, places

    for name, files in chosen.items():
        for file in files:
            if isinstance(file, LocalFile):
                yield Row(name, file, BY_HAND)
            elif not file.addresses:
                yield Row(name, file, SHIPPED)
            elif is_cached(file, cache):
                yield Row(name, file, CACHED, at=cache / file.path)
            else:
                asked = tuple(place.name for place in places(file, mirrors))
                yield Row(name, file, WANTED, asked)


def _adopt(
    given: Sequence[Path],
    chosen: dict[str, tuple[DataFile | LocalFile, ...]],
    rows: list[Row],
    cache: Path,
) -> None:
    from svgpbench_datasets.fetch import adopt_file

    if len(chosen) != 1:
        raise UserError(f"--from is for one data set, not for {len(chosen)}; name one")
    files = [row.file for row in rows if row.state != SHIPPED and isinstance(row.file, DataFile)]
    if not files and any(row.state == BY_HAND for row in rows):
        raise UserError(f"{next(iter(chosen))}: a file {MEANING[BY_HAND]}")
    if not files:
        raise UserError(f"{next(iter(chosen))} comes with the package: --from is not needed")
    for path in given:
        taken = adopt_file(path, files, cache=cache)
        for row in rows:
            if row.state == WANTED and cache / row.file.path in taken:
                row.state, row.at = FETCHED, cache / row.file.path


def _download(rows: Sequence[Row], cache: Path, mirrors: Sequence[str]) -> None:
    """Fetch each file once; one that cannot be had does not keep the next from being fetched."""
    from svgpbench_datasets.fetch import Unavailable, fetch_file, shared_archives

    wanted = _wanted(rows)
    if not wanted:
        return
    with shared_archives(list(wanted), cache) as keep, reporter() as on_progress:
        for file, askers in wanted.items():
            name = askers[0].name
            try:
                at = fetch_file(
                    file,
                    cache=cache,
                    mirrors=mirrors,
                    name=name,
                    keep=keep,
                    on_progress=on_progress,
                )
            except Unavailable as error:
                print(f"error: {error}", file=sys.stderr)
                for row in askers:
                    row.state, row.answers = FAILED_STATE, error.answers
            else:
                for row in askers:
                    row.state, row.at = FETCHED, at


def _wanted(rows: Sequence[Row]) -> dict[DataFile, list[Row]]:
    """The files to download, and the rows of each."""
    wanted: dict[DataFile, list[Row]] = {}
    for row in rows:
        if row.state == WANTED and isinstance(row.file, DataFile):
            wanted.setdefault(row.file, []).append(row)
    return wanted


def _print(rows: Sequence[Row], cache: Path, dry_run: bool) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("data set", "file", "size", ""):
        table.add_column(column, overflow="fold", justify="right" if column == "size" else "left")
    for row in rows:
        size = "" if row.file.bytes is None else in_bytes(row.file.bytes)
        texts = [row.name, row.file.path, size, MEANING[row.state]]
        table.add_row(*(Text(text) for text in texts))
        if dry_run:
            for place in row.places:
                table.add_row("", Text(f"  from {place}", style="dim"))
    Console().print(table)
    if missing := _wanted(rows):
        total = sum(file.bytes or 0 for file in missing)
        typer.echo(f"{len(missing)} to download, {in_bytes(total)} uncompressed, to {cache}")
