"""Compare what the committed records say with a snapshot, so that no number moves unnoticed.

    python tests/frozen/run.py            compare everything (about ten minutes on two cores)
    python tests/frozen/run.py ids pages  compare these parts alone
    python tests/frozen/run.py --write    take the snapshot anew

The parts:

    ids        the id of every committed record, computed again from its configuration
    pages      every text and table of `svgpbench reproduce --from-records`, and claims as JSON, byte for byte
    readme     the table of the README
    check      every case of `svgpbench check` and whether it is within its tolerance
    cells      20 recorded cells, run again; those whose data or framework are not here are named

`intended.toml` names each difference that is meant, with a reason.
A name there that no longer differs is an error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from svgpbench.config import CellConfig
from svgpbench.experiments.cell import identify
from svgpbench.papers import paper_folders
from svgpbench.results.records import FINAL, write_record
from svgpbench.results.store import records_in
from svgpbench.runs.verification import draw_sample

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
SNAPSHOT = Path(__file__).with_name("snapshot.json")
INTENDED = Path(__file__).with_name("intended.toml")
TEXTS = {".csv", ".json", ".md", ".tex", ".txt"}
SAMPLE = 20

Facts = dict[str, str]
"""By name: a value, or the SHA-256 of a text."""


def digest(content: str | bytes) -> str:
    """Return a short SHA-256."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[
        :16
    ]


def svgpbench(*arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command of the package and return what it prints."""
    command = [sys.executable, "-m", "svgpbench.cli", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode not in codes:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    return ended.stdout


def ids() -> Facts:
    """Return how many records each file has, and the digest of their ids, which must be those of today."""
    facts: Facts = {}
    for path in sorted(RESULTS.glob("*.parquet")):
        rows = pq.read_table(path, columns=["cell_id", "config"]).to_pylist()
        stored = sorted(row["cell_id"] for row in rows)
        computed = sorted(
            identify(CellConfig.model_validate_json(row["config"])).cell_id for row in rows
        )
        facts[path.name] = f"{len(rows)} records {digest(' '.join(computed))}"
        if computed != stored:
            facts[path.name] += f", {len(set(stored) - set(computed))} stored under another id"
    return facts


def pages() -> Facts:
    """Return the digest of each text that is reproduced from the records."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("--from-records", "--results", "results", "--out", folder)
        # 1 where a figure wants a method or a data set that a smaller preset leaves out
        svgpbench("reproduce", *paper_folders(), *arguments, codes=(0, 1))
        out = Path(folder)
        facts = {
            str(path.relative_to(out)): digest(path.read_bytes().replace(folder.encode(), b"OUT"))
            for path in sorted(out.rglob("*"))
            if path.suffix in TEXTS
        }
        for claim in json.loads((out / "claims.json").read_text(encoding="utf-8")):
            facts[f"claim {claim['id']}"] = f"{claim['grade']} {digest(json.dumps(claim))}"
    return facts


def readme() -> Facts:
    """Return the README's table, as its command prints it."""
    shown = svgpbench(
        "table", "adam2021-fig3", "--preset", "paper", "--results", "results", "--csv"
    )
    return {"adam2021-fig3": digest(shown)}


def check() -> Facts:
    """Return each case of the check with its outcome."""
    report = json.loads(svgpbench("check", "--json", codes=(0, 1)))
    return outcomes(report)


NAMED_BY = {"matrix": ("case", "group"), "identities": ("statement",), "rounding": ()}
"""What names a comparison of the check. Which array, which two backends are the worst, and how many
backends are installed, is not the same on every machine."""


def outcomes(report: Mapping[str, Any]) -> Facts:
    """Return each comparison of a check and whether all its rows are within their tolerances."""
    facts: Facts = {}
    for group, fields in NAMED_BY.items():
        for row in report[group]:
            name = " ".join([group, *(row[field] for field in fields)])
            if not row["ok"]:
                facts[name] = "not within its tolerance"
            facts.setdefault(name, "ok")
    return facts


def cells() -> Facts:
    """Return what became of recorded cells that were run again: the same numbers, or others.

    The sample is the same on every machine. Cells whose data or framework a machine lacks are named there.
    """
    records = [x for x in records_in(RESULTS).records if x.status in FINAL]
    with tempfile.TemporaryDirectory() as folder:
        for record in draw_sample(records, SAMPLE):
            write_record(Path(folder), record)
        verdicts = json.loads(svgpbench("verify", "--results", folder, "--json", codes=(0, 1)))
    return verdict_facts(verdicts)


def verdict_facts(verdicts: Iterable[Mapping[str, str]]) -> Facts:
    """Return whether each cell gave its numbers again; a cell that cannot run here is `UNABLE`."""
    same = {"bitwise", "rounding", "chaotic"}
    facts: Facts = {}
    for verdict in verdicts:
        kind = "same" if verdict["verdict"] in same else verdict["verdict"]
        if kind == "not run":
            # skipped: no data or no framework; anything else went wrong in our code
            unable = verdict["reason"].startswith("skipped: ")
            kind = f"{UNABLE if unable else kind}: {verdict['reason']}"
        facts[verdict["cell_id"]] = kind
    return facts


UNABLE = "cannot run here"
"""Beginning of the fact of a cell without data or framework. It is shown, and is no difference."""


PARTS: Mapping[str, Callable[[], Facts]] = {
    "ids": ids, "pages": pages, "readme": readme, "check": check, "cells": cells,
}  # fmt: skip


def differences(before: Facts, now: Facts) -> dict[str, str]:
    """Return what differs, by name."""
    found = {}
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name) and not now.get(name, "").startswith(UNABLE):
            found[name] = f"{before.get(name, 'not there')} -> {now.get(name, 'gone')}"
    return found


