"""`make chaos`: small real cells whose workers and runner are killed over and over, against undisturbed ones.

    python tests/chaos/chaos_run.py --cells 200 --kills 50

Exits 1 where a cell lacks a record or anything that a table shows differs from the undisturbed run's.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from chaos_kills import PHASES, Commands, Kill, Killer

from svgpbench.results.records import Record
from svgpbench.results.store import records_in

NAME = "chaos"
METHODS, FOLDS = 2, 5
MOST_ATTEMPTS = 4  # at a kill for which nobody was there
EXPERIMENT = """
name = "{name}"
backends = ["numpy"]
seeds = {seeds}

[split]
folds = {folds}
seed = 0

[kernel]
lengthscale = 1.0

[inducing]
count = 30

[training]
em_iterations = {iterations}
m_steps = 10
batch_size = 200
e_steps = 2
e_rate = 0.5

[[problems]]
data = [{{ name = "waves", path = "waves.csv", target = "y", task = "regression" }}]
likelihood = {{ name = "gaussian" }}

[[methods]]
label = "t-SVGP"
name = "t-svgp"

[[methods]]
label = "q-SVGP natgrad"
name = "q-svgp"
options = {{ optimiser = "natgrad" }}
"""


def main(arguments: list[str] | None = None) -> int:
    """Run both, compare, print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=200, help="a multiple of 10")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=60, help="EM iterations of a cell")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="svgpbench-chaos-") as folder:
        return chaos(Path(folder), options)


def chaos(folder: Path, options: argparse.Namespace) -> int:
    """All of it in an empty folder."""
    cells = write_experiment(folder, options.cells, options.iterations)
    since = time.monotonic()
    command(folder, "run", f"{NAME}.toml", "--results", "undisturbed", *jobs(options.jobs))
    undisturbed_s = time.monotonic() - since
    kills, starts = disturbed(folder, options, undisturbed_s)
    found = Counter(kill.phase for kill in kills)
    whom = Counter(kill.whom for kill in kills)
    whole, other = (
        records_in(folder / each, NAME).records for each in ("undisturbed", "disturbed")
    )
    seconds = statistics.median(record.wall_s for record in whole)
    resumed = sum(record.worker.resumptions for record in other)
    print(f"{cells} cells of {seconds:.1f} s (median), undisturbed in {undisturbed_s:.0f} s")
    print(f"{len(kills)} kills: {', '.join(f'{found[phase]} {phase}' for phase in PHASES)}")
    print(f"  of {', '.join(f'{count} {name}s' for name, count in sorted(whom.items()))}; ", end="")
    print(f"{sum(kill.torn for kill in kills)} left a file half-written")
    print(f"{starts} starts of the run; cells went on from a checkpoint {resumed} times")
    faults = differences(folder, cells, whole, other, len(kills) - options.kills)
    print(
        "\n".join(faults)
        or "every cell has a record; records and tables equal the undisturbed run's"
    )
    return 1 if faults else 0


def write_experiment(folder: Path, cells: int, iterations: int) -> int:
    """The experiment and its data, made here; returns how many cells it has."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, (500, 3))
    y = np.sin(2.0 * x[:, 0]) * np.cos(x[:, 1]) + 0.2 * rng.standard_normal(500)
    rows = [f"{a:.6f},{b:.6f},{c:.6f},{d:.6f}" for (a, b, c), d in zip(x, y, strict=True)]
    (folder / "waves.csv").write_text("\n".join(["a,b,c,y", *rows]) + "\n")
    seeds = math.ceil(cells / (METHODS * FOLDS))
    text = EXPERIMENT.format(
        name=NAME, seeds=list(range(seeds)), folds=FOLDS, iterations=iterations
    )
    (folder / f"{NAME}.toml").write_text(text)
    return seeds * METHODS * FOLDS


def disturbed(
    folder: Path, options: argparse.Namespace, undisturbed_s: float
) -> tuple[list[Kill], int]:
    """Kill on, spread over the phases and over the time that the run takes; then let it end."""
    results = folder / "disturbed"
    run = words(folder, "run", f"{NAME}.toml", "--results", str(results), "--checkpoint", "0.2")
    collect = words(folder, "collect", str(results), "--into", str(results))
    killer = Killer(Commands([*run, *jobs(options.jobs)], collect, results), options.seed)
    kills: list[Kill] = []
    pause = undisturbed_s / max(1, options.kills) / 2.0
    try:
        for at in range(options.kills):
            for _ in range(MOST_ATTEMPTS):
                if (kill := killer.kill(PHASES[at % len(PHASES)], pause)) is not None:
                    kills.append(kill)
                    break
    finally:
        killer.end()
    command(folder, "run", f"{NAME}.toml", "--results", str(results), *jobs(options.jobs))
    command(folder, "collect", str(results), "--into", str(results))
    return kills, killer.starts + 1


def differences(
    folder: Path, cells: int, whole: list[Record], other: list[Record], kills_missing: int
) -> list[str]:
    """What is not as it should be, a line each."""
    faults = [f"{-kills_missing} kills found nobody"] if kills_missing else []
    numbers = {record.cell_id: essential(record) for record in whole}
    found = {record.cell_id: essential(record) for record in other}
    if len(numbers) != cells:
        faults.append(f"the undisturbed run left {cells - len(numbers)} cells without a record")
    if missing := numbers.keys() - found.keys():
        faults.append(f"{len(missing)} cells have no record, such as {min(missing)}")
    apart = [
        cell_id for cell_id in numbers.keys() & found.keys() if numbers[cell_id] != found[cell_id]
    ]
    if apart:
        faults.append(f"{len(apart)} records hold other numbers, such as {min(apart)}")
    tables = [table(folder, each) for each in ("undisturbed", "disturbed")]
    if tables[0] != tables[1]:
        faults.append("the tables differ")
    if left := list((folder / "disturbed").rglob("*.tmp")):
        faults.append(f"{len(left)} files are left half-written, such as {left[0].name}")
    return faults


def essential(record: Record) -> tuple[Any, ...]:
    """What the cell determines of its record."""
    return record.status, record.trace_without_times(), record.metrics, record.data


def table(folder: Path, results: str) -> Any:
    """What `svgpbench table` shows, but for times."""
    printed = command(folder, "table", f"{NAME}.toml", "--results", results, "--json")
    content = json.loads(printed)
    for row in content["rows"]:
        for key in [key for key in row if "seconds" in key]:
            del row[key]
    return content


def jobs(count: int | None) -> list[str]:
    """The option, where it is given."""
    return [] if count is None else ["--jobs", str(count)]


def words(folder: Path, *arguments: str) -> list[str]:
    """A command of svgpbench, run in a folder whatever the caller's."""
    code = "import os, sys; os.chdir(sys.argv.pop(1)); from svgpbench.cli import main; main()"
    return [sys.executable, "-c", code, str(folder), *arguments]


def command(folder: Path, *arguments: str) -> str:
    """What a command prints; raises where it does not end with 0."""
    done = subprocess.run(words(folder, *arguments), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"svgpbench {' '.join(arguments)} ended with {done.returncode}: {done.stderr}"
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
