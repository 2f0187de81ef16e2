"""`svgpbench data make`: simulate a data set on the user's machine and write it to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from svgpbench.errors import UserError
from svgpbench.experiments.error_messages import data_errors_are_the_users
from svgpbench.plugins import registry_of
from svgpbench_datasets import REGISTRY
from svgpbench_datasets.generated.walker import Walk, make_walker


def make_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a data set that is made on your machine.")
    ],
    *,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Number of rows.")] = Walk.rows,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = Walk.seed,
    policy: Annotated[
        str,
        typer.Option(
            "--policy", metavar="NAME", help="Policy that moves the walker: oscillator or random."
        ),
    ] = Walk.policy,
    frames: Annotated[
        int, typer.Option("--frames", min=1, max=2, help="Number of stacked frames per row.")
    ] = Walk.frames,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE.parquet", help="File to write; in the cache by default."
        ),
    ] = None,
) -> None:
    """Simulate a data set and keep it as a Parquet file.

    Needs the extra `walker`: pip install 'svgpbench[walker]'.
    """
    with data_errors_are_the_users():
        walk = Walk(rows, seed, policy, cast(Literal[1, 2], frames))
        path = _checked_path(name, walk, out)
        with _reporter(rows) as on_rows:
            make_walker(path, walk, on_rows)
    typer.echo(f"{rows} rows of {len(walk.columns)} columns: {path}")


def _checked_path(name: str, walk: Walk, out: Path | None) -> Path:
    """Return the path of the file to make. Raises `UserError` if name or path does not fit."""
    from svgpbench_datasets.fetch.cache import cache_folder

    entry = registry_of(name).describe(name)
    if getattr(entry, "made", None) is None:
        names = [x for x in REGISTRY.names() if REGISTRY.describe(x).made]
        raise UserError(
            f"data set {name!r} is not one that is made (these are: {', '.join(names)})"
        )
    if out is None:
        # a file in the cache is loaded by the name of the set, so it is the declared walk only
        if walk != Walk():
            raise UserError(
                f"other rows, seed, policy or frames than those of {name!r}: "
                "name a file for them with --out"
            )
        return cache_folder() / str(entry.made)
    if out.suffix.lower() not in {".parquet", ".pq"}:
        raise UserError(f"--out {out}: the file is Parquet; let its name end in .parquet")
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a .parquet file in it")
    return out


@contextmanager
def _reporter(rows: int) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows made so far.

    It shows a bar on a terminal; otherwise one line is printed at the start. Both go to stderr.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"making {rows} rows", highlight=False, style="dim")
        yield lambda done: None
        return
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("rows,"))
    with Progress(
        *columns, TimeRemainingColumn(), TextColumn("left"), console=console, transient=True
    ) as progress:
        bar = progress.add_task("", total=rows)
        yield lambda done: progress.update(bar, completed=done)
