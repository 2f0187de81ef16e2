"""A run that is stopped at any point and goes on elsewhere gives the bits of one that was not."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_cell import config

from svgpbench.atomic import write_whole
from svgpbench.backends import load_backend
from svgpbench.checks.cases import VARIANTS, build_model, small_problem
from svgpbench.config import OnlineConfig, TrainingConfig
from svgpbench.experiments.cell import run_cell
from svgpbench.initialization.growing_basis import Growth
from svgpbench.methods import build_method
from svgpbench.ops import Ops
from svgpbench.training.batches import TrainingData
from svgpbench.training.checkpoints import Checkpoint
from svgpbench.training.chunked import trainer_class
from svgpbench.training.em import Trained, Trainer
from svgpbench.training.online import OnlineTrainer
from svgpbench.training.state import TrainState
from svgpbench.tree import leaves

NUMPY, PROBLEM = load_backend("numpy"), small_problem()


@dataclass(frozen=True)
class Run:
    """A way of training, and how many times it may be stopped."""

    method: str
    settings: dict[str, Any]
    likelihood: str = "gaussian"
    growth: Growth | None = None

    def trainer(self, ops: Ops) -> Trainer:
        model = build_model(self.likelihood, "matern52")
        theta, targets = PROBLEM.theta(model), PROBLEM.targets(model.likelihood.support)
        data = TrainingData(PROBLEM.X, targets, PROBLEM.X[:10] + 0.2, targets[:10])
        name, options = VARIANTS[self.method]
        method = build_method(name, options)
        settings = TrainingConfig(**({"em_iterations": 4, "m_steps": 2} | self.settings))
        if self.growth is not None:
            grown = (ops, model, method, data, theta._replace(inducing=()))
            return OnlineTrainer(*grown, settings, self.growth, seed=2)
        if method.basis == "data":
            theta = theta._replace(inducing=PROBLEM.X)
        if method.basis == "decoupled":
            theta = PROBLEM.decoupled_theta(model)
        return trainer_class(method)(ops, model, method, data, theta, settings, seed=2)


def online(rates: tuple[float, ...]) -> dict[str, Any]:
    settings = OnlineConfig(iterations=5, increment=3, rates=rates, trial=2, trace_every=2)
    return {"kind": "online", "online": settings, "batch_size": 16}


RUNS = {
    "full batch": Run("t-svgp tied-projected", {}),
    "sites, minibatches": Run("t-svgp untied", {"batch_size": 16, "e_steps": 2, "e_rate": 0.5}),
    "Adam of q, noise": Run("q-svgp adam", {"batch_size": 16, "e_rate": 0.05}, "softmax"),
    "damped": Run("q-svgp natgrad", {"e_rate": 0.5, "trace_every": 3}, "student-t"),
    "L-BFGS phases": Run("t-svgp tied-projected", {"optimiser": "l-bfgs"}),
    "L-BFGS throughout": Run("gpr", {"optimiser": "l-bfgs"}),
    "L-BFGS throughout, by sums": Run("sgpr", {"optimiser": "l-bfgs"}),
    "online": Run("q-svgp natgrad unwhitened", online((0.1,)), growth=Growth(3, 8)),
    "online, three rates": Run(
        "t-svgp tied-projected", online((0.01, 0.1, 0.03)), growth=Growth(3, 8)
    ),
    "online, the first rate the best": Run(
        "t-svgp tied-projected", online((0.1, 0.01)), growth=Growth(3, 8)
    ),
    "online, two bases": Run("decoupled adam subset", online((0.01, 0.1)), growth=Growth(3, 6, 9)),
}
"""Ways of training that keep different things from one iteration to the next."""

WHOLE = RUNS["full batch"]


class Stopped(BaseException):
    """The process ended."""


class StoppedAfter(Checkpoint):
    """A checkpoint whose process ends right after so many writes."""

    def __init__(self, path: Path, writes: int) -> None:
        super().__init__(path, "key", every_s=0.0)
        self.writes = writes

    def save(self, ops: Ops, state: TrainState) -> None:
        super().save(ops, state)
        self.writes -= 1
        if not self.writes:
            raise Stopped


def assert_same_bits(one: Trained, other: Trained) -> None:
    assert (one.status, one.message) == (other.status, other.message)
    assert one.evaluations == other.evaluations
    for a, b in zip(one.trace, other.trace, strict=True):
        assert {**a, "seconds": 0.0} == {**b, "seconds": 0.0}
    for tree, twin in ((one.theta, other.theta), (one.q, other.q)):
        for x, y in zip(leaves(tree), leaves(twin), strict=True):
            np.testing.assert_array_equal(x, y)


def writes_of(run: Run, ops: Ops, path: Path) -> tuple[Trained, int]:
    """The run with every place kept, and how many there were."""
    checkpoint = StoppedAfter(path, -1)
    whole = run.trainer(ops).run(checkpoint)
    path.unlink()
    return whole, -1 - checkpoint.writes


@pytest.mark.parametrize("name", RUNS)
def test_a_run_stopped_anywhere_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    run, path = RUNS[name], tmp_path / "place.npz"
    undisturbed = run.trainer(NUMPY).run()
    whole, writes = writes_of(run, NUMPY, path)
    assert_same_bits(whole, undisturbed)
    assert whole.resumptions == 0
    for at in range(1, writes + 1):
        with pytest.raises(Stopped):
            run.trainer(NUMPY).run(StoppedAfter(path, at))
        resumed = run.trainer(NUMPY).run(Checkpoint(path, "key", every_s=1e9))
        assert resumed.resumptions == 1
        assert_same_bits(resumed, undisturbed)
        path.unlink()


@pytest.mark.parametrize("name", ["sites, minibatches", "L-BFGS phases"])
def test_a_run_stopped_again_and_again_ends_alike_on_every_backend(
    ops: Ops, name: str, tmp_path: Path
) -> None:
    run, path = RUNS[name], tmp_path / "place.npz"
    undisturbed = run.trainer(ops).run()
    stops = 0
    while True:
        try:
            ended = run.trainer(ops).run(StoppedAfter(path, 1))
            break
        except Stopped:
            stops += 1
    assert stops == ended.resumptions == 4
    assert_same_bits(ended, undisturbed)


def test_a_resumed_run_takes_k_and_its_factor_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "place.npz"
    with pytest.raises(Stopped):
        WHOLE.trainer(NUMPY).run(StoppedAfter(path, 2))
    trainer = WHOLE.trainer(NUMPY)
    monkeypatch.delattr(
        Trainer, "with_theta"
    )  # a program that computes them alone may round otherwise
    trainer.resume_from(Checkpoint(path, "key"))
    expected = WHOLE.trainer(NUMPY).steps.prior(trainer.state.raw)
    np.testing.assert_array_equal(trainer.state.prior.Kuu, expected.Kuu)
    np.testing.assert_array_equal(trainer.state.prior.L, expected.L)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The place of a full-batch run that was stopped after its second write."""
    path = tmp_path / "place.npz"
    with pytest.raises(Stopped):
        WHOLE.trainer(NUMPY).run(StoppedAfter(path, 2))
    return path


