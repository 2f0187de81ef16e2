"""Figure of average ranks over data sets with their critical difference; needs ten data sets."""

from __future__ import annotations

from matplotlib.figure import Figure

from svgpbench.errors import UserError
from svgpbench.metrics import METRICS
from svgpbench.output.figure_and_table_types import FigureKind, MetricName
from svgpbench.output.panel import grid, plain
from svgpbench.output.plot_data import PlotData
from svgpbench.stats.ranks import ENOUGH, Ranks, average_ranks, critical_difference


class CriticalDifference(FigureKind):
    """The average rank of each method, the best on top, with a grey band of the critical difference.

    Methods within the band do not differ significantly from the best.

    Source: Demsar 2006.
    """

    metric: MetricName = "nlpd"

    def draw(self, plot_data: PlotData) -> Figure:
        """Return the figure. Raises `UserError` if there are fewer than ten data sets or two methods."""
        ranks = self._ranks(plot_data)
        best_first = sorted(ranks.by_method, key=lambda rank: rank.mean)
        figure, axes = grid(1, 1)
        panel = axes[0][0]
        best = best_first[0].mean
        panel.axvspan(best, best + _critical_difference(ranks), color="0.9")
        for row, rank in enumerate(best_first):
            ends = [[rank.mean - rank.low], [rank.high - rank.mean]]
            colour = plot_data.styles[rank.method].colour
            panel.errorbar(
                rank.mean, row, xerr=ends, color=colour, fmt="o", markersize=4, capsize=2
            )
        panel.set_yticks(range(len(best_first)), [plain(rank.method) for rank in best_first])
        # from high to low, which puts row 0, the best, on top
        panel.set_ylim(len(best_first) - 0.5, -0.5)
        panel.set_xlim(0.8, len(best_first) + 0.2)
        panel.set_xlabel(f"average rank in {METRICS[self.metric].label}")
        return figure

    def caption(self, plot_data: PlotData) -> str:
        """Return a sentence on the number of methods, the number of data sets and the band."""
        ranks = self._ranks(plot_data)
        return (
            f"average ranks of {len(ranks.by_method)} methods over {ranks.data_sets} data sets, ties "
            "shared, with 95 % bootstrap intervals over data sets; the band is the critical difference at "
            f"5 %, {_critical_difference(ranks):.2f} (Nemenyi), from the best."
        )

    def _ranks(self, plot_data: PlotData) -> Ranks:
        cells = plot_data.finals
        methods = [str(name) for name in cells["method"].unique()]
        ranks = average_ranks(cells, self.metric, METRICS[self.metric].better, methods)
        if ranks is None or ranks.data_sets < ENOUGH:
            count = ranks.data_sets if ranks else len(plot_data.data)
            raise UserError(
                f"critical differences of ranks take {ENOUGH} data sets and two methods; these records of "
                f"{plot_data.experiment} have {count} data sets and {len(methods)} methods"
            )
        return ranks


def _critical_difference(ranks: Ranks) -> float:
    return critical_difference(len(ranks.by_method), ranks.data_sets)
