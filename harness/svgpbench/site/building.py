"""Building of the whole site from judged claims and a folder of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svgpbench.benchmarks.stability.records import read_stability
from svgpbench.papers import Paper
from svgpbench.papers.forest import CAPTION, draw, forest_rows
from svgpbench.papers.grades import Fidelity, Grade
from svgpbench.papers.grading import Judged
from svgpbench.papers.page import keep_picture
from svgpbench.papers.precomputed import NOT_PRECOMPUTED, PrecomputedResults
from svgpbench.papers.report import ArtefactReport
from svgpbench.papers.reproduction import plan, start_writing
from svgpbench.papers.selection import all_of
from svgpbench.results.collect import collect_each
from svgpbench.results.store import LoadedRecords, records_by_experiment
from svgpbench.site.artefacts import FOLDER as ARTEFACTS
from svgpbench.site.artefacts import artefact_entries
from svgpbench.site.board import board_facts
from svgpbench.site.datasets import DataSetFacts, data_facts
from svgpbench.site.downloads import FOLDER, Downloads
from svgpbench.site.entries import Entry, by_kind
from svgpbench.site.experiments import experiment_facts
from svgpbench.site.fields import Field
from svgpbench.site.folder import replaced
from svgpbench.site.meanings import FIDELITIES, KINDS, VARIANTS, numbers, regions
from svgpbench.site.methods import MethodFacts, method_facts
from svgpbench.site.overview import in_short, machine_table, method_table
from svgpbench.site.pages import Link, Page, Writer, slug
from svgpbench.site.speed import speed_sections

SECTIONS = (
    Link("Overview", "index.html"),
    Link("Board", "board.html"),
    Link("Experiments", "experiments/index.html"),
    Link("Methods", "methods/index.html"),
    Link("Data", "data/index.html"),
    Link("Speed", "speed.html"),
    Link("Downloads", "downloads.html"),
)

Claims = Sequence[tuple[Paper, Judged]]

FOREST = "effects.png"
"""Name of the picture of effects on the overview."""


@dataclass(frozen=True)
class Built:
    """Number of pages and sizes of a site, and what was left out."""

    pages: int
    size: int  # bytes of all files
    downloads: int  # bytes of these in the folder of downloads
    left_out: tuple[str, ...]


def build_site(
    judged: Claims,
    results: Path,
    out: Path,
    tell: Callable[[str], None] = lambda text: None,
    precomputed: PrecomputedResults = NOT_PRECOMPUTED,
) -> Built:
    """Build the site of judged claims and of the records in a folder.

    Args:
        judged: papers with their judged claims.
        results: folder of records.
        out: folder of the site.
        tell: function called with the name of each part before it is made.
        precomputed: frames of computed figures, and the executor that draws figures.

    Raises:
        UserError: `out` has other files or cannot be written, a package is missing, or records
            are damaged.
    """
    with replaced(out) as site:
        building = _Building(judged, results, site, tell, precomputed)
        try:
            return building.build()
        finally:  # after an exception, no file is written once the folder is deleted
            started = [x for futures in building.writing.values() for x in futures.values()]
            wait([future for future in started if not future.cancel()])


class _Building:
    """Builder of all pages. Records become downloads first, so that pages can link to them."""

    def __init__(
        self,
        judged: Claims,
        results: Path,
        site: Path,
        tell: Callable[[str], None],
        precomputed: PrecomputedResults,
    ) -> None:
        self.judged, self.results, self.site, self.tell = judged, results, site, tell
        self.precomputed = precomputed
        self.papers = list({paper.name: paper for paper, _ in judged}.values())
        self.writer = Writer(site, SECTIONS)
        self.downloads = Downloads(site)
        self.left_out: list[str] = []
        self.pages = 0
        self.writing: dict[str, dict[str, Future[ArtefactReport]]] = {}  # by paper and artefact

    def build(self) -> Built:
        for paper in self.papers:  # first, so that the other pages are made meanwhile
            selection, claims = all_of(paper), [x.judged for x in self._entries(paper)]
            self.writing[paper.name] = start_writing(
                selection,
                plan(selection, None, ()),
                self.results,
                self.site / ARTEFACTS,
                claims,
                self.precomputed,
            )
        self.tell("records")
        by_experiment = records_by_experiment(self.results)
        self.downloads.add_records(self.results, by_experiment)
        collected, self.left_out = collect_each(self.results, by_experiment)
        fields = [Field(x) for x in collected]
        methods = method_facts(fields)
        for pages in (
            self._overview(fields, methods, by_experiment.values()),
            self._methods(methods),
            self._data(fields),
            self._experiments(fields),
            self._papers(),
            # last: its page of downloads lists the files that the pages before it have added
            self._single_pages(),
        ):
            for page in pages:
                self.writer.write(page)
                self.pages += 1
        self.writer.write_assets()
        pictures = list(self.site.rglob("*.png"))
        # `list`, because `map` raises the error of a process only where its result is asked for
        list(self.precomputed.executor.map(keep_picture, pictures, pictures))
        size, downloads = _size(self.site), _size(self.site / FOLDER)
        return Built(self.pages, size, downloads, tuple(self.left_out))

    def _entries(self, paper: Paper) -> list[Entry]:
        return [Entry(*pair) for pair in self.judged if pair[0].name == paper.name]

    def _overview(
        self,
        fields: Sequence[Field],
        methods: Sequence[MethodFacts],
        loaded: Iterable[LoadedRecords],
    ) -> Iterator[Page]:
        self.tell("overview")
        board = board_facts(self.site)
        yield Page("board.html", "The board", "board.html", {"board": board}, "Board")
        entries = [Entry(*pair) for pair in self.judged]
        claims = [(paper, _claims(self._entries(paper))) for paper in self.papers]
        grades = [(paper, [x.judged.grade for x in of_paper]) for paper, of_paper in claims]
        stability = read_stability(self.results / "survival").values()
        content = {
            "board": board,
            "papers": [(paper, by_kind(self._entries(paper))) for paper in self.papers],
            "in_short": {paper.name: in_short(found) for paper, found in grades},
            "entries": entries,
            "claims": len(_claims(entries)),
            "counts": _counts(_claims(entries)),
            "counts_by_kind": [(kind, _counts(group)) for kind, group in by_kind(_claims(entries))],
            "forest": self._forest(entries),
            "methods": method_table({x.name: x.info for x in methods}, fields, stability),
            "method_pages": {x.name: f"methods/{slug(x.name)}.html" for x in methods},
            "machines": machine_table(record for each in loaded for record in each.records),
            "fidelities": list(Fidelity),
            "kinds": KINDS,
            "experiments": len(fields),
            "cells": sum(len(field.records) for field in fields),
        }
        yield Page("index.html", "Overview", "overview.html", content, "Overview")
        rules = {
            "numbers": numbers(),
            "regions": regions(),
            "fidelities": FIDELITIES,
            "kinds": KINDS,
            "variants": VARIANTS,
        }
        yield Page("rules.html", "How claims are graded", "rules.html", rules)

    def _forest(self, entries: Sequence[Entry]) -> dict[str, Any] | None:
        """Draw the effects of the claims beside what matters; None if none compares numbers."""
        rows = forest_rows(entry.judged for entry in entries)
        if not rows:
            return None
        width, height = draw(rows, self.site / FOREST)
        facts = {"picture": FOREST, "rows": len(rows), "caption": CAPTION}
        return facts | {"width": width, "height": height}

    def _papers(self) -> Iterator[Page]:
        for paper in self.papers:
            self.tell(paper.name)
            entries = self._entries(paper)
            reports = {name: x.result() for name, x in self.writing[paper.name].items()}
            content = {
                "paper": paper,
                "entries": entries,
                "groups": by_kind(entries),
                "counts": _counts(_claims(entries)),
                "artefacts": artefact_entries(
                    paper, reports, self.results, self.site, self.downloads
                ),
                "links": self.downloads.add_paper(paper),
                "results": self.results,
            }
            path = f"papers/{slug(paper.name)}.html"
            yield Page(path, paper.about.title, "paper.html", content, "Overview")

    def _methods(self, methods: Sequence[MethodFacts]) -> Iterator[Page]:
        self.tell("methods")
        yield Page("methods/index.html", "Methods", "methods.html", {"methods": methods}, "Methods")
        titles = {paper.name: paper.about.title for paper in self.papers}
        for method in methods:
            content = {"method": method, "titles": titles}
            path = f"methods/{slug(method.name)}.html"
            yield Page(path, method.name, "method.html", content, "Methods")

    def _data(self, fields: Sequence[Field]) -> Iterator[Page]:
        data: list[DataSetFacts] = data_facts(fields)
        yield Page("data/index.html", "Data sets", "datasets.html", {"sets": data}, "Data")
        for data_set in data:
            path = f"data/{slug(data_set.name)}.html"
            yield Page(path, data_set.name, "dataset.html", {"set": data_set}, "Data")

    def _experiments(self, fields: Sequence[Field]) -> Iterator[Page]:
        self.tell("experiments")
        experiments, name = [*experiment_facts(fields, self.site, self.downloads)], "Experiments"
        content: dict[str, Any] = {"experiments": experiments}
        yield Page("experiments/index.html", name, "experiments.html", content, name)
        for facts in experiments:
            content = {"facts": facts, "results": self.results}
            path = f"experiments/{slug(facts.name)}.html"
            yield Page(path, facts.name, "experiment.html", content, name)

    def _single_pages(self) -> Iterator[Page]:
        self.tell("times")
        sections, unread = speed_sections(self.results, self.site)
        self.left_out += unread
        yield Page("speed.html", "Speed", "speed.html", {"records": sections}, "Speed")
        content = {"files": list(self.downloads.files.values()), "left_out": self.left_out}
        yield Page("downloads.html", "Downloads", "downloads.html", content, "Downloads")


def _claims(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that are claims of a paper, without our own findings."""
    return [entry for entry in entries if not entry.judged.claim.ours]


def _counts(entries: Sequence[Entry]) -> list[tuple[Grade, int]]:
    counts = Counter(entry.judged.grade for entry in entries)
    return [(grade, counts[grade]) for grade in Grade]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