def test_times_go_on_where_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "place.npz"
    ticks = itertools.count()
    monkeypatch.setattr(Trainer, "clock", lambda _: float(next(ticks)))  # a second between looks
    undisturbed = WHOLE.trainer(NUMPY).run()
    with pytest.raises(Stopped):
        WHOLE.trainer(NUMPY).run(StoppedAfter(path, 2))
    resumed = WHOLE.trainer(NUMPY).run(Checkpoint(path, "key"))
    seconds = [point["seconds"] for point in undisturbed.trace]
    assert seconds == [float(i) for i in range(1, len(seconds) + 1)]
    assert [point["seconds"] for point in resumed.trace] == seconds


def test_an_ascent_is_led_along_what_was_evaluated(tmp_path: Path) -> None:
    run, path = RUNS["L-BFGS throughout"], tmp_path / "place.npz"
    with pytest.raises(Stopped):
        run.trainer(NUMPY).run(StoppedAfter(path, 3))
    resumed = run.trainer(NUMPY)
    before = len(Checkpoint(path, "key").read(NUMPY, resumed.state).evaluations)  # type: ignore[union-attr]
    calls = 0
    ascent = resumed.steps.objective_and_gradient

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return ascent(*arguments)

    resumed.steps = dataclasses.replace(resumed.steps, objective_and_gradient=counted)
    resumed.run(Checkpoint(path, "key"))
    assert before > 3
    assert calls == len(resumed.state.evaluations) - before


