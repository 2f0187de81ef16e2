"""Records of schema 1 rewritten for schema 2: configurations completed, ids anew, no number touched.

Schema 1 stored what an experiment file said, and its ids do not follow from that. Every method was at
version 1 while it was in use. Its replicas moved the targets by rounding; those of schema 2 move the
inputs, so a replica of schema 1 is one of no cell any more and has to be run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svgpbench.config import CellConfig
from svgpbench.experiments.cell import load_data
from svgpbench.experiments.identity import cell_id, completed
from svgpbench.options import option_names
from svgpbench.plugins import LIKELIHOODS, load
from svgpbench.results.records import (
    SCHEMA_VERSION,
    Record,
    read_content,
    record_files,
    write_record,
)

OLD_SCHEMA, OLD_VERSION = 1, 1


@dataclass(frozen=True)
class Migrated:
    """What became of the records of a folder."""

    rewritten: int
    current: int  # were of this schema already
    replicas: tuple[Path, ...]  # were removed


def migrate(folder: Path) -> Migrated:
    """Rewrite every record of schema 1 under a folder.

    Raises `UserError` for a file that is no record, a data set that is not at hand, or a folder that
    cannot be written; what was rewritten by then stays.
    """
    rewritten, current, replicas = 0, 0, []
    for path in record_files(folder):
        raw = read_content(path)
        if raw["schema_version"] == SCHEMA_VERSION:
            current += 1
        elif raw["config"]["perturbation"] > 0:
            replicas.append(path)
            path.unlink()
        else:
            written = write_record(folder, migrated(raw))
            if written != path:
                path.unlink()
            rewritten += 1
    return Migrated(rewritten, current, tuple(replicas))


def migrated(raw: dict[str, Any]) -> Record:
    """The record of schema 2 that says the same as one of schema 1."""
    declared = raw["config"]
    likelihood = load(LIKELIHOODS, declared["likelihood"]["name"])
    # every key of every likelihood was written out, at a default where the likelihood has none of it
    keys = {"name", *option_names(likelihood)}
    kept = {key: value for key, value in declared["likelihood"].items() if key in keys}
    config = CellConfig.model_validate(declared | {"likelihood": kept})
    whole = completed(config, load_data(config.data))
    changed = {
        "schema_version": SCHEMA_VERSION,
        "cell_id": cell_id(whole, raw["data"]["fingerprint"], OLD_VERSION),
        "method_version": OLD_VERSION,
        "config": whole,
    }
    return Record.model_validate(raw | changed)
