"""A formula of somebody's plugin changes: no old number comes back, and each command says so."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from installed import Place

from svgpbench.results.records import read_record, record_files

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from own_experiment import write_own

PROJECT = """
[project]
name = "shifty"
version = "1.0"
[project.entry-points."svgpbench.methods"]
shifty = "shifty.method:Method"
other = "shifty.other:Other"
[project.entry-points."svgpbench.likelihoods"]
shifty = "shifty.likelihood:Likelihood"
[project.entry-points."svgpbench.kernels"]
shifty = "shifty.kernel:Kernel"
[project.entry-points."svgpbench.inducing"]
shifty = "shifty.start:Start"
[project.entry-points."svgpbench.backends"]
shifty = "shifty.backend:Ops"
"""
FILES = {
    "shifty/__init__.py": "",
    "shifty/method.py": '''
from typing import ClassVar
from svgpbench.methods.dual import DualSVGP

class Method(DualSVGP):
    """A method."""
    name: ClassVar[str] = "shifty"
    def bound(self, *arguments):
        return 2.0 * super().bound(*arguments)
''',
    "shifty/other.py": """
from svgpbench.methods.dual import DualSVGP
class Other(DualSVGP):
    name = "other"
""",
    "shifty/likelihood.py": """
from svgpbench.likelihoods.gaussian import GaussianLikelihood
from .formulas import FACTOR
class Likelihood(GaussianLikelihood):
    name = "shifty"
    def log_predictive_density(self, *arguments):
        return FACTOR * super().log_predictive_density(*arguments)
""",
    "shifty/formulas.py": "FACTOR = 2.0\n",
    "shifty/kernel.py": """
from svgpbench.kernels.kernels import Matern52
import shifty_scales
class Kernel(Matern52):
    name = "shifty"
    def shape(self, ops, d2):
        return super().shape(ops, shifty_scales.scale() * d2)
""",
    "shifty_scales.py": "def scale():\n    from shifty_deep import SCALE\n    return SCALE\n",
    "shifty_deep.py": "SCALE = 2.0\n",
    "shifty/start.py": """
import json
from pathlib import Path
from svgpbench.initialization.inducing_inputs import RandomRows
class Start(RandomRows):
    def choose(self, X, count, rng, covariance):
        first = json.loads(Path(__file__).with_name("first.json").read_text())
        return X[first:first + count].copy()
""",
    "shifty/first.json": "2",
    "shifty/backend.py": """
import importlib
from svgpbench_backends.numpy_backend import NumpyOps
class Ops(NumpyOps):
    name = "shifty"
    def exp(self, x):
        return importlib.import_module("shifty.powers").exp(self, x)
""",
    "shifty/powers.py": "import numpy as np\ndef exp(ops, x):\n    return np.exp(2.0 * x)\n",
}
PARTS = {
    "method": ("shifty/method.py", ('name = "t-svgp"', 'name = "shifty"')),
    "likelihood": ("shifty/formulas.py", ('{ name = "gaussian" }', '{ name = "shifty" }')),
    "kernel": ("shifty_deep.py", ("lengthscale = 1.0", 'name = "shifty"')),
    "initialisation of inducing inputs": (
        "shifty/first.json",
        ("count = 5", 'count = 5\ninit = "shifty"'),
    ),
    "backend": ("shifty/powers.py", ('backends = ["numpy"]', 'backends = ["shifty"]')),
}
"""Where each formula lies, and the change of an experiment that needs it."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    source = tmp_path / "source"
    for name, text in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (source / "pyproject.toml").write_text(PROJECT)
    return Place(tmp_path, source)


def change(place: Place, name: str, old: str = "2", new: str = "3") -> None:
    path = place.folder / "source" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    os.utime(path, (path.stat().st_mtime + 10,) * 2)  # bytecode knows seconds only


def elbo(place: Place, folder: str) -> float:
    (path,) = record_files(place.folder / folder)
    return float(read_record(path).metrics["elbo"] or 0.0)


