"""Records of the first schema in the form of this one: numbers stay, ids follow configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from svgpbench.errors import UserError
from svgpbench.experiments.cell import identify
from svgpbench.results.migration import migrate
from svgpbench.results.records import read_record, record_files
from svgpbench.results.validity import outdated_reason

NUMBERS = ("trace", "metrics", "timing", "data", "environment", "started", "wall_s", "status")


def old_record(**config: Any) -> dict[str, Any]:
    """A record as schema 1 wrote it: every key of every likelihood, options as they were given."""
    return {
        "schema_version": 1,
        "cell_id": "000ec61e7c36fe68",
        "config": {
            "experiment": "old",
            "data": {
                "name": "boston",
                "path": None,
                "target": None,
                "task": None,
                "features": None,
            },
            "split": {"kind": "k-fold", "folds": 5, "fold": 0, "test_fraction": 0.1, "seed": 0},
            "kernel": {"name": "matern52", "ard": True, "variance": 1.0, "lengthscale": 1.0},
            "likelihood": {"name": "gaussian", "noise_variance": 0.5, "nodes": 20, "squash": 0.0},
            "inducing": {"count": 50, "init": "k-means"},
            "training": {"em_iterations": 20, "e_rate": 0.7, "learn": ["kernel", "likelihood"]},
            "method": {"name": "q-svgp", "label": "shown", "options": {"whiten": True}},
            "backend": {"name": "jax", "mode": "", "dtype": "float64", "device": "cpu"},
            "jitter": 1e-6,
            "seed": 0,
            "threads": 1,
            "perturbation": 0.0,
            "measures": False,
        }
        | config,
        "status": "ok",
        "message": "",
        "traceback": "",
        "data": {"fingerprint": "?", "n_train": 404},
        "environment": None,
        "trace": {"iteration": [1, 2], "elbo": [-0.30000000000000004, None]},
        "metrics": {"elbo": -1 / 3},
        "timing": {"train_s": 1e-300},
        "started": "2026-11-20T15:21:29.539873Z",
        "wall_s": 21.587711301000127,
        "peak_memory_bytes": 1762168832,
        "worker": {"fresh": False, "cells_before": 206},
    }


def written(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "old" / "jax" / f"{content['cell_id']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def of_boston(content: dict[str, Any]) -> dict[str, Any]:
    from svgpbench.config import DataConfig
    from svgpbench.experiments.cell import load_data

    fingerprint = load_data(DataConfig(name="boston")).fingerprint
    return content | {"data": content["data"] | {"fingerprint": fingerprint}}


def test_numbers_stay_and_the_id_follows_from_the_configuration(tmp_path: Path) -> None:
    before = of_boston(old_record())
    path = written(tmp_path, before)
    done = migrate(tmp_path)
    assert (done.rewritten, done.current, done.replicas) == (1, 0, ())
    assert not path.exists()
    (new,) = record_files(tmp_path)
    after = json.loads(new.read_text())
    for key in NUMBERS:
        assert after[key] == before[key], key
    record = read_record(new)
    assert record.method_version == 1
    assert record.cell_id == new.stem == identify(record.config).cell_id
    assert outdated_reason(record) == ""
    # Gaussian noise has no nodes
    assert record.config.likelihood.options == {"noise_variance": 0.5}
    assert record.config.method.options["whiten"] is True
    assert set(record.config.method.options) > {"whiten"}
    assert record.config.training.e_rate == 0.7


def test_what_is_current_stays_and_a_second_pass_changes_nothing(tmp_path: Path) -> None:
    written(tmp_path, of_boston(old_record()))
    migrate(tmp_path)
    files = {path: path.read_bytes() for path in record_files(tmp_path)}
    again = migrate(tmp_path)
    assert (again.rewritten, again.current) == (0, 1)
    assert {path: path.read_bytes() for path in record_files(tmp_path)} == files


def test_replicas_that_moved_targets_are_removed_and_told(tmp_path: Path) -> None:
    path = written(tmp_path, old_record(perturbation=1e-15))
    assert migrate(tmp_path).replicas == (path,)
    assert not path.exists()


def test_a_file_that_is_no_record_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, old_record())
    path.write_text("{")
    with pytest.raises(UserError, match="is not a record"):
        migrate(tmp_path)
