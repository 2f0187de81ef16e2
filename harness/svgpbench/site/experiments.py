"""Facts for the page of each experiment: who leads, tables with the best first, and curves of training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from svgpbench.errors import UserError
from svgpbench.output.figure import draw_figure
from svgpbench.output.figures.convergence import Convergence
from svgpbench.output.pareto_table import ParetoTable
from svgpbench.output.result_table import Finals
from svgpbench.output.table import Table
from svgpbench.site.downloads import Downloads
from svgpbench.site.fields import Field
from svgpbench.site.pages import Link, slug
from svgpbench.stats.ranks import FEWEST

PICTURES = "experiments"
MOST_PANELS = 12
"""The most data sets in a picture of training; the tables have them all."""
MOST_CURVES = 16
"""The most methods whose curves can be told apart, and whose names fit below a picture."""


@dataclass(frozen=True)
class ExperimentFacts:
    """An experiment with all that its page shows."""

    field: Field
    leaders: tuple[str, ...]  # a sentence for each score that methods are ranked by
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    picture: str  # path relative to the site; empty for none
    caption: str  # of the picture, or why there is none
    links: tuple[Link, ...]

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.field.experiment


def experiment_facts(
    fields: Sequence[Field], site: Path, downloads: Downloads
) -> Iterator[ExperimentFacts]:
    """Yield the facts of every experiment, and draw its picture into `site`."""
    (site / PICTURES).mkdir(parents=True, exist_ok=True)
    for field in fields:
        # by NLPD, or by the first score where no record has it
        scores = [score.name for score in field.scores]
        score = "nlpd" if "nlpd" in scores else next(iter(scores), None)
        finals = Finals(sorted_by=score).build(field.collected)
        tables, notes = [*finals.tables], [*finals.footnotes]
        # an experiment with too many differences to judge has no outcomes, and no front
        if field.outcomes and score:
            try:
                front = ParetoTable(metrics=(score,)).build(field.collected)
            except UserError as error:
                notes.append(str(error))
            else:
                tables += front.tables
                notes += [note for note in front.footnotes if note not in notes]
        picture, caption = _curves(field, site)
        links = tuple(downloads.of_experiment(field.experiment))
        yield ExperimentFacts(
            field, tuple(_leaders(field)), tuple(tables), tuple(notes), picture, caption, links
        )


def _leaders(field: Field) -> Iterator[str]:
    """Yield who has the best average rank, or that there are too few data sets to say."""
    for score in field.scores:
        if (ranks := field.ranks.get(score.name)) is None:
            continue
        first = [f"{rank.method}, {rank.text}" for rank in ranks.leaders]
        yield (
            f"Best average rank in {score.title}: {' and '.join(first)}, among "
            f"{len(ranks.by_method)} methods on {ranks.data_sets} data sets."
        )
    if not field.ranks and len(field.methods) > 1:
        yield f"No average rank: it takes {FEWEST} data sets. The table has the best method of each first."


def _curves(field: Field, site: Path) -> tuple[str, str]:
    """Draw the bound and the density during training; return the picture's path and its caption."""
    if (count := len(field.methods)) > MOST_CURVES:
        return "", f"The curves of {count} methods are not drawn: the tables have them all."
    shown = field.data[:MOST_PANELS]
    records = tuple(r for r in field.records if r.config.data.title in shown)
    traced = [name for name in ("elbo", "nlpd") if any(r.trace.get(name) for r in records)]
    if not traced:
        return "", "No record has a trace of the bound or of NLPD."
    picture = f"{PICTURES}/{slug(field.experiment)}.png"
    try:
        caption = draw_figure(
            replace(field.collected, records=records),
            site / picture,
            Convergence(metrics=tuple(traced), scale="log"),
        )
    except UserError as error:
        return "", str(error)
    if len(shown) < len(field.data):
        caption += f" The first {len(shown)} of {len(field.data)} data sets."
    return picture, caption
