"""Arguments of the command line made wrong. No list starts a cell, a timing or a download.

What would is given something at its end that is refused: a list of values has it among the others.
"""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import typer.core

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
LISTS: tuple[tuple[str, ...], ...] = (
    ("list", "methods", "--json"),
    ("list",),
    ("table", "own.toml", "--results", "runs", "--metric", "nlpd", "--markdown"),
    ("plot", "own.toml", "--results", "runs", "--figure", "f", "--out", "own.png"),
    ("compare", "t-svgp", "q-svgp", "--results", "runs", "--experiment", "own.toml"),
    ("advise", "own.csv", "--target", "y", "--likelihood", "student-t"),
    ("advise", "own.csv", "--target", "y", "--task", "classification", "--write", "own2.toml"),
    ("verify", "own.toml", "--results", "runs", "--sample", "2", "--seed", "1"),
    ("collect", "runs", "--into", "kept", "--traces"),
    (
        "cost",
        "t-svgp",
        "--M",
        "20",
        "--n",
        "100",
        "--batch",
        "10",
        "--likelihood",
        "softmax",
        "--P",
        "3",
    ),
    (
        "cost",
        "orth",
        "--M",
        "8",
        "--gamma",
        "4",
        "--n",
        "50",
        "--option",
        "e_step=adam",
        "--exponents",
    ),
    ("data", "show", "own.csv", "--target", "y", "--task", "regression", "--json"),
    ("data", "audit", "own.csv", "--target", "y", "--json"),
    ("data", "table", "airfoil", "boston"),
    ("data", "split", "sonar", "--kind", "random", "--test-fraction", "0.3", "--seed", "2"),
    ("data", "split", "pima", "--folds", "4", "--out", "masks.csv"),
    ("--version",),
    ("--help",),
)
REFUSED: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("run", "--results", "runs", "--jobs", "2", "--seed", "3", "--shard", "1/2"),
        ("missing.toml",),
    ),
    (("fetch", "--dry-run", "--cache", "cache"), ("nope",)),
    (("speed", "--method", "t-svgp", "--step", "e_step", "--repeats", "3"), ("--problem", "nope")),
    (("check", "--backend", "numpy", "--full"), ("--backend", "nope")),
    (
        ("learn", "--seconds", "1", "--threads", "1", "--library", "svgpbench"),
        ("--problem", "nope"),
    ),
    (("survive", "--timeout", "9", "--library", "svgpbench"), ("--problem", "nope")),
    (("claims", "--paper", "nope", "--json"), ("nope-01",)),
    (("data", "audit", "sonar", "--json"), ("nope",)),
    (("reproduce", "--from-records", "--results", "runs"), ("nope/fig1",)),
)
VALUES = (
    *(
        "",
        "-",
        "--",
        "-1",
        "0",
        "1",
        "3",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1e-9",
        "9" * 30,
        "9" * 5000,
        "2.5",
    ),
    *(
        "é",
        "x" * 3000,
        "--nope",
        "--json",
        "-h",
        "a=b",
        "=",
        "numpy:",
        ":",
        "numpy:jit",
        "own.csv",
        "nope",
    ),
    *(
        "[red]",
        "%s",
        "{0}",
        "\n",
        "\udcff",
        "own.csv/",
        "runs",
        "0/0",
        "1/0",
        "-1/2",
        "5/2",
    ),
    *(
        "missing.toml",
        "t-svgp",
        "elbo",
        "float32",
        "cuda",
        "torch",
        "'",
        '"',
        "*",
        "$HOME",
        "@",
        "sonar@y",
    ),
)


def _place(found: list[str], rng: random.Random) -> int:
    """A value mostly, seldom the name of an option or of the command."""
    values = [at for at, text in enumerate(found) if at and not text.startswith("-")]
    if values and rng.random() < 0.8:
        return rng.choice(values)
    return rng.randrange(1 if len(found) > 1 and rng.random() < 0.9 else 0, len(found) or 1)


def mutated_list(arguments: tuple[str, ...], rng: random.Random) -> list[str]:
    """Some of them replaced, dropped, doubled, cut or swapped; the command stays, mostly."""
    found = list(arguments)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        at = _place(found, rng)
        if not found or rng.random() < 0.15:
            found.insert(at, rng.choice(VALUES))
        else:
            how = rng.random()
            if how < 0.5:
                found[at] = rng.choice(VALUES)
            elif how < 0.6:
                found[at] = f"{found[at]}={rng.choice(VALUES)}"
            elif how < 0.7:
                del found[at]
            elif how < 0.8:
                found.insert(at, found[at])
            elif how < 0.9:
                found[at] = found[at][:-1]
            else:
                other = rng.randrange(len(found))
                found[at], found[other] = found[other], found[at]
    return found


class Arguments:
    """The parser of arguments, as `Parser` has it."""

    door: tuple[Any, str] = (typer.core.TyperCommand, "invoke")
    modules = ("svgpbench.cli.application", "svgpbench.cli.commands", "svgpbench.cli.options")

    @staticmethod
    def write(folder: Path, rng: random.Random) -> None:
        (folder / "own.csv").write_text(TABLE)
        (folder / "own.toml").write_text(EXPERIMENT)
        if rng.random() < 0.3:
            arguments, last = rng.choice(REFUSED)
            changed = mutated_list(arguments[1:], rng)
            chosen = [arguments[0], *(x for x in changed if x != "--"), *last]
        else:
            chosen = mutated_list(rng.choice(LISTS), rng)
        (folder / "arguments.json").write_text(json.dumps(chosen))

    @staticmethod
    def read(folder: Path) -> object:
        from command_files import command

        with contextlib.chdir(folder):
            return command(*_given(folder))

    @staticmethod
    def writes(folder: Path) -> bool:
        return any(text.startswith("--out") for text in _given(folder))


def _given(folder: Path) -> list[str]:
    found: list[str] = json.loads((folder / "arguments.json").read_text())
    return found


ARGUMENTS = Arguments