def test_a_place_is_written_at_most_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("svgpbench.training.checkpoints.time.monotonic", lambda: now[0])
    trainer, path = WHOLE.trainer(NUMPY), tmp_path / "place.npz"
    checkpoint = Checkpoint(path, "key")
    kept: list[Path] = []
    monkeypatch.setattr(
        "svgpbench.training.checkpoints.write_whole",
        lambda at, content: (kept.append(at), write_whole(at, content)),
    )
    for now[0], written in ((159.0, 0), (160.0, 1), (161.0, 1), (219.9, 1), (220.0, 2)):
        checkpoint.save(trainer.ops, trainer.state)
        assert len(kept) == written
        assert path.exists() == (written > 0)


def changed(archive: bytes, place: int, value: int) -> bytes:
    """The archive with another value at a place of its directory's first entry."""
    entry = archive.index(b"PK\x01\x02")
    return archive[: entry + place] + bytes([value]) + archive[entry + place + 1 :]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(path.read_bytes()[:200]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\x80\x04\x95 a pickle"),
        lambda path: np.savez(path, head=np.array([object()], dtype=object), allow_pickle=True),
        lambda path: np.savez(path, other=np.zeros(3)),
        # the byte of the archive's first entry that says how it is compressed, and whether encrypted
        lambda path: path.write_bytes(changed(path.read_bytes(), 10, 99)),
        lambda path: path.write_bytes(changed(path.read_bytes(), 8, 1)),
    ],
)
def test_a_file_that_is_no_place_is_ignored(spoil: Callable[[Path], Any], stopped: Path) -> None:
    spoil(stopped)
    checkpoint = Checkpoint(stopped, "key")
    assert WHOLE.trainer(NUMPY).run(checkpoint).resumptions == 0
    assert checkpoint.ignored_reason == "began anew: its checkpoint was damaged"


def test_the_place_of_another_cell_or_of_other_software_is_ignored(stopped: Path) -> None:
    other, same = Checkpoint(stopped, "another key"), Checkpoint(stopped, "key")
    assert WHOLE.trainer(NUMPY).run(other).resumptions == 0
    assert "made by other software" in other.ignored_reason
    assert WHOLE.trainer(NUMPY).run(same).resumptions == 1
    assert same.ignored_reason == ""


def test_a_cell_keeps_a_place_of_its_configuration_its_data_and_its_software(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept: list[Checkpoint] = []

    def run(checkpoint: Checkpoint) -> Trained:
        kept.append(checkpoint)
        raise Stopped

    def cell(data: str = "a", version: str = "1", code: str = "1", **changes: Any) -> str:
        made = SimpleNamespace(run=run), SimpleNamespace(fingerprint=data)
        monkeypatch.setattr("svgpbench.experiments.cell.build_trainer", lambda config: made)
        monkeypatch.setattr("svgpbench.experiments.cell.software", lambda: {"numpy": version})
        monkeypatch.setattr("svgpbench.experiments.cell.cell_code", lambda config: {"method": code})
        with pytest.raises(Stopped):
            run_cell(config(**changes), tmp_path / "place.npz", 7.0)
        return kept[-1].key

    assert cell() == cell()
    assert len({cell(), cell(data="b"), cell(version="2"), cell(code="2"), cell(seed=1)}) == 5
    assert (kept[0].path, kept[0].every_s) == (tmp_path / "place.npz", 7.0)


def test_a_place_that_cannot_be_written_leaves_the_last_one(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stopped.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("svgpbench.atomic.os.fsync", full)
    with pytest.raises(ValueError, match=r"cannot write .*: No space left on device"):
        WHOLE.trainer(NUMPY).run(Checkpoint(stopped, "key", every_s=0.0))
    assert stopped.read_bytes() == before
    assert list(stopped.parent.iterdir()) == [stopped]
