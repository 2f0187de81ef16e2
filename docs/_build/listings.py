"""Write what the committed records say into the docs, after new records or other predicates.

    python docs/_build/listings.py            pages of the papers, the ledger, shipped records, listings in the docs, README's tables
    python docs/_build/listings.py --ledger   the listings and tables, without running commands that read records, from the present ledger

A page has a listing after a line `<!-- svgpbench COMMAND -->`: it is what the command prints, to the next line
`<!-- end -->` or the end of the page. A page may have several.
README has the findings of the board, a table of grades by kind, and a table of some claims, chosen by their id in
its first column.
"""

from __future__ import annotations

import argparse
import csv
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "harness" / "svgpbench" / "papers" / "released.csv"
LISTING = re.compile(
    r"^<!-- svgpbench (?P<command>[^\n]+) -->$.*?(?P<end>^<!-- end -->$|\Z)", re.MULTILINE | re.DOTALL
)
FINDINGS = re.compile(r"(?<=<!-- findings of the board -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)
KINDS = ("theory", "experiments", "speed")


def svgpbench(*arguments: str) -> str:
    """Run a command of the package and return what it prints."""
    command = [sys.executable, "-m", "svgpbench.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def write_ledger() -> None:
    """Grade all claims by the committed records."""
    from svgpbench.papers import load_paper, paper_folders
    from svgpbench.papers.judged_claims import judged_claims
    from svgpbench.papers.ledger import as_csv, row_of

    papers = [load_paper(name) for name in paper_folders()]
    judged = judged_claims(papers, ROOT / "results", [], lambda *_: None)
    LEDGER.write_text(as_csv([row_of(one) for _, one in judged]), "utf-8")


def write_board() -> None:
    """Ship the outcomes of the problems that all entrants have finished, and draw the board."""
    from svgpbench.suite.outcomes import SHIPPED, read_outcomes
    from svgpbench.suite.schema import load_suite

    suite, records = load_suite(), ROOT / "results" / "suite"
    if (records / f"{suite.experiment}.parquet").exists():
        outcomes = read_outcomes(suite, suite.problems, suite.entrants, records)
        outcomes.finished_by_all(suite).write(SHIPPED)
        svgpbench("leaderboard", "--figure", "docs/board.png")


def write_trained() -> None:
    """Copy θ at the end of the runs of kobe2021's Figure 4.7, at which its Figure 4.8 is computed."""
    import pandas as pd

    from svgpbench_papers.kobe2021.algebra.predictions import PATHS, TRAINED
    from svgpbench.results.store import records_in

    names = {"variance": "variance", "lengthscale": "lengthscale_mean", "noise_variance": "noise_variance", "elbo": "elbo"}
    rows = [
        {"method": c.method.title, "split_seed": c.split.seed, "seed": c.seed}
        | {name: record.trace[column][-1] for name, column in names.items()}
        for record in records_in(ROOT / "results", "kobe2021-fig4.7").records
        for c in [record.config]
        if c.backend.name == "jax" and not c.is_replica and c.method.title in PATHS
        if c.kernel.init == "mean-gaps"
    ]
    frame = pd.DataFrame(rows).sort_values(["method", "split_seed", "seed"])
    frame.to_csv(TRAINED, index=False)


def with_listings(page: str, run_all: bool) -> str:
    """Return a page with its listings written anew. Commands that read records run if `run_all`."""

    def written(listing: re.Match[str]) -> str:
        words = shlex.split(listing["command"])
        if not (run_all or {"--released", "--ours", "leaderboard"} & set(words)):
            return listing[0]
        text = svgpbench(*words).strip()
        end = f"\n{listing['end']}" if listing["end"] else ""
        return f"<!-- svgpbench {listing['command']} -->\n\n{text}\n{end}"

    return LISTING.sub(written, page)


def board_findings() -> str:
    """Return five sentences of the board as a list: ranks, early gains, two pairs, default rates."""
    from svgpbench.suite.board import Board
    from svgpbench.suite.findings import findings
    from svgpbench.suite.outcomes import Outcomes
    from svgpbench.suite.schema import load_suite

    candidates = [x.label for x in load_suite().entrants if not x.reference]
    sentences = findings(Board(Outcomes.read(), candidates))
    return "\n".join(f"* {x}" for x in (*sentences[:4], sentences[-1]))


def with_tables(readme: str, ledger: list[dict[str, str]]) -> str:
    """Return README with its two tables written anew."""
    lines = iter(readme.splitlines())
    out: list[str] = []
    grades: list[str] = []
    for line in lines:
        out.append(line)
        if line.startswith("| claims about |"):
            grades = [name.strip() for name in line.split("|")[2:-1]]
        elif grades and (kind := line.split("|")[1:2]) and kind[0].strip() in KINDS:
            counts = Counter(row["grade"] for row in ledger if row["kind"] == kind[0].strip())
            shown = " | ".join(str(counts[grade] or "") for grade in grades)
            out[-1] = f"| {kind[0].strip()} | {shown} |"
        elif claim := re.match(r"\| ([a-z]+\d{4}-\d\d): ", line):
            row = next(row for row in ledger if row["id"] == claim[1])
            title, finding = (row[name].replace("|", r"\|") for name in ("claim", "finding"))
            out[-1] = f"| {row['id']}: {title} | {row['grade']} ({row['fidelity']}) | {finding} |"
    return "\n".join(out) + "\n"


def main() -> None:
    """Write the pages."""
    from svgpbench.papers import paper_folders

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ledger", action="store_true", help="Take the present ledger.")
    run_all = not parser.parse_args().ledger
    if run_all:
        svgpbench("reproduce", *paper_folders(), "--from-records", "--results", "results", "--pages", "results")
        write_ledger()
        write_trained()
        write_board()
        svgpbench("claims", "--figure", "docs/effects.png", "--results", "results")
    for path in sorted((ROOT / "docs").glob("*.md")):
        path.write_text(with_listings(path.read_text("utf-8"), run_all), "utf-8")
    with LEDGER.open(encoding="utf-8", newline="") as file:
        ledger = list(csv.DictReader(file))
    path = ROOT / "README.md"
    text = FINDINGS.sub(lambda _: board_findings(), path.read_text("utf-8"))
    path.write_text(with_tables(text, ledger), "utf-8")


if __name__ == "__main__":
    main()
