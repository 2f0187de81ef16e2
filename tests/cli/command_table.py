"""Command lines with their exit codes and a text that each prints, and the folder in which they run."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from committed_records import RESULTS
from own_experiment import write_own
from typer.core import TyperGroup
from typer.main import get_command

from svgpbench.cli.application import app, exit_code

NO_NUMBERS = "error: backend 'counting' computes shapes only; use it with `svgpbench cost`\n"

COMMANDS: Mapping[int, Mapping[str, str]] = {
    0: {
        "": "Start with `svgpbench doctor`",
        "--help": "Start with `svgpbench doctor`",
        "list": "matern52",
        "doctor": "numpy",
        "leaderboard": "t-SVGP",
        "leaderboard --results committed/suite": "t-SVGP",
        "advise airfoil": "problems left out in turn",
        "run mine.toml": "4 cells: 4 ok",
        "table mine.toml --results whole": "mine, regression",
        "table mine.toml --kind pareto --results whole": "mine",
        "table adam2021-fig3 --preset paper --results committed": "q-SVGP Adam (fair)",
        "table adam2021-fig3 --preset starts --kind pareto --results committed": "against compute",
        "plot adam2021-fig3 --preset starts --results committed --out figure.png": "figure.png",
        "compare t-SVGP q --experiment mine.toml --results whole": "mine: t-SVGP against q",
        "compare whole merged": "4 of 4 pairs have the same bits, times left out",
        "compare t-SVGP 'q-SVGP Adam' --experiment adam2021-fig3 --preset paper --results committed":
            "adam2021-fig3: t-SVGP against q-SVGP Adam",
        "claims --released": "findings of ours",
        "claims adam2021-16 --results committed": "conditions tried beside",
        "claims adam2021-05 adam2021-16 --results committed": "2 claims: ",
        "reproduce adam2021/fig5 --from-records --results committed": "adam2021/fig5: ",
        "report --results committed --out a-folder/of-the-site/of-all-records": " pages",
        "speed --load committed/speed/cpu-M500.json": "Milliseconds a step",
        "speed --load committed/speed/cpu-M500.json --roofline roofline.png": "roofline.png Roofline: ",
        "learn --from-records --results committed/learning": "contestant mode",
        "survive --from-records --results committed/survival": "10-class, 1000 steps",
        "cost t-svgp --exponents --peak-flops 1e11 --bandwidth 1e10": "FLOPs ∝ n^",
        "cost t-svgp --M 20": "t-svgp, gaussian, matern52, float64; n = 10000, M = 20, ",
        "inducing rows.csv --target y --count 3 --count 5": "M = ",
        "fetch --all --dry-run": "airfoil/airfoil.data.csv 74.9 kB",
        "fetch boston kuka --dry-run": "kuka kuka/kuka1.csv",
        "data show airfoil": "1503",
        "data show sonar": "208",
        "data show rows.csv --target y": "regression, target y",
        "data audit airfoil concrete pima": "airfoil",
        "data split airfoil": "sha256:",
        "data table boston pima": "| `boston` | 506 | ",
        "verify mine.toml --results whole --sample 1": "1 bitwise",
        "verify mine --results whole --sample 1": "1 bitwise",
        "verify --results committed": "3 chaotic",
        "collect whole --out cells.csv": "cells.csv: 4 cells (4 ok), ",
        "collect records --out optima.csv": "optima.csv: ",
        "collect records --into together": "together: ",
        "new method mine": "next: cd mine",
        "check --backend numpy": "Worst difference, ",
    },
    1: {
        "speed --no-floor": "Milliseconds a step",
        "check --quick --backend numpy": "a difference",
        "doctor --results file/runs": "name one with --results",
        "check --full --backend numpy": "a process",
    },
    2: {
        "rum": "'rum'. Did you mean 'run'? (see `svgpbench --help`)",
        "claim": "Did you mean 'claims'?",
        "list method": "'method'",
        "doctor --compare nothing": "'nothing' is no record: give the path of its .json, or the cell's id",
        "doctor --compare no.json": "cannot read no.json",
        "doctor --compare 0123456789abcdef": "no record of cell 0123456789abcdef in runs",
        "leaderboard --problem airfoyl": "did you mean 'airfoil'?",
        "advise pima --likelihood gaussian": "not of classification, which takes",
        "advise airfoil --write my.json": "error: --write my.json: an experiment file ends in .toml\n",
        # run
        "run": "Missing argument 'EXPERIMENT'",
        "run adam2021-fig4": "unknown experiment 'adam2021-fig4'; did you mean",
        "run adam2021-fig3 --backend jaxx": "unknown backend 'jaxx'; did you mean 'jax'?",
        "run adam2021-fig3 --backend cupy": "unknown backend 'cupy' (known: ",
        "run adam2021-fig3 --backend jax:fast": "'jax' offers no mode 'fast' (it has: jit, eager)",
        "check --backend jax:fast": "'jax' offers no mode 'fast' (it has: jit, eager)",
        "run adam2021-fig3 --method t-svpg": "'t-svpg'; did you mean 't-svgp'?",
        "run adam2021-fig3 --dataset airfoyl": "'airfoyl'; did you mean 'airfoil'?",
        "run adam2021-fig3 --preset papper": "'papper'; did you mean 'paper'?",
        "run adam2021-fig3 --dtype float16": "'float16' is not one of 'float64', 'float32'",
        "run adam2021-fig3 --backend numpy --dtype float32": "no dtype 'float32'",
        "run adam2021-fig3 --backend numpy --jobs 999": "this machine has",
        "run adam2021-fig3 --backend numpy --jobs 0": "at least 1",
        "run adam2021-fig3 --backend numpy --timeout -1": "above 0",
        "run adam2021-fig3 --backend numpy --memory 0": "--memory 0: give a number of GiB",
        "run adam2021-fig3 --backend numpy --checkpoint -1": "--checkpoint -1: give a number",
        "run adam2021-fig3 --seed -1": "--seed",
        "run adam2021-fig3 --results ''": "'--results': it is empty; name a path",
        "run there-is-no.toml": "there-is-no.toml cannot be read: No such file",
        "run my.csv": "my.csv is a table, not an experiment: write an experiment file",
        "run mine.toml --device cuda": "backend 'numpy' offers no device 'cuda' (it has: cpu)",
        "run mine.toml --results rows.csv/runs": "--results rows.csv/runs cannot be written",
        "run mine.toml --results cut": "error: cut/mine.parquet is damaged: ",
        "run mine.toml --shard 4/3": "--shard 4/3: give I/N with I from 1 to N",
        "run mine.toml --dask tcp://127.0.0.1:1": "--dask tcp://127.0.0.1:1: no Dask scheduler answers",
        "run mine.toml --dask nowhere": "--dask nowhere: give HOST:PORT, such as 10.0.0.7:8786",
        "run mine.toml --dask tls://x": "--dask tls://x: give HOST:PORT",
        "run mine.toml --dask nowhere://x:1": "--dask nowhere://x:1: no Dask scheduler answers",
        "run mine.toml --dask a --jobs 2": "--jobs is of this machine",
        # table, plot, compare
        "table adam2021-fig3": "no records of adam2021-fig3 in runs",
        "table adam2021-fig3 --results=": "'--results': it is empty; name a path",
        "table adam2021-fig3 --results file": "--results file is a file; name a folder",
        "table adam2021-fig3 --results committed --backend torhc": "did you mean 'torch'?",
        "table adam2021-fig3 --nope": "No such option: --nope (see `svgpbench table --help`)",
        "table adam2021-fig3 --json --csv": "exclude each other",
        "table some/my.parquet": "some/my.parquet is a table, not an experiment",
        "table mine.toml --results cut": "error: cut/mine.parquet is damaged: ",
        "plot adam2021-fig3 --out figure.doc": ".png, .pdf, .svg",
        "plot adam2021-fig3 --out nowhere/figure.png": "no folder nowhere",
        "plot mine.toml --results cut": "error: cut/mine.parquet is damaged: ",
        "compare t-SVGP q": "no records in runs; name one experiment with --experiment",
        "compare t-SVGP q --results whole": "of mine; name one experiment",
        "compare t-SVGP q --results cut": "error: cut/mine.parquet is damaged: ",
        "compare t-SVGP q --experiment mine.toml --results cut": "error: cut/mine.parquet is damaged: ",
        "compare cut whole": "error: cut/mine.parquet is damaged: ",
        "compare whole whole/": "A and B are both whole",
        "compare whole nowhere": "nowhere: there is no such folder; compare two folders",
        "compare whole .": "no records in .",
        "compare whole shards/1 --metric nldp": "'nldp'; did you mean 'nlpd'?",
        "compare whole shards/1 --metric mae --preset x": "of an experiment",
        "compare whole shards/1 --metric error_rate": "have error_rate",
        "compare a b --experiment mine.tom": "unknown experiment 'mine.tom'",
        # papers
        "claims adam20211": "unknown claim 'adam20211'",
        "claims adam2021-99": "unknown claim 'adam2021-99'; did you mean 'adam2021-",
        "claims kobe2021-01 --paper adam2021": "unknown claim 'kobe2021-01'",
        "claims --paper adam": "unknown paper 'adam'; did you mean 'adam2021'?",
        "claims --released --json": "--released stands alone but for --paper",
        "claims --results nosuch": "--results nosuch: there is no such folder",
        "claims adam2021-16 --results nosuch": "nosuch: there is no such folder",
        "claims --results ''": "'--results': it is empty; name a path",
        "claims --results file": "--results file is a file; name a folder with records",
        "claims adam2021-16 --results file": "--results file is a file; name a folder with records",
        "claims adam2021-25 --forest --results committed": "--forest",
        "claims --figure effects.doc --results committed": "name a file ending in .png, .pdf, .svg",
        "claims --paper adam2021 --ours": "error: adam2021 has no finding of ours; without --paper",
        "reproduce": "which papers, artefacts or claims? all papers are adam2021, ",
        "reproduce adam2021 --out ''": "'--out': it is empty; name a path",
        "reproduce adam2021/fig33": "claim 'adam2021/fig33'; did you mean 'adam2021/fig3'?",
        "reproduce adam2021/fig3 --preset quik": "adam2021-fig3 'quik'; did you mean 'quick'?",
        "reproduce adam2021/fig3 --backend numpyy": "unknown backend 'numpyy'",
        "reproduce adam2021 --from-records --results none": "--results none: there is no such folder",
        "reproduce adam2021-16 --from-records --results . --out file":
            "--out file cannot be written (Not a directory); name another folder",
        "report --results nosuch": "nosuch: there is no such folder",
        "report --results file": "--results file is a file; name a folder with records",
        "report --results . --out /proc/x": "--out /proc/x cannot be written (",
        "report --out ''": "'--out': it is empty; name a path",
        # speed and cost
        "speed --peer gpflow@nosuch.whl": "--peer gpflow@nosuch.whl: no such wheel or",
        "speed --peers --peer gpflow@no": "--peer gpflow@no: no such wheel or source",
        "speed --load committed/speed/cpu-M500.json --json": "leave out --out and --json",
        "speed --load committed/speed/cpu-M500.json --roofline roofline.png --json": "leave out --out and",
        # of a backend that would be refused next, as nothing is to be timed
        "speed --roofline roofline.doc --backend counting": "name a file ending in .png, .pdf, .svg",
        "speed --roofline nowhere/roofline.png --backend counting": "there is no folder nowhere",
        "speed --no-floor --roofline r.png --backend counting": "--roofline draws what --floor measures",
        "speed --backend counting": NO_NUMBERS,
        "speed --backend counting:shapes": NO_NUMBERS,
        "check --backend counting": NO_NUMBERS,
        "check --backend counting:shapes": NO_NUMBERS,
        "run adam2021-fig3 --backend counting": NO_NUMBERS,
        "run adam2021-fig3 --backend counting:shapes": NO_NUMBERS,
        "learn --plan mine.toml": "mine.toml is an experiment, not a plan; run it with `svgpbench run",
        "survive --plan mine.toml": "mine.toml is an experiment, not a plan; run it with `svgpbench run",
        "cost": "Missing argument 'METHOD'",
        "cost t-svg": "unknown method 't-svg'; did you mean 't-svgp'?",
        "cost t-svgp --option tying": "give KEY=VALUE",
        "cost t-svgp --option tieing=tied": "'tieing'; did you mean 'tying'?",
        "cost t-svgp --option tying=tide": "'tide'; did you mean 'tied'?",
        "cost t-svgp --option tying=2": "must be str, got 2",
        "cost q-svgp --option whiten=1": "must be bool, got 1",
        "cost t-svgp --n 0": "n = 0: a size is at least 1",
        "cost t-svgp --n many": "--n",
        "cost t-svgp --batch 20000": "b = 20000 rows is more than n = 10000",
        "cost t-svgp --gamma 5": "has no gamma",
        "cost t-svgp --likelihood gausian": "did you mean 'gaussian'?",
        "cost t-svgp --kernel matern": "unknown kernel 'matern'",
        "cost t-svgp --dtype float16": "'float16' is not one of 'float64', 'float32'",
        "cost t-svgp --bandwidth 1e9": "--peak-flops and --bandwidth go together",
        "cost t-svgp --bandwidth 1e9 --peak-flops -1": "each above 0",
        # data
        "inducing rows.csv --target y --out bounds.xyz": "name a file ending in",
        "inducing rows.csv --target y --out absent/bounds.png": "absent",
        "inducing visits.csv --target y": "'clinic'",
        "fetch bostn": "did you mean 'boston'?",
        "data show bostn": "did you mean 'boston'?",
        "data show kuka": "kuka/kuka1.csv could not be had (no place is known that serves it)",
        "data show walker-stand-in": "once: `python datasets/scripts/make_walker.py` in a clone",
        "data show boston --target RAD": "--target goes with numbers of a file (.csv, .parquet, ...), not",
        "data show boston --declared --target RAD": "--target goes with numbers of a file",
        "data audit boston --target RAD": "--target goes with numbers of a file",
        "data show boston --task classification": "--task goes with numbers of a file",
        "data show boston --declared --task classification": "--task goes with numbers of a file",
        "data audit boston --task classification": "--task goes with numbers of a file",
        "data show boston --array X": "--array goes with numbers of a file",
        "data show boston --no-header": "--no-header goes with numbers of a file",
        "data audit airfoil --features a": "--features goes with numbers of a file",
        "data show visits.csv --target clinik": "no column 'clinik' for the target; did you mean 'clinic'",
        "data show price.csv --target price --task classification": "500 distinct",
        "data show price.csv --target price --target price": "--target price is given twice",
        "data show no.csv --target price": "no.csv",
        "data show . --target price": ". is a folder; name a file in it",
        "data show huge.csv --target y": "column 'y' is too large to standardise",
        "data show rows.csv --target y --target w": "rows.csv: no column 'w' for the target",
        "data show rows.csv --target y --array X": "has no arrays to choose from; leave `arrays` out",
        "data show comma.csv --target y": "line 2, column 1 ('x') holds '1,5', a number with a decimal c",
        "data show cut.csv.gz --target y": "cut.csv.gz cannot be read: its compression is dam",
        "data show cut.csv.xz --target y": "cut.csv.xz cannot be read: its compression is dam",
        "data show cut.csv.bz2 --target y": "cut.csv.bz2 cannot be read: its compression is dam",
        "data show some.doc.gz --target y": "files ending in '.doc' are not read; use .csv",
        "data show no.zip --target y": "no.zip is no .zip archive that can be read",
        "data audit nosuch.csv": "no file nosuch.csv",
        "data audit visits.csv --target y": "'clinic'",
        "data audit visits.csv --target y --groups clinik": "'clinik' for the groups; did you mean",
        "data audit visits.csv --target y --features a,z": "no feature column 'z'",
        "data split visits.csv": "visits.csv: give one --target",
        "data split visits.csv --target y --features a --kind groups": "needs a column of groups",
        "data split visits.csv --target y --groups clinic --kind fixed": "has no fixed splits",
        "data split airfoil --groups clinic": "airfoil is a data set of a registry",
        "data split banana:full --kind fixed --out m.csv": "data set 'banana:full' has no fixed splits",
        "data split boston --folds 600": "600 folds of 506 rows: some would be empty; use at most 506",
        "data split boston --kind random --test-fraction 1.5": "test fraction 1.5: give a number betw",
        "data split boston --kind random --test-fraction 1e-9": "leaves no test row",
        "data split boston --out no/such/folder.csv": "folder.csv cannot be written (No such file",
        "data table boston boston@RAD": "error: data set 'boston' has no output 'RAD' (it has one)\n",
        # records
        "verify adam2021-fig4": "did you mean 'adam2021-fig3'",
        "verify adam2021-fig3 --sample 0": "--sample",
        "verify --results no": "error: --results no: there is no such folder; name one with records\n",
        "verify --results empty": "error: no records in empty\n",
        "verify --results torn": "is not a record",
        "verify --results cut": "error: cut/mine.parquet is damaged: ",
        "collect": "Missing argument",
        "collect whole": "give --out FILE for a table or --into RESULTS",
        "collect whole --out a.csv --into r": "give one of them at a time",
        "collect whole --out a.xlsx": "ends in .parquet or .csv",
        "collect whole --out a.csv --keep oldest": "'oldest'",
        "collect whole --out nowhere/a.csv": "--out nowhere/a.csv: there is no folder",
        "collect whole --into cut": "error: cut/mine.parquet is damaged: ",
        "collect nowhere --out a.csv": "nowhere: there is no such folder",
        "collect cut --out a.csv": "error: cut/mine.parquet is damaged: ",
        "collect . --into whole --traces": "--traces is for a table",
        # plugins
        "new method whole": "whole is there already; take another name, or another folder by --out",
        "new method t-svgp": "there is a method 't-svgp' already; take another name",
        "new method T_svgp": "'T_svgp' names no package: use small letters",
        "check --backend torhc": "unknown backend 'torhc'; did you mean 'torch'?",
        "check --quick --full": "--quick and --full exclude each other; give one",
    },
}  # fmt: skip
"""Command lines by exit code, with a text that each prints in the folder of `write_place`."""

SLOW = (
    "leaderboard --results committed/suite",
    "claims adam2021-05 adam2021-16 --results committed",
)
"""Lines that take half a minute."""


def leaf_commands(group: Any = None, prefix: str = "") -> dict[str, bool]:
    """Return whether each command of `svgpbench --help` has `--json`, by name such as `data show`."""
    found: dict[str, bool] = {}
    group = get_command(app) if group is None else group
    for key, command in group.commands.items():
        if isinstance(command, TyperGroup):
            found |= leaf_commands(command, f"{prefix}{key} ")
        else:
            options = [option for parameter in command.params for option in parameter.opts]
            found[prefix + key] = "--json" in options
    return found


def name_of(line: str) -> str:
    """Return the name of the command of a line; empty where it has none."""
    words = line.split()
    name = " ".join(words[: 1 + line.startswith("data ")])
    return "" if name.startswith("-") else name


ENTRIES = """
[[figures]]
name = "one"
metrics = ["elbo"]

