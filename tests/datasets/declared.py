"""An entry of a registry: what every one has to say, and what a test says of its own."""

from __future__ import annotations

from typing import Any

from svgpbench_datasets import DatasetEntry


def declared(**changes: Any) -> DatasetEntry:
    """Two rows of a, b and the target c in a file without a fingerprint, unless changed."""
    base = {
        "name": "t",
        "title": "t",
        "task": "regression",
        "files": [{"path": "t", "sha256": "0" * 64}],
        "unseen": True,
        "reader": "csv",
        "rows": 2,
        "columns": ["a", "b", "c"],
        "target": "c",
        "upstream": "u",
        "licence": "l",
        "citation": "c",
    }
    return DatasetEntry.model_validate({**base, **changes})
