"""Progress of downloads on stderr: a bar on a terminal, otherwise one line per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bar

from svgpbench.output.number_formats import in_bytes

if TYPE_CHECKING:
    from svgpbench_datasets.fetch.limits import Progress


@contextmanager
def reporter() -> Iterator[Callable[[Progress], None]]:
    """Yield a function to call with the progress of downloads."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (
        BarColumn(bar_width=24),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=console, transient=True) as bars:
        bar = bars.add_task("starting", total=None)

        def show(progress: Progress) -> None:
            text = f"{progress.path}: {progress.doing}"
            bars.update(bar, description=text, completed=progress.done, total=progress.total)

        yield show


def _lines(console: Console) -> Callable[[Progress], None]:
    """Return a function that prints one line per step, and none for more bytes of that step."""
    last = ""

    def show(progress: Progress) -> None:
        nonlocal last
        size = f" {in_bytes(progress.total)}" if progress.total else ""
        text = f"{progress.path}: {progress.doing}{size}"
        if text != last:
            console.print(text, markup=False, highlight=False, soft_wrap=True, style="dim")
        last = text

    return show