[[figures]]
name = "two"
kind = "finals"
marks = "bars"

[[tables]]
name = "short"
metrics = ["nlpd"]

[[tables]]
name = "long"
"""
"""Figures and tables that an experiment may declare."""

GAUSSIAN = '{ name = "gaussian" }'
ITERATIONS = "em_iterations = 2"

WRONG_KEYS: tuple[tuple[str, str, str], ...] = (
    ("[kernel]", "[kernel", "is not well-formed TOML"),
    ('name = "mine"', 'title = "mine"', "missing key 'name'"),
    ('name = "mine"', 'name = "../../evil"', "name must be of letters, digits and . _ -, a"),
    ('backends = ["numpy"]', "backends = []", "backends must have at least 1 item, got []"),
    ("[kernel]\nlengthscale = 1.0", "kernel = 3", "[kernel] must be a table, got 3"),
    # training
    (ITERATIONS, "e_rates = 0.5", "unknown key 'e_rates' in [training]; did you mean 'e_rate'?"),
    (ITERATIONS, "e_rate = { start = 0.1, decai = 0.1 }",
     "unknown key 'decai' in [training] e_rate; did you mean 'decay'?"),
    (ITERATIONS, "e_rate = { start = 0.1, decay = 0.1, steps = 40 }",
     "unknown key 'decay' in [training] e_rate; known: end, increment, start, steps"),
    (ITERATIONS, "e_rate = { end = 0.1, steps = 40 }", "missing key 'start' in [training] e_rate"),
    (ITERATIONS, "e_rate = { start = 1e-4, end = 0.1, steps = 0 }",
     "[training] e_rate.steps must be greater than 0, got 0"),
    (ITERATIONS, "e_rate = 'fast'", "[training] e_rate must be a number, got"),
    (ITERATIONS, 'em_iterations = "two"', "em_iterations must be an integer, got 'two'"),
    ("m_steps = 2", 'm_steps = "2"', "[training] m_steps must be an integer, got '2'"),
    ("m_steps = 2", "m_steps = -2", "[training] m_steps must be greater than or equal to 0"),
    ("m_steps = 2", "batch_size = 31", "training.batch_size = 31 is more than the 30"),
    ("m_steps = 2", "rows = 31", "training.rows = 31 is more than the 30 training rows"),
    ("m_steps = 2", "rows = 4", "inducing.count = 5 is more than the 4 training rows"),
    ("m_steps = 2", "rows = 9\nbatch_size = 10", "training.batch_size = 10 is more than the 9"),
    ("m_steps = 2", 'optimiser = "lbfgs"', "optimiser must be 'adam' or 'l-bfgs'"),
    ("m_steps = 2", 'optimiser = "l-bfgs"\nbatch_size = 10',
     "'l-bfgs' takes all data in every step; remove training.batch_size or use 'adam'"),
    ("m_steps = 2", 'kind = "online"\nonline = { incremnt = 3 }', "did you mean 'increment'"),
    # kernel and inducing inputs
    ("lengthscale = 1.0", "lengthscale = -1.0", "[kernel] lengthscale must be greater than"),
    ("lengthscale = 1.0", "lengthscale = [1.0, -2.0]", "lengthscale no. 2 must be greater"),
    ("lengthscale = 1.0", "lengthscale = nan", "[kernel] lengthscale must be"),
    ("lengthscale = 1.0", "lengthscale = [1.0]", "has 1 values where data set 'rows' needs 2"),
    ("lengthscale = 1.0", 'name = "matern12"', "unknown kernel 'matern12'"),
    ("[kernel]", "[kernel]\nadr = false", "unknown key 'adr' in [kernel]; did you mean 'ard'?"),
    ("[kernel]", "[kernel]\nroughness = 2.0", "unknown key 'roughness' in [kernel]; known: ard,"),
    ("[inducing]", "[inducin]", "unknown key 'inducin'; did you mean 'inducing'?"),
    ("[inducing]", "[inducing]\ncuont = 4", "'cuont' in [inducing]; did you mean 'count'?"),
    ("[inducing]", '[inducing]\ninit = "kmeans"', "did you mean 'k-means'?"),
    ("count = 5", "count = 31", "inducing.count = 31 is more than the 30 training rows"),
    ("count = 5", "count = 5\ngamma = 8", "changed.toml: [inducing] gamma is for methods with two bases"),
    # split
    ("folds = 4", 'kind = "k_fold"',
     "[split] kind must be 'k-fold', 'random', 'fixed', 'groups', 'blocks' or 'column'"),
    ("run_folds = [0, 1]", "run_folds = [4]", "fold 4 of 4"),
    ("run_folds = [0, 1]", 'kind = "column"', "kind = 'column' needs run_folds"),
    # backends and methods
    ('"numpy"', '"nunpy"', "unknown backend 'nunpy'; did you mean 'numpy'?"),
    ("label =", "lable =", "'lable' in [[methods]] no. 1; did you mean 'label'?"),
    ('name = "t-svgp"', 'name = "t-svpg"', "unknown method 't-svpg'; did you mean"),
    ('name = "t-svgp"', 'name = "t-svgp"\noptions = { tieing = "tied" }',
     "unknown option of method t-svgp 'tieing'; did you mean 'tying'?"),
    ('name = "t-svgp"', 'name = "gpr"\ntraining = { batch_size = 10 }',
     "method 'gpr' takes all data in every step; remove training.batch_size"),
    ('name = "t-svgp"', 'name = "orth"', "method 'orth' has two bases: set inducing.gamma"),
    ('name = "t-svgp"', 'name = "t-svgp"\ninducing = { gamma = 8 }',
     "method 't-svgp' has one basis: remove inducing.gamma"),
    ('name = "t-svgp"', 'name = "t-svgp"\n[presets.p]\nspot_check_backends = ["numpy"]',
     "spot_check_backends: numpy runs every cell; leave it out"),
    # likelihoods
    (GAUSSIAN, '{ name = "gausian" }', "unknown likelihood 'gausian'"),
    (GAUSSIAN, '{ name = "bernoulli-probit" }', "is for classification"),
    (GAUSSIAN, '{ name = "bernoulli-probit", noise_variance = 1.0 }',
     "'noise_variance' in [[problems]] no. 1: likelihood; known: "),
    (GAUSSIAN, '{ name = "student-t", scael = 3 }',
     "unknown key 'scael' in [[problems]] no. 1: likelihood; did you mean 'scale'?"),
    (GAUSSIAN, '{ name = "student-t", scale = "1" }',
     "no. 1: likelihood: option 'scale' of likelihood 'student-t' must be a number, got '1'"),
    (GAUSSIAN, '{ name = "student-t", df = 1.0 }',
     "option 'df' of likelihood 'student-t' must be greater than 1, got 1.0"),
    (GAUSSIAN, '{ name = "poisson" }', "takes counts 0, 1, 2, …, but row"),
    ('{ name = "gaussian" }\n\n[[methods]]\nlabel = "t-SVGP"\nname = "t-svgp"',
     '{ name = "bernoulli-probit" }\n\n[[methods]]\nname = "gpr"',
     "method 'gpr' cannot take likelihood 'bernoulli-probit': it has Gaussian noise"),
    # data
    (', task = "regression"', "", "needs `target` and `task` too"),
    ('target = "y"', 'target = "Y"', "no column 'Y' for the target"),
    ('target = "y"', 'targte = "y"',
     "'targte' in [[problems]] no. 1: data no. 1; did you mean 'target'?"),
    ("[{ name", '[{ name = "boston", target = "RAD" }, { name',
     "data 'boston' has no path, so its registry says what `target` is: leave it out"),
    ("[{ name", '["sarcos@torque8", { name', "no output 'torque8'; did you mean 'torque7'?"),
    ("[{ name", '["bostn", { name', "unknown data set 'bostn'; did you mean 'boston'?"),
    ("[[methods]]",
     '[[problems]]\ndata = [{ name = "rows", path = "rows.csv", target = "y", task = "regression" }]\n'
     'likelihood = { name = "gaussian" }\n[[methods]]',
     "data set 'rows' is there 2 times; give the data of each problem its own name"),
    ("rows.csv", "word.csv", "word.csv: line 7, column 2 ('z') holds 'abc', not a number"),
    ("rows.csv", "nan.csv", "nan.csv: line 7, column 2 ('z') holds 'nan', a missing value"),
    ("rows.csv", "hole.csv", "hole.csv: line 7, column 3 ('y') is empty"),
    ("rows.csv", "short.csv", "short.csv: line 7 has 2 cells where 3 columns are expected"),
    ("rows.csv", "file.csv", "file.csv is empty"),
)  # fmt: skip
"""Mistakes in an experiment file: a text, what is there in its place, and the message of `run`."""

WRONG_ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    ("run changed.toml --method zzz", 'label = "t-SVGP"', 'label = "mean field, natgrad"',
     "(known: 'mean field, natgrad', t-svgp)"),
    ("plot changed.toml", "marks =", "mark =",
     "error: mine: unknown key 'mark' in [[figures]] no. 2; did you mean 'marks'?"),
    ("plot changed.toml", '"bars"', '"bar"',
     "error: mine: [[figures]] no. 2: marks must be 'points' or 'bars', got 'bar'"),
    ("plot changed.toml", 'name = "two"', 'name = "one"',
     "error: changed.toml: figure 'one' is there 2 times; change the name"),
    ("plot changed.toml", 'name = "two"', "", "error: changed.toml: missing key 'name' in [[figures]] no. 2"),
    ("plot changed.toml --figure one", "elbo", "elob",
     "error: mine: [[figures]] no. 1: metrics no. 1: unknown metric 'elob'; did you mean 'elbo'?"),
    ("plot changed.toml --figure two", "finals", "finasl",
     "error: mine: [[figures]] no. 2: unknown kind of figure 'finasl'; did you mean 'finals'?"),
    ("plot changed.toml --figure tow", "", "", "error: unknown figure of mine 'tow'; did you mean 'two'?"),
    ("table changed.toml", "nlpd", "npld",
     "error: mine: [[tables]] no. 1: metrics no. 1: unknown metric 'npld'; did you mean 'nlpd'?"),
    ("table changed.toml --table lnog", "", "",
     "error: unknown table of mine 'lnog'; did you mean 'long'?"),
    ("table changed.toml --metric rsme", "", "", "error: unknown metric 'rsme'; did you mean 'rmse'?"),
    ("table changed.toml --json", "", "",
     "error: mine declares several tables; choose one with --table: short, long"),
)  # fmt: skip
"""Mistakes in other commands with the file: the command line, and as above."""

TWO = ('name = "t-svgp"\n', 'name = "t-svgp"\n\n[[methods]]\nlabel = "q"\nname = "q-svgp"\n')
"""A change that adds a second method to the experiment of a user."""


def write_place(folder: Path) -> None:
    """Write tables, an experiment and its records, in one folder, in shards and damaged ones."""
    write_own(folder, TWO)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert exit_code(["run", "mine.toml", "--results", "whole"]) == 0
        for place in "12":
            shard = ("--shard", f"{place}/2", "--results", f"shards/{place}")
            assert exit_code(["run", "mine.toml", *shard]) == 0
        assert exit_code(["collect", "shards", "--into", "merged"]) == 0
    shutil.copytree(folder / "merged", folder / "cut")
    (folder / "cut" / ".locks").touch()  # locks of commands that write there
    path = folder / "cut" / "mine.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    shutil.copytree(folder / "whole", folder / "torn")
    path = next((folder / "torn").rglob("*.json"))
    path.write_text(path.read_text()[:100])
    for name in ("records", "empty"):
        (folder / name).mkdir()
    (folder / "committed").symlink_to(RESULTS)
    optima = "kobe2021-optima.parquet"
    (folder / "records" / optima).symlink_to(RESULTS / optima)
    for name, content in TABLES.items():
        (folder / name).write_bytes(content)
    _, *rows = (folder / "rows.csv").read_text().splitlines()
    for name, line in BAD_LINES.items():
        (folder / name).write_text("\n".join(["x,z,y", *rows[:5], line, *rows[6:], ""]))


BAD_LINES = {
    "word.csv": "0.1,abc,0.2", "nan.csv": "0.1,nan,0.2", "hole.csv": "0.1,0.2,", "short.csv": "0.1,0.2",
}  # fmt: skip
"""Line 7 of tables that cannot be used."""

LONG = b"x,y\n1,2\n" * 99
TABLES = {
    "file": b"",
    "file.csv": b"",
    "price.csv": b"id,price\n" + b"".join(b"%d,%d.5\n" % (i, i) for i in range(500)),
    "visits.csv": b"a,b,y,clinic\n" + b"".join(b"%d,%d,%d,c%d\n" % (i, i % 7, i, i % 9) for i in range(90)),
    "huge.csv": b"x,y\n" + b"".join(b"%d,%de200\n" % (i, i) for i in range(9)),
    "comma.csv": b"x;y\n1,5;2\n3;4\n",
    "cut.csv.gz": gzip.compress(LONG)[:-9],
    "cut.csv.xz": lzma.compress(LONG)[:-9],
    "cut.csv.bz2": bz2.compress(LONG)[:-9],
    "some.doc.gz": gzip.compress(b"x,y\n1,2\n3,4\n"),
    "no.zip": b"PK no zip",
}  # fmt: skip
"""Files that command lines name."""
