"""Learning online from an experiment file: its settings, its methods, its refusals."""

from __future__ import annotations

from pathlib import Path

from own_experiment import write_own

from svgpbench.config import CellConfig, OnlineConfig
from svgpbench.experiments import load_experiment, resolve
from svgpbench.experiments.cell import run_cell
from svgpbench.experiments.validation import check_cells

ONLINE = """m_steps = 2
kind = "online"
batch_size = 15
[training.online]
iterations = 12
increment = 3
rates = [0.1, 0.01]
trial = 4
trace_every = 4
"""
SE = ("lengthscale = 1.0", 'name = "se"\ninit = "median"')
SVDGP = (
    'name = "t-svgp"',
    """name = "t-svgp"

[[methods]]
label = "SVI"
name = "q-svgp"
options = { whiten = false }

[[methods]]
label = "SVDGP"
name = "decoupled"
options = { subset = 4 }
inducing = { count = 4, gamma = 9, functions = "features" }
training.online = { increment = 4 }

[presets.quick]
training.online = { rates = [0.05] }
""",
)


def cells(folder: Path, preset: str | None = None) -> dict[str, CellConfig]:
    path = write_own(folder, ("m_steps = 2", ONLINE), SE, SVDGP)
    experiment = load_experiment(str(path))
    if preset is None:
        experiment = experiment.model_copy(update={"presets": {}})
    return {cell.method.title: cell for cell in resolve(experiment, preset)}


def test_settings_of_a_method_and_a_preset_override_single_keys(tmp_path: Path) -> None:
    found = cells(tmp_path)
    declared = OnlineConfig(iterations=12, increment=3, rates=(0.1, 0.01), trial=4, trace_every=4)
    assert found["SVI"].training.online == declared
    assert found["SVDGP"].training.online == declared.model_copy(update={"increment": 4})
    quick = cells(tmp_path, "quick")["SVDGP"].training.online
    assert (quick.rates, quick.increment, quick.iterations) == ((0.05,), 4, 12)


def test_the_paper_s_algorithms_run_from_a_file(tmp_path: Path) -> None:
    found = cells(tmp_path)
    check_cells(list(found.values()))
    sizes = {}
    for name, cell in found.items():
        outcome = run_cell(cell)
        assert outcome.status == "ok", outcome.message
        assert outcome.trace["iteration"] == [1, 4, 8, 12]
        assert outcome.metrics["heldout_elbo"] is not None
        assert outcome.metrics["gamma0"] in (0.1, 0.01)
        sizes[name] = (outcome.metrics["inducing"], outcome.metrics.get("gamma"))
    assert sizes == {"t-SVGP": (5, None), "SVI": (5, None), "SVDGP": (4, 9)}
