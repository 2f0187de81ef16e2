"""Figure of the share of targets below a predictive quantile, against the level of the quantile."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from svgpbench.metrics import PIT_LEVELS, pit_column
from svgpbench.output.figure_and_table_types import FigureKind
from svgpbench.output.panel import finish, grid, legend, title_of
from svgpbench.output.plot_data import PlotData
from svgpbench.stats.differences import REPLICATE
from svgpbench.stats.means import WHICH_ERROR, error_of_mean, overlap

COLUMNS = [pit_column(level) for level in PIT_LEVELS]


class Calibration(FigureKind):
    """The distribution of the PIT: one panel per data set of regression, one curve per method.

    The diagonal is calibrated. Predictions are too wide if a curve is below it at low levels and above it
    at high levels.
    Source: Gneiting, Balabdaoui and Raftery 2007 (probability integral transform).
    """

    def draw(self, plot_data: PlotData) -> Figure:
        """Return the figure. Raises `UserError` if no record has these shares.

        Older records and those of a density that is not Gaussian lack them.
        """
        shares = {
            record.cell_id: [record.metrics[name] for name in COLUMNS]
            for record in plot_data.records
            if record.status == "ok" and COLUMNS[0] in record.metrics
        }
        if not shares:
            raise plot_data.none_of("the shares of targets below predictive quantiles")
        panels = {
            name: [r for r in plot_data.records if r.config.data.title == name]
            for name in plot_data.data
        }
        panels = {
            name: records
            for name, records in panels.items()
            if any(r.cell_id in shares for r in records)
        }
        figure, axes = grid(1, len(panels))
        for panel, (name, records) in zip(axes[0], panels.items(), strict=True):
            panel.plot([0, 1], [0, 1], color="0.4", linewidth=0.6, linestyle=":")
            for method, style in plot_data.styles.items():
                cell_ids = [
                    r.cell_id
                    for r in records
                    if r.config.method.title == method and r.cell_id in shares
                ]
                if not cell_ids:
                    continue
                # [cells, levels], then with the ends (0, 0) and (1, 1)
                y = np.array([shares[cell_id] for cell_id in cell_ids], dtype=np.float64)
                y = np.pad(y, ((0, 0), (1, 0)))
                y = np.pad(y, ((0, 0), (0, 1)), constant_values=1.0)
                x, mean = [0.0, *PIT_LEVELS, 1.0], y.mean(axis=0)
                panel.plot(x, mean, color=style.colour, linestyle=style.dash, linewidth=1.4)
                cells = plot_data.finals.set_index("cell_id").loc[cell_ids]
                values = pd.DataFrame(y, pd.MultiIndex.from_frame(cells[REPLICATE]))
                error = np.nan_to_num(error_of_mean(values, overlap(cells)))
                panel.fill_between(
                    x, mean - error, mean + error, color=style.colour, alpha=0.16, linewidth=0
                )
            finish(panel)
            panel.set(xlim=(0, 1), ylim=(0, 1), xlabel="level of the quantile")
            panel.set_title(title_of(name, plot_data.finals[plot_data.finals["data"] == name]))
        axes[0][0].set_ylabel("share of targets below")
        legend(figure, plot_data.styles)
        return figure

    def caption(self, plot_data: PlotData) -> str:
        """Return a sentence on the curves and bands."""
        return (
            "share of test targets below the predictive quantile of each level (0.1, …, 0.9), mean over "
            f"{plot_data.cells} cells (folds × seeds); dotted: calibrated; band: standard error, "
            f"{WHICH_ERROR}."
        )
