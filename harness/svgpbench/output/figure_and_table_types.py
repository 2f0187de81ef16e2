"""Base classes of the kinds of figures and tables, and their construction from entries of a file.

A kind is a class behind an entry point. Its fields are the keys of an entry in an experiment file, which
are checked when the entry is drawn.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, ValidationError

from svgpbench.config import Strict, data_sets_by_name
from svgpbench.errors import UserError, refuse_unknown
from svgpbench.experiments import ArtefactEntry, Experiment
from svgpbench.experiments.error_messages import one_line
from svgpbench.metrics import metric, of_a_trace
from svgpbench.plugins import FIGURES, load
from svgpbench.results.collect import Collected
from svgpbench.results.records import Record

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from svgpbench.output.built_table import BuiltTable
    from svgpbench.output.plot_data import PlotData

MetricName = Annotated[str, AfterValidator(lambda name: metric(name).name)]
TracedName = Annotated[str, AfterValidator(lambda name: of_a_trace(name).name)]


class EntryKeys(Strict):
    """Keys of every entry of a file: the data sets and methods of the experiment that it shows."""

    data: tuple[str, ...] = ()  # empty: all
    methods: tuple[str, ...] = ()  # labels, or printed rows that methods stand for; empty: all

    def records_of(self, collected: Collected) -> tuple[Record, ...]:
        """Return the records of the data sets and methods of the entry.

        A name that is no label of a record means the methods that stand for this row of the print.

        Raises `UserError` if a data set or a method has no record.
        """
        records = collected.records
        by_name = data_sets_by_name({r.config.data.title for r in records})
        refuse_unknown("data set in these records", self.data, by_name)
        data_sets = {data for name in self.data or by_name for data in by_name[name]}
        records = tuple(r for r in records if r.config.data.title in data_sets)
        labels = {r.config.method.title for r in records}
        rows = {label: collected.rows[label] for label in labels if label in collected.rows}
        refuse_unknown("method in these records", self.methods, {*labels, *rows.values()})
        chosen = {
            label
            for label in labels
            if label in self.methods or rows.get(label) in {*self.methods} - labels
        }
        return tuple(r for r in records if not self.methods or r.config.method.title in chosen)


class FigureKind(EntryKeys, ABC):
    """A kind of figure of records, registered in `svgpbench.figures`."""

    draws: ClassVar[str] = "records"

    @abstractmethod
    def draw(self, plot_data: PlotData) -> Figure:
        """Return the figure. Raises `UserError` if the records have nothing to draw."""

    @abstractmethod
    def caption(self, plot_data: PlotData) -> str:
        """Return a sentence on the content of the figure. It follows the experiment's name and a colon."""

    def remarks(self, plot_data: PlotData) -> Sequence[str]:
        """Return further sentences of the caption, such as the meaning of marks."""
        return ()


class ComputedFigure(Strict, ABC):
    """A kind of figure of a computed frame, registered in `svgpbench.figures`."""

    draws: ClassVar[str] = "what is computed"
    shows: str  # the first sentence of the caption
    panel: str = ""  # a column with one panel per value; empty for one panel
    panel_label: str = ""  # text before the value

    @abstractmethod
    def draw(self, frame: pd.DataFrame) -> Figure:
        """Return the figure. Raises `UserError` if the frame lacks a column."""

    def panels(self, frame: pd.DataFrame, *columns: str) -> list[tuple[str, pd.DataFrame]]:
        """Return the title and rows of each panel. Raises `UserError` if a given column is missing."""
        needed = filter(None, (self.panel, *columns))
        refuse_unknown("column of what is computed", needed, map(str, frame.columns))
        if not self.panel:
            return [("", frame)]
        return [
            (self.panel_label + (f"{value:g}" if isinstance(value, float) else str(value)), rows)
            for value, rows in frame.groupby(self.panel, sort=False)
        ]

    def remarks(self, frame: pd.DataFrame) -> Sequence[str]:
        """Return further sentences of the caption, such as the meaning of marks."""
        return ()


class TableKind(EntryKeys, ABC):
    """A kind of table of records, registered in `svgpbench.tables`."""

    draws: ClassVar[str] = "records"
    metrics: tuple[MetricName, ...] = ()

    @abstractmethod
    def build(self, collected: Collected, backends: tuple[str, ...] = ()) -> BuiltTable:
        """Return the table. A terminal shows the titles in `backends`, or the reference backend if empty."""


def entries_of(
    declared: Sequence[ArtefactEntry], default: ArtefactEntry, what: str, name: str | None
) -> list[ArtefactEntry]:
    """Return all declared entries, or the one with a name. Without declared entries, use the default.

    Raises `UserError` with the nearest name if there is no such entry.
    """
    entries = list(declared) or [default]
    if name is None:
        return entries
    refuse_unknown(what, [name], [entry.name for entry in entries])
    return [entry for entry in entries if entry.name == name]


def kind_of(group: str, entry: ArtefactEntry, experiment: Experiment) -> Any:
    """Return the kind that an entry names, with the keys of the entry as fields.

    Raises `UserError` if the kind, a key, a metric or a value is not valid.
    """
    part = group.rpartition(".")[2]  # `figures` or `tables`
    base = FigureKind if group == FIGURES else TableKind
    return _kind(group, entry, getattr(experiment, part), experiment.name, base)


def computed_figure(
    entry: ArtefactEntry, declared: Sequence[ArtefactEntry], where: str
) -> ComputedFigure:
    """Return the kind that an entry of `declared` names; raises `UserError` as `kind_of` does."""
    kind: ComputedFigure = _kind(FIGURES, entry, declared, where, ComputedFigure)
    return kind


def _kind(
    group: str,
    entry: ArtefactEntry,
    declared: Sequence[ArtefactEntry],
    source: str,
    base: type[FigureKind] | type[TableKind] | type[ComputedFigure],
) -> Any:
    """Return the kind as `kind_of` does. Messages start with `source`, the name of the file."""
    part = group.rpartition(".")[2]
    # an entry of `--kind`, or the default one, is not in the file
    index = declared.index(entry) if entry in declared else 0
    where = f"{source}: [[{part}]] no. {index + 1}"
    try:
        cls = load(group, entry.kind)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if not issubclass(cls, base):
        raise UserError(f"{where}: kind {entry.kind!r} draws {cls.draws}, not {base.draws}")
    keys = entry.model_extra or {}
    try:
        # as JSON: strict validation takes a list of JSON for a tuple, but no list of Python
        return cls.model_validate_json(json.dumps(keys), strict=True)
    except ValidationError as error:
        raise UserError(f"{source}: {one_line(error, cls, keys, (part, index))}") from None