def judge(part: str, moved: Mapping[str, str], intended: Mapping[str, str]) -> list[str]:
    """Return a line for each difference that is not intended, and for each intended one that is none."""
    lines = [f"{part}: {name}: {what}" for name, what in moved.items() if name not in intended]
    lines += [
        f"{part}: {name} is as in the snapshot; take it out of {INTENDED.name}"
        for name in intended
        if name not in moved
    ]
    return lines


def main() -> int:
    """Compare or write the snapshot; return 1 where something moved that is not intended."""
    parser = argparse.ArgumentParser(description="Compare what the records say with a snapshot.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; default: all"
    )
    parser.add_argument("--write", action="store_true", help="take the snapshot anew")
    arguments = parser.parse_args()
    asked = arguments.parts or list(PARTS)
    if unknown := [part for part in asked if part not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}; use {', '.join(PARTS)}")
    if not SNAPSHOT.exists() and not arguments.write:
        parser.error(f"there is no {SNAPSHOT.name} to compare with; take one with --write")
    before = json.loads(SNAPSHOT.read_text(encoding="utf-8")) if SNAPSHOT.exists() else {}
    intended = tomllib.loads(INTENDED.read_text(encoding="utf-8")) if INTENDED.exists() else {}
    now = {}
    lines = []
    for part in asked:
        now[part] = PARTS[part]()
        if not arguments.write:
            moved = differences(before.get(part, {}), now[part])
            lines += judge(part, moved, intended.get(part, {}))
            unable = {name: x for name, x in now[part].items() if x.startswith(UNABLE)}
            print(
                f"{part}: {len(now[part]) - len(unable)} compared, {len(moved)} moved", flush=True
            )
            print("".join(f"{part}: {name} {why}\n" for name, why in unable.items()), end="")
            if len(unable) == len(now[part]):
                lines.append(f"{part}: nothing could be compared here")
    if arguments.write:
        text = json.dumps(before | now, indent=1, sort_keys=True, ensure_ascii=False)
        SNAPSHOT.write_text(text + "\n", encoding="utf-8")
        return 0
    print("\n".join(lines) or "nothing moved")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
