"""The committed table of verdicts: read back, so that a partial run keeps the other rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from fault_files import Fault
from killing import Verdict

RESULTS = Path(__file__).parent / "RESULTS.md"
HEADER = ("area", "file", "function", "fault", "status", "killed by", "s", "of")
NOT_RUN = ("not run", "", "", "")

Row = tuple[str, ...]  # status, killed by, seconds, what was judged
Rows = dict[tuple[str, str], Row]  # by area and sentence


def row_of(verdict: Verdict, judged_as: str) -> Row:
    """A verdict as cells; whole seconds, so that a run again changes few of them."""
    return verdict.status, verdict.by, f"{verdict.seconds:.0f}", judged_as


def standing(rows: Rows, faults: Sequence[Fault], root: Path) -> Rows:
    """The verdicts on faults, tests and files that are still as they were judged."""
    now = {(fault.area, fault.says): fault.judged_as(root) for fault in faults}
    return {key: row for key, row in rows.items() if row[-1] and row[-1] == now.get(key)}


def read_rows(path: Path) -> Rows:
    """The verdicts that a table has; none where there is no table."""
    if not path.exists():
        return {}
    found: Rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in line[2:-2].split(" | ")]
        if len(cells) == len(HEADER) and cells[0] not in {HEADER[0], "---"}:
            area, _, _, says, *verdict = cells
            found[area, says] = tuple(verdict)
    return found


def write_rows(path: Path, faults: Sequence[Fault], rows: Mapping[tuple[str, str], Row]) -> None:
    """Write a row for every declared fault, and no other."""
    listed = [(fault, rows.get((fault.area, fault.says), NOT_RUN)) for fault in faults]
    counts = Counter(row[0] for _, row in listed)
    told = ", ".join(f"{counts[status]} {status}" for status in sorted(counts))
    lines = [
        "# Faults and the tests that notice them",
        "",
        f"Written by `make mutants`: {len(faults)} faults, {told}.",
        "",
        f"| {' | '.join(HEADER)} |",
        f"| {' | '.join(['---'] * (len(HEADER) - 2))} | ---: | --- |",
    ]
    for fault, row in listed:
        cells = (fault.area, Path(fault.file).name, fault.function, fault.says, *row)
        lines.append(f"| {' | '.join(_escaped(cell) for cell in cells)} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _escaped(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")
