"""Peers: who names their Python, and that each computes our numbers, step by step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from svgpbench.benchmarks.timing import locate_peers, run_speed
from svgpbench.benchmarks.timing.cases import STEPS
from svgpbench.benchmarks.timing.peers import SERVE, known_peers, peer_python
from svgpbench.benchmarks.timing.problems import make_problem, save_problem
from svgpbench.errors import UserError
from svgpbench.libraries.steps import CACHED_ROWS
from svgpbench.plugins import PEERS, plugins

REFUSED = {
    ("gpflow", "natgrad retraced"): {"e_step_held", "predict", *CACHED_ROWS},
    ("gpytorch", "tril-ngd"): {"e_step", "e_step_held", "em_step"},
    ("gpjax", "whitened"): set(CACHED_ROWS),
    ("gpjax", "dual"): set(CACHED_ROWS),
    ("gpjax", "whitened", "tiny-softmax"): set(STEPS),
    ("gpjax", "dual", "tiny-softmax"): set(STEPS),
}
"""Steps for which a peer has no equal, by method and perhaps problem."""


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable names the Python of a peer."""
    for peer in known_peers().values():
        monkeypatch.delenv(peer.variable, raising=False)


@pytest.mark.parametrize("problem", ["tiny", "tiny-bern", "tiny-softmax"])
@pytest.mark.parametrize("name", ["gpflow", "gpytorch", "gpjax"])
def test_a_peer_computes_the_same_numbers(
    name: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if peer_python(name) is None:
        pytest.skip(f"no environment of peer {name!r}: make peers makes it")
    monkeypatch.setattr("svgpbench.benchmarks.timing.compare.ROUND_S", 0.01)
    peers = locate_peers([name])
    report = run_speed([problem], ["numpy"], tuple(STEPS), peers, repeats=1, max_other_cores=1e9)
    assert report.ok, report.notes()
    theirs = [cell for cell in report.cells if cell.peer]
    assert {cell.method for cell in theirs} == set(known_peers()[name].methods)
    for cell in theirs:
        refused = REFUSED.get((name, cell.method), set())
        refused = refused | REFUSED.get((name, cell.method, problem), set())
        assert bool(cell.refused) == (cell.step in refused), cell
        if cell.refused:
            continue
        assert cell.times() is not None
        assert cell.mode in cell.modes and isinstance(cell.modes[cell.mode], float)
        # GPflow's Adam is Keras's, whose rate and decays are float32: the report's own tolerance holds
        if name != "gpflow" or cell.step not in ("m_step", "em_step"):
            assert cell.difference is not None and cell.difference <= 1e-10, cell


TRACES = """
import json, sys
import gpflow
import numpy as np
import serve

serve.find_svgpbench()
peer = serve.load_script(sys.argv[1])
real, traced = gpflow.optimizers.NaturalGradient.minimize, []


def minimize(self, *rest, **more):
    traced.append(1)
    return real(self, *rest, **more)


gpflow.optimizers.NaturalGradient.minimize = minimize
with np.load(sys.argv[2]) as arrays:
    problem = dict(arrays)
found = {}
for method in ("natgrad", "natgrad retraced"):
    step, counts = peer.build(problem, method, "em_step"), []
    for _ in range(3):
        traced.clear()
        step.reset()
        step.modes["graph"]()
        counts.append(len(traced))
    found[method] = counts, len(step.modes)
print(json.dumps(found))
"""


def test_gpflow_is_timed_compiled_once_and_traced_in_every_iteration(tmp_path: Path) -> None:
    python = peer_python("gpflow")
    if python is None:
        pytest.skip("no environment of peer 'gpflow': make peers makes it")
    save_problem(make_problem("tiny"), tmp_path / "tiny.npz")
    script = known_peers()["gpflow"].script
    told = subprocess.run(
        [python, "-c", TRACES, str(script), str(tmp_path / "tiny.npz")],
        cwd=SERVE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    # four E-steps an iteration: unrolled in one trace, or a trace each at every call
    compiled, retraced = json.loads(told.stdout.splitlines()[-1]).values()
    assert compiled == [[4, 0, 0], 2]
    assert retraced == [[4, 4, 4], 1]


def test_every_peer_is_a_plugin_that_can_be_loaded() -> None:
    assert set(known_peers()) == set(plugins(PEERS)) >= {"gpflow", "gpytorch", "gpjax"}
    for peer in known_peers().values():
        assert any(r.startswith(f"{peer.distribution}==") for r in peer.requirements)


ONLY_NUMPY = (
    *("svgpbench.errors", "svgpbench.libraries.", "svgpbench.benchmarks.stability.walk"),
    # of these two, the standard library alone
    *("svgpbench.runs.parent_process", "svgpbench.benchmarks.timed_calls"),
)


def test_peer_scripts_import_of_this_project_what_needs_numpy_alone() -> None:
    for script in (SERVE, *(peer.script for peer in known_peers().values())):
        lines = script.read_text(encoding="utf-8").splitlines()
        imports = [line.split() for line in lines if line.lstrip().startswith(("import ", "from "))]
        ours = [words[1] for words in imports if words[1].startswith("svgpbench")]
        assert imports and all(name.startswith(ONLY_NUMPY) for name in ours)


@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("/no/such/python", "no such program"),
        ("/bin/false", "not a python that runs"),
        ("/bin/echo", "not a python that runs"),
    ],
)
@pytest.mark.parametrize("names", [["gpflow"], None])
def test_bad_peer_python_is_one_line(names: list[str] | None, python: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as told:
        locate_peers(names, python)
    assert "\n" not in str(told.value)


def test_a_python_that_a_variable_names_must_have_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVGPBENCH_GPFLOW_PYTHON", sys.executable)
    with pytest.raises(UserError, match=r"SVGPBENCH_GPFLOW_PYTHON .+-m pip install gpflow"):
        locate_peers(None)
    with pytest.raises(UserError, match=r"--peer-python .+ has none of the peers \(gpflow, "):
        locate_peers(None, sys.executable)


@pytest.mark.usefixtures("no_variables")
def test_peers_are_those_that_are_asked_for() -> None:
    assert locate_peers(None) == {}
    with pytest.raises(UserError, match="unknown peer 'gpflw'"):
        locate_peers(["gpflw"])
