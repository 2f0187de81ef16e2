"""Records written by hand: every number in them is one that the tests state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from svgpbench.config import (
    BackendConfig,
    CellConfig,
    DataConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    SplitConfig,
    TrainingConfig,
)
from svgpbench.environment import Environment
from svgpbench.experiments.cell import identify
from svgpbench.results.collect import Collected
from svgpbench.results.records import Record, WorkerFacts


def cell(
    data: str = "airfoil",
    method: str = "A",
    backend: str = "jax",
    *,
    of: str = "t-svgp",
    fold: int = 0,
    likelihood: str = "gaussian",
    iterations: int = 3,
    **changes: Any,
) -> CellConfig:
    """A cell; `method` is a label of the method `of`, `backend` a name with or without mode."""
    parts: dict[str, Any] = {
        "experiment": "by-hand",
        "data": DataConfig(name=data),
        "split": SplitConfig(fold=fold),
        "kernel": KernelConfig(),
        "likelihood": LikelihoodConfig(name=likelihood),
        "inducing": InducingConfig(),
        "training": TrainingConfig(em_iterations=iterations),
        "method": MethodConfig(name=of, label=method),
        "backend": BackendConfig.parse(backend),
    }
    return CellConfig(**(parts | changes))


def record(
    config: CellConfig,
    elbo: float | None = None,
    *,
    status: str = "ok",
    trace: Mapping[str, Sequence[float | None]] | None = None,
    data: Mapping[str, object] | None = None,
    versions: Mapping[str, str] | None = None,
    **metrics: float,
) -> Record:
    """The record of a cell: its final ELBO and other metrics, its trace and what it was made with."""
    of_config = f"{config.data.name} {config.method.title} {config.backend.title}"
    replicate = f"{config.split.seed} {config.split.fold} {config.seed} {config.perturbation:g}"
    return Record.model_validate(
        {
            "cell_id": f"{of_config} {replicate}",
            "method_version": 1,
            "config": config,
            "status": status,
            "data": {"fingerprint": "of the data", "n_train": 90, "n_test": 45, "dimensions": 5}
            | dict(data or {}),
            "environment": None if versions is None else environment(versions),
            "trace": trace or {},
            "metrics": ({} if elbo is None else {"elbo": elbo}) | metrics,
            "timing": {},
            "started": datetime(2024, 1, 1, tzinfo=UTC),
            "wall_s": 1.0,
            "peak_memory_bytes": None,
            "worker": WorkerFacts(fresh=True, cells_before=0),
        }
    )


def identified(config: CellConfig, elbo: float | None = None, **of_record: Any) -> Record:
    """The record of a cell under its id, with its whole configuration and the fingerprint of its data."""
    made = record(config, elbo, **of_record)
    cell_id, fingerprint, whole, version = identify(config)
    data = made.data | {"fingerprint": fingerprint}
    facts = {"cell_id": cell_id, "method_version": version, "config": whole, "data": data}
    return made.model_copy(update=facts)


def environment(versions: Mapping[str, str]) -> Environment:
    return Environment(
        python="3.11",
        system="any",
        cpu="any",
        cores=2,
        memory_bytes=1,
        gpu=None,
        versions=dict(versions),
        thread_pools=(),
        commit=None,
        dirty=None,
        threads=1,
        affinity=None,
    )


def collected(*records: Record, notes: Sequence[str] = ()) -> Collected:
    """What a table or figure is made of, in the order given."""
    return Collected("by-hand", records, 0, tuple(notes))
