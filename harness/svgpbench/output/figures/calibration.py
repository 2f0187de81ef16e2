"""Figure of the share of targets below a predictive quantile, against the level of the quantile."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from svgpbench.metrics import PIT_LEVELS, pit_column
from svgpbench.output.figure_and_table_types import FigureKind
from svgpbench.output.panel import finish, grid, legend, title_of
from svgpbench.output.plot_data import Drawn
from svgpbench.stats.differences import REPLICATE
from svgpbench.stats.means import WHICH_ERROR, error_of_mean, overlap

COLUMNS = [pit_column(level) for level in PIT_LEVELS]


class Calibration(FigureKind):
    """A column a data set of regression, a curve a method: its distribution of the PIT.

    The diagonal is calibrated; below it at low levels and above it at high ones, predictions are too wide.
    Source: Gneiting, Balabdaoui and Raftery 2007 (probability integral transform).
    """

    def draw(self, drawn: Drawn) -> Figure:
        """Return the figure. Raises `UserError` if no record has these shares.

        Older records and those of a density that is not Gaussian lack them.
        """
        shares = {
            record.cell_id: [record.metrics[name] for name in COLUMNS]
            for record in drawn.records
            if record.status == "ok" and COLUMNS[0] in record.metrics
        }
        if not shares:
            raise drawn.none_of("the shares of targets below predictive quantiles")
        of = {
            name: [r for r in drawn.records if r.config.data.title == name] for name in drawn.data
        }
        of = {name: mine for name, mine in of.items() if any(r.cell_id in shares for r in mine)}
        figure, axes = grid(1, len(of))
        for panel, (name, records) in zip(axes[0], of.items(), strict=True):
            panel.plot([0, 1], [0, 1], color="0.4", linewidth=0.6, linestyle=":")
            for method, style in drawn.styles.items():
                mine = [r.cell_id for r in records if r.config.method.title == method]
                here = [cell for cell in mine if cell in shares]
                if not here:
                    continue
                # [cells, levels], then with the ends (0, 0) and (1, 1)
                y = np.array([shares[cell] for cell in here], dtype=np.float64)
                y = np.pad(y, ((0, 0), (1, 0)))
                y = np.pad(y, ((0, 0), (0, 1)), constant_values=1.0)
                x, mean = [0.0, *PIT_LEVELS, 1.0], y.mean(axis=0)
                panel.plot(x, mean, color=style.colour, linestyle=style.dash, linewidth=1.4)
                cells = drawn.finals.set_index("cell_id").loc[here]
                values = pd.DataFrame(y, pd.MultiIndex.from_frame(cells[REPLICATE]))
                error = np.nan_to_num(error_of_mean(values, overlap(cells)))
                panel.fill_between(
                    x, mean - error, mean + error, color=style.colour, alpha=0.16, linewidth=0
                )
            finish(panel)
            panel.set(xlim=(0, 1), ylim=(0, 1), xlabel="level of the quantile")
            panel.set_title(title_of(name, drawn.finals[drawn.finals["data"] == name]))
        axes[0][0].set_ylabel("share of targets below")
        legend(figure, drawn.styles)
        return figure

    def caption(self, drawn: Drawn) -> str:
        """Return a sentence on the curves and bands."""
        return (
            "share of test targets below the predictive quantile of each level (0.1, …, 0.9), mean over "
            f"{drawn.cells} cells (folds × seeds); dotted: calibrated; band: standard error, {WHICH_ERROR}."
        )
