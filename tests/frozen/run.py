"""Compare what the committed records say with a snapshot, so that no number moves unnoticed.

    python tests/frozen/run.py            compare everything (about ten minutes on two cores)
    python tests/frozen/run.py ids pages  compare these parts alone
    python tests/frozen/run.py --write    take the snapshot anew

The parts:

    ids        the id of every committed record, computed again from its configuration
    pages      every text and table of `svgpbench reproduce --from-records`, and claims as JSON, byte for byte
    readme     the table of the README
    check      every case of `svgpbench check` and whether it is within its tolerance
    cells      20 recorded cells, run again

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
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from svgpbench.config import CellConfig
from svgpbench.experiments.cell import identify

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
        svgpbench(
            "reproduce", "--from-records", "--results", "results", "--out", folder, codes=(0, 1)
        )
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
    facts = {}
    for group in ("matrix", "identities", "rounding"):
        for row in report[group]:
            name = " ".join(str(value) for value in row.values() if isinstance(value, str))
            facts[f"{group} {name}"] = "ok" if row["ok"] else "not within its tolerance"
    return facts


def cells() -> Facts:
    """Return what became of recorded cells that were run again: the same numbers, or others."""
    arguments = ("verify", "--results", "results", "--sample", str(SAMPLE), "--json")
    verdicts = json.loads(svgpbench(*arguments, codes=(0, 1)))
    same = {"bitwise", "rounding", "chaotic"}
    return {
        verdict["cell_id"]: "same" if verdict["verdict"] in same else verdict["verdict"]
        for verdict in verdicts
    }


PARTS: Mapping[str, Callable[[], Facts]] = {
    "ids": ids, "pages": pages, "readme": readme, "check": check, "cells": cells,
}  # fmt: skip


def differences(before: Facts, now: Facts) -> dict[str, str]:
    """Return what differs, by name."""
    found = {}
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
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
            print(f"{part}: {len(now[part])} compared, {len(moved)} moved", flush=True)
    if arguments.write:
        text = json.dumps(before | now, indent=1, sort_keys=True, ensure_ascii=False)
        SNAPSHOT.write_text(text + "\n", encoding="utf-8")
        return 0
    print("\n".join(lines) or "nothing moved")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
