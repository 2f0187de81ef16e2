"""`make mutants-drawn`: mutants drawn by a seed, each judged by the tests that drawn.toml names for its file.

    python tests/mutants/drawn.py --count 200 --seed 0 --jobs 2

Verdicts are kept in build/mutants, so that a run goes on where it stopped; survivors.toml beside this
file has those that no test noticed, and the command ends with 1 while one of them has no word.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from drawing import Mutant, draw
from fault_files import NUMPY_ONLY, ROOT
from killing import Verdict, copies, judge_all, judged, read_verdicts
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from survivors import merged, read_survivors, write_survivors
from tree_copies import TreeCopy

MODULES = Path(__file__).parent / "drawn.toml"
VERDICTS = ROOT / "build" / "mutants"
LIMIT_S = 300.0


def main(
    count: Annotated[int, typer.Option("--count", min=1)] = 200,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="TEXT", help="Text in a file's path.")
    ] = None,
    left: Annotated[
        bool, typer.Option("--left", help="Judge the survivors of the last run again.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Judge all of them again.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1)] = os.cpu_count() or 1,
    limit: Annotated[
        float, typer.Option("--limit", metavar="S", help="Longer than this is a kill.")
    ] = LIMIT_S,
) -> None:
    """Draw mutants and judge those that have no verdict yet."""
    console, tests = Console(), read_modules(MODULES)
    drawn = draw(ROOT, list(tests), count, seed)
    drawn = [x for x in drawn if not only or any(text in x.file for text in only)]
    path = VERDICTS / f"drawn-{count}-{seed}.jsonl"
    if again:
        path.unlink(missing_ok=True)
    known = read_verdicts(path)
    redo = {"survived"} if left else set()
    waiting = [x for x in drawn if x.key not in known or known[x.key].status in redo]
    console.print(f"{len(drawn)} mutants, {len(waiting)} of them to judge")
    if waiting:
        known = judge_mutants(console, waiting, tests, path, min(jobs, len(waiting)), limit)
    by_status = {
        status: [x for x in drawn if (x.key in known and known[x.key].status == status)]
        for status in ("survived", "killed", "broken")
    }
    noticed = [*by_status["killed"], *by_status["broken"]]
    kept = merged(read_survivors(), by_status["survived"], noticed)
    write_survivors(kept)
    console.print(summary(drawn, known))
    unread = [x for x in by_status["survived"] if not kept[x.key].word]
    for mutant in unread:
        where = f"{mutant.file}:{mutant.line} {mutant.function}"
        console.print(f"[bold]{escape(where)}[/]\n[red]{escape(mutant.was)}[/]", soft_wrap=True)
        console.print(f"[green]{escape(mutant.now)}[/]", soft_wrap=True)
    console.print(f"{len(by_status['survived'])} survived, {len(unread)} of them without a word")
    raise typer.Exit(int(bool(unread)))


def judge_mutants(
    console: Console,
    waiting: Sequence[Mutant],
    tests: Mapping[str, Sequence[str]],
    path: Path,
    jobs: int,
    limit: float,
) -> dict[str, Verdict]:
    """Judge mutants, after their tests have passed on the sources without any."""

    def do(copy: TreeCopy, mutant: Mutant) -> Verdict:
        return judged(copy, mutant.file, mutant.text, tests[mutant.file], NUMPY_ONLY, limit)

    with copies(ROOT, jobs) as made:
        files = {mutant.file for mutant in waiting}
        union = dict.fromkeys(test for file in tests if file in files for test in tests[file])
        if (outcome := made[0].test(list(union), NUMPY_ONLY, 3600.0, options=())).code != 0:
            console.print(outcome.output, markup=False)
            raise typer.Exit(2)
        changes = {mutant.key: mutant for mutant in waiting}
        return judge_all(console, made, changes, do, _title, path)


def _title(mutant: Mutant) -> str:
    return f"{Path(mutant.file).name}:{mutant.line} {mutant.operator}"


def read_modules(path: Path) -> dict[str, list[str]]:
    """The tests of each file that mutants are drawn from."""
    modules = tomllib.loads(path.read_text(encoding="utf-8"))["module"]
    return {one["file"]: one["tests"] for one in modules}


def summary(drawn: Sequence[Mutant], known: Mapping[str, Verdict]) -> Table:
    """How many of each file were noticed; one that cannot even be imported is."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("file", "mutants", "killed", "survived"):
        table.add_column(name, justify="left" if name == "file" else "right")
    for file, total in Counter(mutant.file for mutant in drawn).items():
        told = Counter(known[x.key].status for x in drawn if x.file == file and x.key in known)
        noticed = told["killed"] + told["broken"]
        table.add_row(file, str(total), str(noticed), str(told["survived"]))
    return table


if __name__ == "__main__":
    typer.run(main)
