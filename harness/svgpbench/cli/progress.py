"""Progress of a run on stderr: a bar on a terminal, otherwise one line per cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from svgpbench.config import CellConfig
from svgpbench.metrics import METRICS, USUAL
from svgpbench.output.terminal import progress_bar

if TYPE_CHECKING:
    from svgpbench.results.records import Record
    from svgpbench.runs.events import Event


def cell_title(config: CellConfig) -> str:
    """Return the title of a cell: `airfoil, fold 0, t-SVGP, jax`."""
    parts = [config.data.title, f"fold {config.split.fold}"]
    if config.split.kind == "random":
        parts[1] = f"split {config.split.seed}"
    if config.seed:
        parts.append(f"seed {config.seed}")
    parts += [config.method.title, config.backend.title]
    if config.split.held_out is not None:  # the trials of a search differ in their rates alone
        parts.append(f"rates {config.training.e_rate:g}, {config.training.m_rate:g}")
    if config.perturbation:
        parts.append(f"inputs perturbed by {config.perturbation:g}")
    return ", ".join(parts)


@contextmanager
def reporter() -> Iterator[Callable[[Event], None]]:
    """Yield a function to call with each event of a run."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda event: _print_line(console, event)
        return
    with progress_bar(console) as progress:
        bar = progress.add_task("starting", total=None)

        def show(event: Event) -> None:
            from svgpbench.runs.events import Finished, Noticed, Planned, SetAside

            if isinstance(event, SetAside | Noticed):
                # by the console of the bar, which draws the bar again below the line
                _print_line(progress.console, event)
            elif isinstance(event, Planned):
                progress.update(bar, total=event.total, description="starting workers")
            elif isinstance(event, Finished):
                progress.update(bar, completed=event.done)
            else:
                progress.update(bar, description=cell_title(event.config))

        yield show


def _usual_metrics(record: Record) -> Iterator[str]:
    """Yield the usual metrics of a record with status `ok`, as `title value`; none for others."""
    for name in USUAL[record.task] if record.status == "ok" else ():
        value = record.metrics.get(name)
        if value is not None:
            yield f"{METRICS[name].title} {value:.4g}"


def _print_line(console: Console, event: Event) -> None:
    """Print one line for an event. The start of a cell prints nothing."""
    from svgpbench.runs.events import Finished, Noticed, Planned, SetAside

    text = None
    if isinstance(event, SetAside):
        text = f"warning: {event.reason}; it is {event.path.name} now, and its cell runs again"
    elif isinstance(event, Noticed):
        text = f"warning: {event.line}"
    elif isinstance(event, Planned):
        cells = f"{event.total} cell{'s' * (event.total != 1)}"
        text = f"{cells} to run, {event.resumed} done earlier, {event.jobs} at a time"
    elif isinstance(event, Finished):
        record = event.record
        ended = ", ".join([record.status, *_usual_metrics(record)])
        runner = " (by another run on this folder)" if event.elsewhere else ""
        text = f"[{event.done}/{event.total}] {cell_title(record.config)}: {ended}{runner}"
    if text is not None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