def test_a_changed_formula_runs_again_and_a_changed_comment_does_not(place: Place) -> None:
    own = write_own(place.folder, PARTS["method"][1], ("folds = [0, 1]", "folds = [0]"))
    first = place.run("run", own.name, "--results", "runs")
    assert first.returncode == 0, first.stderr
    assert "1 cell to run, 0 done earlier" in first.stderr
    path = place.folder / "source" / "shifty/method.py"
    path.write_text(f"# {path.read_text()}".replace("A method.", "Another text.\n\n    More."))
    change(place, "shifty/other.py", "other", "another")  # another plugin of the package
    same = place.run("run", own.name, "--results", "runs")
    assert "0 cells to run, 1 done earlier" in same.stderr and "other code" not in same.stderr
    old = elbo(place, "runs")
    change(place, "shifty/method.py", "2.0", "3.0")
    what = "made by other code of method shifty of package shifty"
    for shown in (("table",), ("collect", "runs", "--out", "cells.csv")):
        said = place.run(*shown, *([own.name, "--results", "runs"] if shown == ("table",) else []))
        assert what in said.stdout + said.stderr, said.stdout + said.stderr
    again = place.run("run", own.name, "--results", "runs")
    assert f"1 cells run again: their records were {what}" in again.stderr
    assert "1 cell to run, 0 done earlier" in again.stderr
    assert elbo(place, "runs") == pytest.approx(1.5 * old, rel=1e-12)
    (aside,) = (place.folder / "runs").rglob("*.superseded")
    assert json.loads(aside.read_text())["metrics"]["elbo"] == old
    last = place.run("run", own.name, "--results", "runs")
    assert "0 cells to run, 1 done earlier" in last.stderr


def test_a_failure_of_new_code_is_not_hidden_by_a_collected_number_of_the_old(place: Place) -> None:
    own = write_own(place.folder, PARTS["method"][1], ("folds = [0, 1]", "folds = [0]"))
    place.run("run", own.name, "--results", "runs")
    collected = place.run("collect", "runs", "--into", "kept")
    assert collected.returncode == 0, collected.stderr
    change(place, "shifty/method.py", "return 2.0", "return None")
    again = place.run("run", own.name, "--results", "kept")
    assert again.returncode == 1 and "1 cells: 1 error" in again.stdout, again.stdout
    table = place.run("table", own.name, "--results", "kept")
    assert "error" in table.stdout + table.stderr


IN_ONE_PROCESS = """
import json, os, sys
from pathlib import Path
import numpy as np
from svgpbench import api

def change(name):
    path = Path("source", name)
    path.write_text(path.read_text().replace("2", "3"))
    os.utime(path, (path.stat().st_mtime + 10,) * 2)

def scores(part, results):
    (record,) = api.run(f"{part}.toml", results=results)
    return record.status, record.metrics["elbo"], record.metrics["nlpd"]

X = np.linspace(0.0, 1.0, 30)[:, None]
settings = {"method": {"method": "shifty"}, "likelihood": {"likelihood": "shifty"},
            "kernel": {"kernel": "shifty"}, "start": {"inducing": {"count": 5, "init": "shifty"}},
            "backend": {"backend": "shifty"}}

def fitted(part):
    kept = api.fit(X, np.sin(6.0 * X[:, 0]), training={"em_iterations": 2, "m_steps": 1},
                   **{"inducing": 5} | settings[part])
    return kept.trace["elbo"].iloc[-1], kept.score(X, np.sin(6.0 * X[:, 0]))["nlpd"]

found = {}
for part, name in json.loads(sys.argv[1]).items():
    before = scores(part, part), fitted(part)
    change(name)
    found[part] = [*before, scores(part, part), fitted(part), scores(part, f"{part}-anew")]
print(json.dumps(found))
"""


def test_in_one_process_no_part_gives_an_old_number(place: Place) -> None:
    names = {}
    for title, (file, needs) in PARTS.items():
        part = "start" if title.startswith("init") else title
        own = write_own(
            place.folder,
            needs,
            ("folds = [0, 1]", "folds = [0]"),
            ("m_steps = 2", "m_steps = 0"),
        )
        own.rename(place.folder / f"{part}.toml")
        names[part] = file
    done = place.python("-c", IN_ONE_PROCESS, json.dumps(names))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == names.keys()
    for part, (before, fit_before, after, fit_after, anew) in found.items():
        assert (before[0], after[0]) == ("ok", "ok"), part
        assert before[1:] != after[1:], part
        assert after == anew, part
        assert fit_before != fit_after, part
    assert found["likelihood"][3][1] == pytest.approx(1.5 * found["likelihood"][1][1])
