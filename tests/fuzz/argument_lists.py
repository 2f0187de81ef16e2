"""Broken arguments of the command line. No list starts a cell, a timing or a download."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from command_files import command
from hypothesis import strategies as st
from watched_parsers import Files

TABLE = "a,b,y\n" + "".join(f"{x},{x * x % 7},{x % 3}.5\n" for x in range(12))
EXPERIMENT = """
name = "own"
backends = ["numpy"]
training = { em_iterations = 1, m_steps = 1 }
methods = [{ name = "t-svgp" }]
[[problems]]
data = [{ name = "own", path = "own.csv", target = "y", task = "regression" }]
likelihood = {}
"""
COMMANDS = """
list methods --json
list
table own.toml --results runs --metric nlpd --markdown
plot own.toml --results runs --figure f --out own.png
compare t-svgp q-svgp --results runs --experiment own.toml
advise own.csv --target y --likelihood student-t
advise own.csv --target y --task classification --write own2.toml
verify own.toml --results runs --sample 2 --seed 1
collect runs --into kept --traces
cost t-svgp --M 20 --n 100 --batch 10 --likelihood softmax --P 3
cost orth --M 8 --gamma 4 --n 50 --option e_step=adam --exponents
data show own.csv --target y --task regression --json
data audit own.csv --target y --json
data table airfoil boston
data split sonar --kind random --test-fraction 0.3 --seed 2
data split pima --folds 4 --out masks.csv
--version
--help
""".strip().splitlines()
REFUSED = """
run --results runs --jobs 2 --seed 3 --shard 1/2 | missing.toml
fetch --dry-run --cache cache | nope
speed --method t-svgp --step e_step --repeats 3 | --problem nope
check --backend numpy --full | --backend nope
learn --seconds 1 --threads 1 --library svgpbench | --problem nope
survive --timeout 9 --library svgpbench | --problem nope
claims --paper nope --json | nope-01
data audit sonar --json | nope
reproduce --from-records --results runs | nope/fig1
""".strip().splitlines()
"""Commands that would start something. What stands behind the bar is never broken, and is refused."""

WORDS = """
- -- -1 0 1 3 nan inf -inf 1e999 1e-9 2.5 é --nope --json -h a=b = numpy: : numpy:jit own.csv nope [red]
%s {0} own.csv/ runs 0/0 1/0 -1/2 5/2 missing.toml t-svgp elbo float32 cuda torch ' " * $HOME @ sonar@y
"""
VALUES = (*WORDS.split(), "", "\n", "\udcff", "9" * 30, "9" * 5000, "x" * 3000)
WAYS = ("insert", "insert", *("value",) * 4, "equal", "drop", "double", "cut", "swap")


@st.composite
def broken_arguments(draw: st.DrawFn, command: str) -> list[str]:
    """Draw arguments of which some are replaced, dropped, doubled, cut or swapped."""
    found = command.split()
    for _ in range(draw(st.sampled_from((0, 1, 1, 1, 2, 2, 3)))):
        # a value mostly, seldom the name of an option, and rarely that of the command
        values = [at for at, text in enumerate(found) if at and not text.startswith("-")]
        at = draw(st.sampled_from([*values * 8, *range(1, len(found)), 0]))
        value = draw(st.sampled_from(VALUES))
        how = draw(st.sampled_from(WAYS))
        if how == "insert" or at >= len(found):
            found.insert(at, value)
        elif how == "swap":
            other = draw(st.integers(0, len(found) - 1))
            found[at], found[other] = found[other], found[at]
        else:
            old = found[at]
            found[at : at + 1] = {
                "value": [value],
                "equal": [f"{old}={value}"],
                "drop": [],
                "double": [old, old],
                "cut": [old[:-1]],
            }[how]
    return found


@st.composite
def argument_files(draw: st.DrawFn) -> Files:
    if draw(st.integers(0, 9)) < 7:
        arguments = draw(broken_arguments(draw(st.sampled_from(COMMANDS))))
    else:
        broken, end = draw(st.sampled_from(REFUSED)).split(" | ")
        name, rest = broken.split(" ", 1)
        arguments = [x for x in draw(broken_arguments(rest)) if x != "--"]
        arguments = [name, *arguments, *end.split()]
    return {
        "own.csv": TABLE.encode(),
        "own.toml": EXPERIMENT.encode(),
        "arguments.json": json.dumps(arguments).encode(),
    }


def read_arguments(folder: Path) -> object:
    with contextlib.chdir(folder):
        return command(*_arguments(folder))


def writes(folder: Path) -> bool:
    """Return whether the arguments name a file to write."""
    return any(text.startswith("--out") for text in _arguments(folder))


def _arguments(folder: Path) -> list[str]:
    found: list[str] = json.loads((folder / "arguments.json").read_text())
    return found
