"""Base classes of the kinds of evidence, and of the rows that predicates read from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import pandas as pd

from svgpbench.config import Strict
from svgpbench.papers.report import WrittenFigure, WrittenTable
from svgpbench.results.records import Record

if TYPE_CHECKING:
    from svgpbench.papers.loading import Paper
    from svgpbench.papers.schema import Artefact

PartOfPaper: TypeAlias = Literal["theory", "experiments", "speed"]


@dataclass(frozen=True)
class EvidenceFrame(ABC):
    """Rows that predicates read; if records are missing, the frame is empty and `why_not` has the reason."""

    frame: pd.DataFrame
    why_not: str = ""
    records: tuple[Record, ...] = ()  # of an experiment

    def rows_of(self, methods: Sequence[str]) -> pd.DataFrame:
        """Return the rows of some methods, or all rows if `methods` is empty."""
        return self.frame[self.frame["method"].isin(methods)] if methods else self.frame

    def why_not_compared(self, methods: Sequence[str]) -> str:
        """Return why these methods cannot be compared; empty if they can."""
        return self.why_not

    @property
    @abstractmethod
    def condition(self) -> str:
        """Sizes of the runs, as text."""


@dataclass(frozen=True)
class TimesFrame(EvidenceFrame):
    """Rows with a column `seconds`, of methods that are known only once they have run."""

    about: str = ""  # problems, steps or seeds, and versions of the peers
    source: str = ""  # record or plan, as text

    @property
    def condition(self) -> str:
        return self.about

    def why_not_compared(self, methods: Sequence[str]) -> str:
        if self.why_not:
            return self.why_not
        timed = set(self.frame["method"])
        untimed = [name for name in methods if name not in timed]
        return f"no times of {', '.join(untimed)} in {self.source}" if untimed else ""


class Evidence(Strict, ABC):
    """Evidence that an artefact's claims rest on. A subclass is a kind that `paper.toml` can declare."""

    part_of_paper: ClassVar[PartOfPaper] = "experiments"
    drawn_elsewhere: ClassVar[str] = ""
    """Link to a page that draws its records, as Markdown."""

    @property
    @abstractmethod
    def source(self) -> str:
        """File, folder, plan or experiment of its records, as Markdown for a table cell."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Kind and source of its records, such as `times of speed/fig5.json`, as text for a page."""


class RecordedEvidence(Evidence):
    """Evidence that is read from records in a results folder."""

    @property
    def path(self) -> str:
        """File or folder of the records below the results; empty for cells, which have a store."""
        return ""

    @abstractmethod
    def load(self, paper: Paper, artefact: Artefact, results: Path) -> EvidenceFrame:
        """Return the rows of the records. If records are missing, `why_not` of the result has the reason.

        Raises `UserError` for a damaged file.
        """

    @abstractmethod
    def command(self, paper: Paper, artefact: Artefact, results: Path) -> str:
        """Return the command that makes the records."""

    def write(
        self, paper: Paper, artefact: Artefact, loaded: EvidenceFrame, results: Path, folder: Path
    ) -> Iterable[WrittenFigure | WrittenTable]:
        """Draw and tabulate the records, whose rows are `loaded`, to files in a folder, which is created.

        The default writes nothing. A kind that has figures or tables overrides it. Raises `UserError` if a
        file cannot be written, and `OSError` if the folder cannot be created.
        """
        return ()
