"""A small cell that tests change in one place, and a user's own table for it."""

from __future__ import annotations

from pathlib import Path
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


def config(**changes: Any) -> CellConfig:
    parts: dict[str, Any] = {
        "experiment": "test",
        "data": DataConfig(name="boston"),
        "split": SplitConfig(),
        "kernel": KernelConfig(),
        "likelihood": LikelihoodConfig(),
        "inducing": InducingConfig(count=10, init="random"),
        "training": TrainingConfig(em_iterations=2, m_steps=2),
        "method": MethodConfig(name="t-svgp"),
        "backend": BackendConfig(name="numpy"),
    }
    return CellConfig(**(parts | changes))


def own(path: Path, task: str, likelihood: LikelihoodConfig, **changes: Any) -> CellConfig:
    data = DataConfig.model_validate(
        {"name": "rows", "path": str(path), "target": "y", "task": task} | changes
    )
    return config(data=data, likelihood=likelihood, inducing=InducingConfig(count=5))
