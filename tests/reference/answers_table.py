"""Write the tables of libraries on docs/check-your-library.md, from the reports of their runs.

    python tests/reference/answers_table.py [--check]

`make adapter LIBRARY=gpflow` makes a report. With `--check` nothing is written: status 1 if the page is not
what the reports say.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPORTS = HERE / "reports"
PROBLEMS = HERE.parents[1] / "reference" / "svgp_reference" / "problems"
PAGE = HERE.parents[1] / "docs" / "check-your-library.md"
ORDER = ("svgpbench", "gpflow", "gpytorch", "gpjax", "pyro")
TABLES = re.compile(r"(?<=<!-- libraries -->\n).*?(?=<!-- end -->)", re.DOTALL)
OUTCOMES = {
    "agrees": "agree",
    "known failure": "known failures",
    "skipped": "not supported",
    "not run": "not run",
}
NOT_RUN = {"outcome": "not run", "difference": None, "reason": "not run"}

Report = dict[str, Any]


def read_reports() -> list[Report]:
    """Return the reports that exist. Raises `ValueError` if an answer differs that is no known failure.

    A run of some answers (`pytest -k`) has a report of these; the others are added as not run.
    """
    paths = [REPORTS / f"{name}.json" for name in ORDER]
    reports = [json.loads(path.read_text("utf-8")) for path in paths if path.exists()]
    files = sorted(PROBLEMS.glob("*.json"))
    answers = {path.stem: json.loads(path.read_text("utf-8"))["answers"] for path in files}
    tests = sorted(f"{name}.{answer}" for name in answers for answer in answers[name])
    for report in reports:
        report["answers"] = {test: report["answers"].get(test, NOT_RUN) for test in tests}
        if unlisted := [k for k, x in report["answers"].items() if x["outcome"] == "differs"]:
            raise ValueError(f"{report['library']}: {unlisted} differ, and are no known failures")
    return reports


def tables(reports: list[Report]) -> str:
    """Return both tables: answers that agree by problem and library, and what does not agree."""
    problems = sorted({test.partition(".")[0] for test in reports[0]["answers"]})
    libraries = [f"{report['library']} ({report['date']})" for report in reports]
    lines = [_row("problem", *libraries), _row(*["---"] * (1 + len(reports)))]
    lines += [_row(f"`{name}`", *(_cell(report, name) for report in reports)) for name in problems]
    lines += [_row("**all**", *map(_total, reports)), ""]
    lines += [_row("library", "answers", "difference", "why"), _row("---", "---", "---", "---")]
    lines += [_row(*row) for report in reports for row in _others(report)]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    inner = " | ".join(cell.replace("|", r"\|") for cell in cells)
    return f"| {inner} |"


def _cell(report: Report, problem: str) -> str:
    """Return how many answers of a problem agree, and the largest relative difference of these."""
    entries = [x for test, x in report["answers"].items() if test.startswith(f"{problem}.")]
    agreeing = [x["difference"] for x in entries if x["outcome"] == "agrees"]
    if not agreeing:
        return "–"
    count = (
        f"{len(agreeing)}"
        if len(agreeing) == len(entries)
        else f"{len(agreeing)} of {len(entries)}"
    )
    return f"{count}, {max(agreeing):.0e}"


def _total(report: Report) -> str:
    counts = Counter(x["outcome"] for x in report["answers"].values())
    return ", ".join(f"{counts[k]} {word}" for k, word in OUTCOMES.items() if counts[k])


def _others(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """Yield the answers that do not agree, by reason, with the range of their differences."""
    by_reason: dict[str, dict[str, Any]] = {}
    for test, entry in report["answers"].items():
        if entry["outcome"] != "agrees":
            by_reason.setdefault(entry["reason"], {})[test] = entry
    for reason, entries in by_reason.items():
        found = sorted(x["difference"] for x in entries.values() if x["difference"] is not None)
        ends = sorted({f"{x:.0e}" for x in (found[:1] + found[-1:])}, key=float)
        names = list(entries)
        shown = ", ".join(f"`{name}`" for name in names[:3])
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield report["library"], shown + more, " to ".join(ends) or "none", reason


def main() -> None:
    """Write the tables into the page, or compare them with it."""
    page = PAGE.read_text("utf-8")
    written = TABLES.sub(lambda _: tables(read_reports()), page)
    if "--check" in sys.argv[1:]:
        sys.exit(f"{PAGE.name}: run {Path(__file__).name}" if written != page else 0)
    PAGE.write_text(written, "utf-8")


if __name__ == "__main__":
    main()
