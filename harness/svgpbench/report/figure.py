"""ELBO and NLPD against EM iteration, a column a data set: Figure 3 of Adam et al. 2021."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from svgpbench.errors import UserError
from svgpbench.report.agreement import between_backends
from svgpbench.report.collect import Collected
from svgpbench.report.curves import Curve, curves, leaves, limits
from svgpbench.report.frames import count_by, final_frame, reference_backend, trace_frame
from svgpbench.report.palette import Look, looks

FORMATS = (".png", ".pdf", ".svg")
PANELS = (("elbo", "ELBO", True), ("nlpd", "NLPD (test)", False))
STYLE: dict[Any, Any] = {
    "font.family": "serif",
    "font.serif": ["STIX Two Text", "STIXGeneral", "DejaVu Serif"],
    "mathtext.fontset": "stix",
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "svg.hashsalt": "svgpbench",
    "pdf.fonttype": 42,
}


def check_figure_path(path: Path) -> None:
    """Raise `UserError` for a file that no figure can be written to."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"--out {path}: name a file ending in {', '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise UserError(f"--out {path}: there is no folder {path.parent}")


def draw_figure(collected: Collected, path: Path) -> str:
    """Draw the figure to `path` and return its caption.

    Raises `UserError` for a file that cannot be written and for records without a trace.
    """
    check_figure_path(path)
    frame = final_frame(collected.records)
    backend = reference_backend(frame)
    mine = [r for r in collected.records if r.config.backend.title == backend]
    mine = [r for r in mine if r.config.perturbation == 0]
    traces = trace_frame(mine)
    if traces.empty:
        raise UserError(f"no record of {collected.experiment} on {backend} has a trace to draw")
    caption = _caption(collected, frame, backend)
    with matplotlib.rc_context(STYLE):
        figure = _figure(frame[frame["backend"] == backend], traces)
        try:
            figure.savefig(path, dpi=200, metadata=_metadata(path, caption))
        except OSError as error:
            raise UserError(f"--out {path} cannot be written ({error.strerror})") from None
    return caption


def _figure(finals: pd.DataFrame, traces: pd.DataFrame) -> Figure:
    names = list(finals["data"].unique())
    methods = list(finals["method"].unique())
    style = looks(methods)
    width = max(3.6, 1.36 * len(names) + 0.4)  # six columns are readable at a journal's width
    figure = Figure(figsize=(width, 3.2), layout="constrained")
    axes = figure.subplots(2, len(names), squeeze=False, sharex="col")
    for column, name in enumerate(names):
        here = traces[traces["data"] == name]
        dead = _failed_at_once(finals[finals["data"] == name], here)
        for row, (metric, label, higher) in enumerate(PANELS):
            panel = axes[row][column]
            _draw_panel(panel, curves(here, metric, dead), style, higher)
            if column == 0:
                panel.set_ylabel(label)
        axes[0][column].set_title(_title(name, here))
        axes[1][column].set_xlabel("EM iteration")
    figure.align_ylabels(list(axes[:, 0]))
    handles = [
        Line2D([], [], color=look.colour, linestyle=look.dash, linewidth=1.5, label=method)
        for method, look in style.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def _title(name: str, traces: pd.DataFrame) -> str:
    if traces.empty or pd.isna(traces["n_train"].iloc[0]):
        return name
    n, d = int(traces["n_train"].iloc[0]), int(traces["dimensions"].iloc[0])
    return f"{name}\n" + rf"$n={n}$, $D={d}$"


def _failed_at_once(finals: pd.DataFrame, traces: pd.DataFrame) -> list[str]:
    """Methods of which some replicate failed before its first trace point."""
    keys = ["split_seed", "fold", "seed"]
    traced = traces.groupby("method")[keys].apply(lambda cells: len(cells.drop_duplicates()))
    ran = finals[finals["perturbation"] == 0].groupby("method").size()
    return [str(method) for method, n in ran.items() if int(traced.get(method, 0)) < int(n)]


def _draw_panel(
    panel: Axes, lines: list[Curve], style: dict[str, Look], higher_is_better: bool
) -> None:
    low, high = limits(lines, higher_is_better)
    clipped = []
    for rank, line in enumerate(lines):
        look = style[line.method]
        if not len(line.mean):
            clipped.append((look, f"{line.method}: failed"))
            continue
        x, mean, error = line.iteration, line.mean, line.error
        # the first method on top: where lines agree, its dashes would hide the others
        order = 3 + len(lines) - rank if look.dash != "-" else 2.5
        panel.plot(x, mean, color=look.colour, linestyle=look.dash, linewidth=1.4, zorder=order)
        panel.fill_between(
            x, mean - error, mean + error, color=look.colour, alpha=0.16, linewidth=0
        )
        if line.broke_at is not None and low <= line.last <= high:
            panel.plot(x[-1], line.last, marker="x", color=look.colour, markersize=5, zorder=9)
        if (farthest := leaves(line, low, high)) is not None:
            arrow = r"$\uparrow$" if farthest > high else r"$\downarrow$"
            clipped.append((look, f"{arrow} {_short(farthest)}"))
    panel.set_ylim(low, high)
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    formatter = ScalarFormatter(useMathText=True)
    formatter.set_powerlimits((-3, 5))
    panel.yaxis.set_major_formatter(formatter)
    panel.grid(axis="y", linewidth=0.4, color="0.9")
    panel.set_axisbelow(True)
    # beside the curves' ends: bounds rise and densities fall, so that corner is empty
    for place, (look, text) in enumerate(clipped):
        y = 0.03 + 0.1 * place if higher_is_better else 0.97 - 0.1 * place
        panel.text(
            0.98,
            y,
            text,
            transform=panel.transAxes,
            color=look.colour,
            fontsize=7,
            ha="right",
            va="bottom" if higher_is_better else "top",
            zorder=10,
        )


def _short(value: float) -> str:
    """A number for a note in a panel: `-412`, or powers of ten where it is large."""
    if abs(value) < 1e4:
        return f"{value:.3g}"
    power = math.floor(math.log10(abs(value)))
    return rf"${value / 10**power:.1f}\times10^{{{power}}}$"


def _caption(collected: Collected, frame: pd.DataFrame, backend: str) -> str:
    drawn = frame[(frame["backend"] == backend) & (frame["perturbation"] == 0)]
    counts = sorted(set(count_by(drawn, "data", "method").values()))
    cells = "–".join(str(n) for n in (counts if len(counts) < 2 else (counts[0], counts[-1])))
    parts = [
        f"{collected.experiment}: mean over {cells} cells (folds × seeds; band: standard error) "
        "of the bound on the training part and of the negative log predictive density of the test "
        f"part, against EM iteration. Drawn: {backend}."
    ]
    others = [name for name in frame["backend"].unique() if name != backend]
    differ = between_backends(frame)
    if others and not math.isnan(differ):
        parts.append(
            f"{', '.join(others)}: the final ELBO of the same cell differs by {differ:.0e} "
            "relative at most."
        )
    bad = drawn[drawn["status"] != "ok"]
    if len(bad):
        counts_by = count_by(bad, "data", "method", "status")
        told = "; ".join(f"{d}, {m}: {n} {status}" for (d, m, status), n in counts_by.items())
        parts.append(f"A cross ends a curve where a cell failed ({told}).")
    parts.append("Arrows: a curve leaves the panel, to the value beside the arrow.")
    return " ".join([*parts, *(f"Note: {note}." for note in collected.notes)])


def _metadata(path: Path, caption: str) -> dict[str, str | None]:
    """The caption travels in the file; no date, so that the same records give the same file."""
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        return {"Subject": caption, "CreationDate": None}
    if suffix == ".svg":
        return {"Description": caption, "Date": None}
    return {"Description": caption}
