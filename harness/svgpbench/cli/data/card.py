"""Facts of a data set as (key, text) lines: declared by its registry or counted in its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from svgpbench.output.number_formats import in_bytes
from svgpbench_datasets import DatasetEntry
from svgpbench_datasets.audit.report import Audit
from svgpbench_datasets.errors import join_names
from svgpbench_datasets.files import File, UnseenFile
from svgpbench_datasets.reading.table import Layout

Lines: TypeAlias = Iterable[tuple[str, str]]

FEW = 6
"""Number of names that a line shows."""
_SEPARATED = {
    "csv": "commas",
    "semicolon": "semicolons",
    "tab": "tabs",
    "whitespace": "blanks",
    "pipe": "|",
}
_MISSING = {
    "refuse": "refused",
    "drop-row": "rows that have one are left out",
    "middle-code": "a missing category is the middle of the codes",
}


def declared_card(entry: DatasetEntry) -> Lines:
    """Yield the lines that the registry declares; no file of the data set is read."""
    yield from _what(entry)
    yield "rows", str(entry.rows)
    yield "features", f"{len(entry.features)}: {join_names(entry.features, FEW)}"
    yield "fixed splits", _splits(entry)
    for file in entry.all_files:
        yield "file", f"{file.path}, {_size(file)}"
        for address in file.addresses:
            inside = f" ({address.member} in it)" if address.member else ""
            yield "from", f"{address.url}{inside}"
    yield from _origin(entry)
    yield "fingerprint", entry.fingerprint or "none is declared"


def card(audit: Audit) -> Lines:
    """Yield the lines of a data set: declared facts, counted facts and flags."""
    entry, facts = audit.entry, audit.facts
    if entry is None:
        yield "task", f"{audit.task}, target {audit.target}"
    else:
        yield from _what(entry)
    yield "rows", f"{facts.rows}, {facts.distinct_inputs} with distinct inputs"
    yield "repeated rows", f"{facts.repeated_rows} (inputs and target of an earlier row)"
    yield "features", str(facts.features)
    yield "constant columns", join_names(facts.constant_columns, FEW) or "none"
    yield "missing values", _missing(audit)
    low, high = facts.target_range
    if facts.classes:
        yield "classes", ", ".join(f"{label}: {count}" for label, count in facts.classes.items())
    else:
        yield "target", f"{low:g} to {high:g}, {facts.target_values} different values"
    over_classes = f", over classes {facts.row_correlation_ratio:.2f}" if facts.classes else ""
    yield "row number and target", f"|correlation| {facts.row_correlation:.2f}{over_classes}"
    yield "row before", f"target {facts.previous_ratio:.2f} times as unlike as of any two rows"
    yield "nearest row", f"target {facts.nearest_ratio:.2f} times as unlike as of any two rows"
    yield "linear fit", f"R² {facts.linear_r2:.2g} over all rows"
    seen = f"{facts.test_seen} of {facts.test_rows}, {facts.test_told} with their target"
    yield "test inputs in training", f"{seen} ({facts.split})"
    if entry is not None:
        yield "fixed splits", _splits(entry)
    for flag in audit.flags:
        yield "LEAK" if flag.leak else "note", flag.text
    if entry is not None:
        yield from _origin(entry)
    unverified = entry is not None and entry.fingerprint is None
    why = " (unverified: nobody has declared what it should be)" if unverified else ""
    yield "fingerprint", audit.fingerprint + why


def layout_in_words(layout: Layout) -> str:
    """Describe in words the reader, separator and header of a user's file."""
    if layout.reader not in _SEPARATED:
        return layout.reader
    header = f"names in line {layout.skip_lines + 1}" if layout.header else "no names: x1, x2, ..."
    if layout.names is not None:
        header = "names in a comment above the rows"
    return f"text separated by {_SEPARATED[layout.reader]}, {header}"


def _what(entry: DatasetEntry) -> Lines:
    yield "about", entry.title
    yield "task", f"{entry.task}, target {entry.target}"
    if others := [output for output in entry.outputs if output != entry.target]:
        table = entry.name.partition("@")[0]
        yield "other targets", f"{join_names(others, FEW)}: {table}@{others[0]}, ..."


def _origin(entry: DatasetEntry) -> Lines:
    for defect in entry.defects:
        yield "known defect", defect
    yield "upstream", entry.upstream
    yield "licence", entry.licence
    yield "citation", entry.citation


def _splits(entry: DatasetEntry) -> str:
    return str(entry.splits.count) if entry.splits else "none"


def _size(file: File) -> str:
    if isinstance(file, UnseenFile):
        return f"at most {in_bytes(file.at_most)}; no copy was seen: it is told by its form"
    size = "comes with the package" if file.bytes is None else in_bytes(file.bytes)
    return f"{size}, sha256 {file.sha256}"


def _missing(audit: Audit) -> str:
    facts = audit.facts
    if facts.missing_rows == 0 or audit.entry is None:
        return "none"
    columns = [f"{name}: {count}" for name, count in facts.missing_cells.items()]
    treatment = _MISSING[audit.entry.missing]
    return f"in {facts.missing_rows} rows of the files ({', '.join(columns)}); {treatment}"
