"""Sums over shards: the same E-steps and bound as with all rows in memory, wherever shards are computed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from svgpbench.cli.application import exit_code
from svgpbench.config import (
    BackendConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.kernels import Model
from svgpbench.kernels.kernels import Matern52
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods.collapsed import SGPR
from svgpbench.methods.dual import DualSVGP
from svgpbench.plugins import framework_missing, load_backend
from svgpbench.runs.sharded import climb, shards_of
from svgpbench.runs.sharded.part import Work, sums
from svgpbench.runs.sharded.shards import columns_of, merged, moments, read
from svgpbench.runs.sharded.workers import OnDask, Workers, in_pairs
from svgpbench.training.batches import TrainingData
from svgpbench.training.chunked import AccumulatingTrainer
from svgpbench.training.em import Trainer

NUMPY = BackendConfig(name="numpy")
KERNEL = KernelConfig(ard=False)
INDUCING = InducingConfig(count=9, init="random")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal([4.0, -2.0, 0.0], [1.0, 30.0, 0.1], (611, 3))
    y = 70.0 + 9.0 * np.sin(X[:, 0]) + rng.normal(size=611)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, above=(y > 70.0).astype(int))
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=50)
    return tmp_path / "t.parquet"


def climbed(table, workers, likelihood="gaussian", target="y", rows=120, **options):
    model = Model(Matern52(), build_likelihood(LikelihoodConfig(name=likelihood)))
    columns = columns_of(table, target, ("a", "b", "c"))
    return climb(
        workers, shards_of(table, rows), columns, model, KERNEL, INDUCING, NUMPY, **options
    )


def in_memory(table, run, likelihood, target, method, trainer=Trainer, **settings):
    """The same rows at once, from the same θ, in the loop that trains everything else."""
    frame = pd.read_parquet(table)
    X, y = run.units.standardise(
        frame[["a", "b", "c"]].to_numpy(), frame[target].to_numpy(np.float64)
    )
    model = Model(Matern52(), build_likelihood(LikelihoodConfig(name=likelihood)))
    options = TrainingConfig.model_validate({"m_steps": 0, "learn": []} | settings)
    data = TrainingData(X, y, X[:5], y[:5])
    return trainer(load_backend("numpy"), model, method, data, run.theta, options)


@pytest.mark.parametrize(
    ("likelihood", "target"),
    [("gaussian", "y"), ("bernoulli-logit", "above"), ("poisson", "above")],
)
def test_steps_and_bounds_are_those_of_all_rows_at_once(table, likelihood, target) -> None:
    run = climbed(table, Workers(), likelihood, target, iterations=4, rate=0.7)
    whole = in_memory(
        table, run, likelihood, target, DualSVGP(), e_rate=0.7, e_steps=1, em_iterations=4
    )
    trained = whole.run()
    bounds = [step.bound for step in run.steps]
    assert bounds[1:] == pytest.approx([point["elbo"] for point in trained.trace], rel=1e-10)
    for ours, theirs in zip(run.state[:2], trained.q[:2], strict=True):
        assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-10)


def test_the_prior_mean_is_that_of_all_targets(table, monkeypatch) -> None:
    """Rows sorted by the label: neither the first shard nor the last one has both."""
    frame = pd.read_parquet(table).sort_values("above")
    pq.write_table(pa.Table.from_pandas(frame), table, row_group_size=50)
    share = frame["above"].mean()
    assert 0.1 < share < 0.9
    by_likelihood = {"poisson": np.log(share), "bernoulli-logit": np.log(share / (1.0 - share))}
    for likelihood, expected in by_likelihood.items():
        mean = climbed(table, Workers(), likelihood, "above", rows=1).theta.mean
        assert mean == pytest.approx(expected, rel=1e-9)
    assert climbed(table, Workers()).theta.mean == ()
    module = sys.modules[
        "svgpbench.runs.sharded.climb"
    ]  # the package has the function by this name
    monkeypatch.setattr(module, "MOST_TARGETS", 100)
    mean = climbed(table, Workers(), "poisson", "above", rows=1).theta.mean
    # of each value one row in so many that about a hundred are left
    every = -(-len(frame) // 100)
    zeros, ones = (-(-int((frame["above"] == value).sum()) // every) for value in (0, 1))
    assert mean == pytest.approx(np.log(ones / (zeros + ones)), rel=1e-9)


def test_chunks_of_any_size_add_up_to_the_shard(table) -> None:
    run = climbed(table, Workers(), rows=1)
    shard, columns = shards_of(table, 1)[0], columns_of(table, "y", ("a", "b", "c"))
    model = Model(Matern52(), build_likelihood(LikelihoodConfig(name="gaussian")))
    whole, *parts = (
        sums(shard, Work(model, columns, run.units, NUMPY, chunk), run.theta, run.state)
        for chunk in (50, 49, 20, 1)
    )
    for part in parts:
        assert part.rows == whole.rows == 50
        assert part.expected == pytest.approx(whole.expected, rel=1e-12)
        assert np.allclose(part.sites.C, whole.sites.C, rtol=1e-12, atol=1e-12)


def test_labels_and_counts_are_in_no_units(table) -> None:
    of_labels = climbed(table, Workers(), "bernoulli-logit", "above").units
    assert (of_labels.centre[-1], of_labels.scale[-1]) == (0.0, 1.0)
    assert climbed(table, Workers()).units.centre[-1] > 60.0


def test_one_step_of_rate_1_is_sgpr(table) -> None:
    run = climbed(table, Workers())
    best = in_memory(table, run, "gaussian", "y", SGPR(), AccumulatingTrainer, em_iterations=1)
    assert run.steps[-1].bound == pytest.approx(best.run().trace[-1]["elbo"], rel=1e-10)


def test_units_are_those_of_all_rows(table) -> None:
    columns = columns_of(table, "y", ("a", "b"))
    found = in_pairs([moments(one, columns) for one in shards_of(table, 70)], merged)
    rows = pd.read_parquet(table)[["a", "b", "y"]].to_numpy()
    assert found.rows == 611
    assert found.mean == pytest.approx(rows.mean(axis=0), rel=1e-13)
    assert found.norm**2 / 611 == pytest.approx(rows.var(axis=0), rel=1e-12)


@pytest.mark.parametrize("unit", [1e-300, 1e-13, 1e13, 1e300])
def test_a_table_in_other_units_has_the_same_bound(table, tmp_path, unit) -> None:
    """Fails if a small column counts as constant, or if its squares leave float64."""
    frame = pd.read_parquet(table)
    scaled = tmp_path / "scaled.parquet"
    units = {"a": unit, "b": 1.0 / unit, "y": unit}
    frame.assign(**{name: frame[name] * by for name, by in units.items()}).to_parquet(
        scaled, row_group_size=50
    )
    here, there = climbed(table, Workers()), climbed(scaled, Workers())
    assert there.steps[-1].bound == pytest.approx(here.steps[-1].bound, rel=1e-9)
    assert there.units.scale == pytest.approx(
        here.units.scale * [unit, 1.0 / unit, 1.0, unit], rel=1e-12
    )


@pytest.mark.parametrize("rows", [1, 50, 120, 611, 10**9])
def test_every_row_is_in_one_shard(table, rows) -> None:
    columns = columns_of(table, "y", ("a",))
    parts = [read(shard, columns)[1] for shard in shards_of(table, rows)]
    assert np.array_equal(np.concatenate(parts), pd.read_parquet(table)["y"])
    assert all(len(part) >= min(rows, 611) for part in parts[:-1])


def test_a_saved_index_is_no_input_and_an_id_that_loses_digits_is_refused(tmp_path) -> None:
    frame = pd.DataFrame({"a": [1, 2**53 + 1, 3], "ok": [True, False, True], "y": [1.0, 2.0, 3.0]})
    path = tmp_path / "t.parquet"
    frame.sample(frac=1, random_state=1).to_parquet(path)
    assert columns_of(path, "y").features == ("a", "ok")
    assert columns_of(path, "y", ("__index_level_0__",)).features == ("__index_level_0__",)
    (shard,) = shards_of(path, 3)
    assert sorted(read(shard, columns_of(path, "y", ("ok",)))[0][:, 0]) == [0.0, 1.0, 1.0]
    with pytest.raises(UserError, match=r"column 'a' holds .* float64 cannot hold exactly"):
        read(shard, columns_of(path, "y"))


def test_workers_of_dask_give_what_this_process_gives(table) -> None:
    distributed = pytest.importorskip("distributed")
    here = climbed(table, Workers(), iterations=2, rate=0.5)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = climbed(table, OnDask(client), iterations=2, rate=0.5)
        assert [s.bound for s in there.steps] == [s.bound for s in here.steps]
        with pytest.raises(UserError, match="holds NaN"):
            frame = pd.read_parquet(table)
            frame.loc[600, "b"] = np.nan
            frame.to_parquet(table)
            climbed(table, OnDask(client))


def told_by_devices(
    table: Path, *options: str, flags: str = ""
) -> subprocess.CompletedProcess[str]:
    """The command in a process whose one CPU may be several devices of XLA."""
    arguments = ["sharded", str(table), "--target", "y", "--inducing", "5", "--json"]
    rest = ["--feature", "a", "--shard-rows", "100", "--iterations", "2", "--rate", "0.5", *options]
    return subprocess.run(
        [sys.executable, "-m", "svgpbench.cli", *arguments, *rest],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(framework_missing("jax") is not None, reason="jax is not installed")
@pytest.mark.long  # four commands, each of which imports JAX
def test_devices_of_jax_give_what_one_gives(table) -> None:
    three = "--xla_force_host_platform_device_count=3"
    one = told_by_devices(table, "--backend", "jax")
    several = told_by_devices(table, "--backend", "jax", "--devices", "3", flags=three)
    assert several.returncode == 0, several.stderr
    bounds = [[s["bound"] for s in json.loads(x.stdout)["steps"]] for x in (one, several)]
    assert len(bounds[0]) == 3
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-13)
    fewer = told_by_devices(table, "--backend", "jax", "--devices", "4", flags=three)
    assert fewer.returncode == 2
    assert fewer.stderr.startswith("error: backend 'jax' has 3 devices 'cpu' here; one CPU is")
    alone = told_by_devices(table, "--devices", "2")
    assert alone.stderr == "error: backend 'numpy' computes on one device; jax does on several\n"
    both = told_by_devices(table, "--devices", "2", "--dask", "tcp://127.0.0.1:1")
    assert both.stderr.startswith("error: --devices are this machine's")


def test_the_command_prints_the_bound_of_every_pass(table, capsys) -> None:
    arguments = ["sharded", str(table), "--target", "y", "--feature", "a", "--inducing", "5"]
    assert exit_code([*arguments, "--shard-rows", "200", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["shards"], len(found["steps"])) == (611, 4, 2)
    assert found["steps"][1]["bound"] > found["steps"][0]["bound"]
    assert exit_code(arguments) == 0
    assert capsys.readouterr().out.count("ELBO") == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--target", "z"], "unknown column of"),
        (["--likelihood", "student-t"], "no sums over rows"),
        (["--inducing", "999"], "999 of"),
        (["--rate", "0"], "above 0"),
        (["--backend", "pytorch"], "unknown backend"),
        (["--kernel", "rbf"], "unknown kernel"),
    ],
)
def test_a_mistake_is_one_line(table, capsys, change, says) -> None:
    assert exit_code(["sharded", str(table), "--target", "y", "--inducing", "5", *change]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_file_that_is_no_parquet_is_one_line(tmp_path, capsys) -> None:
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    assert exit_code(["sharded", str(tmp_path / "t.parquet"), "--target", "a"]) == 2
    assert "is no Parquet table" in capsys.readouterr().err
    assert exit_code(["sharded", str(tmp_path / "none"), "--target", "a"]) == 2
    assert "No such file" in capsys.readouterr().err
