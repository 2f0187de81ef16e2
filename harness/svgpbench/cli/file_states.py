"""Files of `svgpbench fetch`: the state of each file, and the table that is printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from svgpbench.cli.printing import show
from svgpbench.output.number_formats import in_bytes
from svgpbench.output.table import Column, Styled, Table, number
from svgpbench_datasets.files import File

if TYPE_CHECKING:
    from svgpbench_datasets.fetch.origins import OriginAnswer


class State(StrEnum):
    """States of a file."""

    SHIPPED = "shipped"
    CACHED = "cached"
    FETCHED = "fetched"
    TO_FETCH = "wanted"
    FAILED = "failed"


_MEANING = {
    State.SHIPPED: "needs no download",
    State.CACHED: "is there",
    State.FETCHED: "was fetched",
    State.TO_FETCH: "is to be downloaded",
    State.FAILED: "could not be had",
}


@dataclass
class FileRow:
    """State of one file of one data set."""

    name: str
    entry: Any
    file: File
    state: State
    origins: tuple[str, ...] = ()
    answers: tuple[OriginAnswer, ...] = ()
    sha256: str | None = None  # declared, or computed from the accepted file
    path: Path | None = None  # of the file, if it is in the cache

    @property
    def meaning(self) -> str:
        """State in words, for the table."""
        if self.state == State.TO_FETCH and not self.origins:
            return f"by hand: svgpbench fetch {self.name} --from FILE"
        by_form = ", told by its form" if self.sha256_is_computed else ""
        return f"{_MEANING[self.state]}{by_form}"

    @property
    def sha256_is_computed(self) -> bool:
        """True if no sha256 is published and `sha256` was computed from the accepted file."""
        return self.file.known_by == "form" and self.sha256 is not None

    @property
    def size(self) -> str:
        """Declared size or, for a file known by its form, the maximum size; empty if unknown."""
        at_most = "at most " if self.file.known_by == "form" else ""
        return f"{at_most}{in_bytes(self.file.most)}" if self.file.most else ""

    def set_fetched(self, cache: Path) -> None:
        """Set the state to fetched, with the path in the cache and the sha256 of the file."""
        from svgpbench_datasets.fetch.cache import sha256_of

        self.state, self.path = State.FETCHED, cache / self.file.path
        self.sha256 = sha256_of(self.file, cache)

    def to_json(self) -> dict[str, Any]:
        """Return the dictionary that `--json` prints."""
        by_form, most = self.file.known_by == "form", self.file.most or None
        source = "found" if self.sha256_is_computed else "declared" if self.sha256 else None
        return {
            "name": self.name,
            "path": self.file.path,
            "bytes": None if by_form else most,
            "at_most": most if by_form else None,
            "sha256": self.sha256,
            "sha256_is": source,
            "told_by": self.file.known_by,
            "state": self.state,
            "at": None if self.path is None else str(self.path),
            "places": list(self.origins),
            "answers": [asdict(answer) for answer in self.answers],
        }


def file_rows(entries: Mapping[str, Any], cache: Path, mirrors: Sequence[str]) -> Iterator[FileRow]:
    """Yield one row per file of each data set; variants of a data set share files.

    Args:
        entries: declared entry of each data set, by name; an entry of a third-party registry may
            have no `all_files`.
        cache: folder of downloaded files.
        mirrors: folders or URLs that are tried before upstream.

    Raises:
        DataError: a mirror is invalid, or the cache cannot be read.
    """
    from svgpbench_datasets.fetch.cache import is_cached, sha256_of
    from svgpbench_datasets.fetch.origins import origins

    for name, entry in entries.items():
        for file in getattr(entry, "all_files", entry.files):
            row = FileRow(name, entry, file, State.TO_FETCH, sha256=file.checksums.get("sha256"))
            if file.shipped:
                row.state = State.SHIPPED
            elif is_cached(file, cache):
                row.state, row.path = State.CACHED, cache / file.path
                row.sha256 = sha256_of(file, cache)
            else:
                row.origins = tuple(origin.name for origin in origins(file, mirrors))
            yield row


def without_files(entries: Mapping[str, Any], cache: Path) -> Iterator[tuple[str, bool, str]]:
    """Yield (name, at hand, how to get it) for each data set that is made or generated."""
    for name, entry in entries.items():
        if getattr(entry, "made", None) is not None:
            at_hand = (cache / entry.made).is_file()
            how = f"make it: {entry.upstream.removeprefix('made: ')}"
            yield name, at_hand, "was made" if at_hand else how
        elif getattr(entry, "generated", None) is not None:
            yield name, True, "is drawn from its seed when it is loaded"


def files_to_fetch(rows: Sequence[FileRow]) -> dict[File, list[FileRow]]:
    """Return the files to download; each with its rows, one per data set that needs it."""
    files: dict[File, list[FileRow]] = {}
    for row in rows:
        if row.state == State.TO_FETCH:
            files.setdefault(row.file, []).append(row)
    return files


def print_table(
    rows: Sequence[FileRow], others: Sequence[tuple[str, bool, str]], cache: Path, dry_run: bool
) -> None:
    """Print one line per file and per data set of `without_files`.

    Below, print the computed sha256, and the number and size of the files to download. With `dry_run`,
    print the addresses of these files too.
    """
    columns = (Column("data set", wrap=False), Column("file"), number("size"), Column(""))
    values: list[list[Any]] = []
    for row in rows:
        values.append([row.name, row.file.path, row.size, row.meaning])
        if row.state in (State.TO_FETCH, State.FAILED) and not row.file.addresses:
            upstream = getattr(row.entry, "upstream", "")
            values.append(["", Styled(f"  {upstream}", "dim"), "", ""])
    values += [[name, "", "", how] for name, _, how in others]
    show(Table(columns, values))
    missing = files_to_fetch(rows)
    for file, (row, *_) in missing.items() if dry_run else ():
        for origin in row.origins:  # one unwrapped line each, so that addresses can be copied
            typer.echo(f"{file.path} from {origin}")
    if computed := {row.file.path: row.sha256 for row in rows if row.sha256_is_computed}:
        typer.echo("no sha256 is published, this one was found:")
        for path, sha256 in computed.items():
            typer.echo(f"{sha256}  {path}")
    if downloads := [file for file, (row, *_) in missing.items() if row.origins]:
        most = sum(file.most for file in downloads)
        typer.echo(f"{len(downloads)} to download, at most {in_bytes(most)}, to {cache}")
