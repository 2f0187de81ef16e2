"""What kinds of figures and tables there are, and an entry of an experiment file as one of them.

A kind is a class behind an entry point; its fields are the keys of an entry, checked when it is drawn.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from pydantic import AfterValidator, ValidationError

from svgpbench.config import Strict, data_sets_by_name
from svgpbench.errors import UserError, unknown
from svgpbench.experiments import ArtefactEntry, Experiment
from svgpbench.experiments.error_messages import one_line
from svgpbench.metrics import metric, of_a_trace
from svgpbench.plugins import FIGURES, load
from svgpbench.results.collect import Collected
from svgpbench.results.records import Record

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from svgpbench.output.plot_data import Drawn

MetricName = Annotated[str, AfterValidator(lambda name: metric(name).name)]
TracedName = Annotated[str, AfterValidator(lambda name: of_a_trace(name).name)]


class Kind(Strict):
    """What every entry may say: which data sets and methods of the experiment it is of."""

    data: tuple[str, ...] = ()  # empty: all
    methods: tuple[str, ...] = ()  # labels; empty: all

    def chosen(self, collected: Collected) -> tuple[Record, ...]:
        """The records that an entry is of.

        Raises `UserError` for a data set or method that none of them is of.
        """
        records = collected.records
        known = data_sets_by_name({r.config.data.title for r in records})
        _check_known("data set", self.data, known)
        wanted = {data for name in self.data or known for data in known[name]}
        records = tuple(r for r in records if r.config.data.title in wanted)
        _check_known("method", self.methods, {r.config.method.title for r in records})
        return tuple(
            r for r in records if not self.methods or r.config.method.title in self.methods
        )


def _check_known(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown(f"{what} in these records", name, known)


class FigureKind(Kind, ABC):
    """A kind of figure of records, `svgpbench.figures`."""

    draws: ClassVar[str] = "records"

    @abstractmethod
    def draw(self, drawn: Drawn) -> Figure:
        """The figure; raises `UserError` where the records have nothing to draw."""

    @abstractmethod
    def caption(self, drawn: Drawn) -> str:
        """What the figure shows, in a sentence, after the experiment's name and a colon."""

    def remarks(self, drawn: Drawn) -> Sequence[str]:
        """Further sentences of the caption, such as on what marks mean."""
        return ()


class ComputedFigure(Strict, ABC):
    """A kind of figure of a frame that is computed, `svgpbench.figures`."""

    draws: ClassVar[str] = "what is computed"
    shows: str  # in a sentence, the first of the caption
    panel: str = ""  # a column: a panel each of its values; empty for one panel
    panel_label: str = ""  # before the value

    @abstractmethod
    def draw(self, frame: pd.DataFrame) -> Figure:
        """The figure; raises `UserError` for a column that the frame does not have."""

    def panels(self, frame: pd.DataFrame, *columns: str) -> list[tuple[str, pd.DataFrame]]:
        """Title and rows of each panel; raises `UserError` for one of some columns that is not there."""
        for column in filter(None, (self.panel, *columns)):
            if column not in frame:
                raise unknown("column of what is computed", column, map(str, frame.columns))
        if not self.panel:
            return [("", frame)]
        found = frame.groupby(self.panel, sort=False)
        return [(f"{self.panel_label}{_short(value)}", rows) for value, rows in found]

    def remarks(self, frame: pd.DataFrame) -> Sequence[str]:
        """Further sentences of the caption, such as on what marks mean."""
        return ()


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


class BuiltTable(Protocol):
    """A table of records, in every form that a command prints or a file holds."""

    def to_csv(self) -> str:
        """Every row, numbers in full."""

    def to_json(self) -> dict[str, Any]:
        """Every row, numbers in full, and the notes; what is not there is null."""

    def to_markdown(self) -> str:
        """Pipe tables and their footnotes."""

    def to_latex(self) -> str:
        """Tables for `booktabs`, their footnotes in the captions."""

    def to_terminal(self) -> RenderableType:
        """What rich prints."""


class TableKind(Kind, ABC):
    """A kind of table, `svgpbench.tables`."""

    draws: ClassVar[str] = "records"
    metrics: tuple[MetricName, ...] = ()

    @abstractmethod
    def build(self, collected: Collected, backends: tuple[str, ...] = ()) -> BuiltTable:
        """The table; `backends`: titles to show in a terminal, empty for the one that stands for all."""


def entries_of(
    declared: Sequence[ArtefactEntry], default: ArtefactEntry, what: str, name: str | None
) -> list[ArtefactEntry]:
    """All that an experiment declares, or the one of a name; the default where it declares none.

    Raises `UserError` with the nearest name that there is.
    """
    entries = list(declared) or [default]
    if name is None:
        return entries
    if name not in [entry.name for entry in entries]:
        raise unknown(what, name, [entry.name for entry in entries])
    return [entry for entry in entries if entry.name == name]


def kind_of(group: str, entry: ArtefactEntry, experiment: Experiment) -> Any:
    """The kind that an entry names, with the keys of the entry.

    Raises `UserError` for a kind, a key, a metric or a value that does not fit.
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
    of: str,
    base: type[FigureKind] | type[TableKind] | type[ComputedFigure],
) -> Any:
    part = group.rpartition(".")[2]
    place = declared.index(entry) if entry in declared else 0
    where = f"{of}: [[{part}]] no. {place + 1}"
    try:
        cls = load(group, entry.kind)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if not issubclass(cls, base):
        raise UserError(f"{where}: kind {entry.kind!r} draws {cls.draws}, not {base.draws}")
    keys = entry.model_extra or {}
    try:
        return cls.model_validate_json(json.dumps(keys), strict=True)
    except ValidationError as error:
        raise UserError(f"{of}: {one_line(error, cls, keys, (part, place))}") from None
