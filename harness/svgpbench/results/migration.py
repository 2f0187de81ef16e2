"""Migration of records from schema 1 to schema 2, with complete configurations and new ids.

No number changes. Schema 1 stored the text of an experiment file, which does not determine ids. Every
method had version 1 at that time. Replicas of schema 1 perturbed the targets; schema 2 perturbs the
inputs. A replica of schema 1 therefore belongs to no cell and must be run again.
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
    """Numbers of records that a migration rewrote and left alone, and the replicas that it removed."""

    rewritten: int
    current: int  # already of schema 2
    replicas: tuple[Path, ...]  # files that were removed


def migrate(folder: Path) -> Migrated:
    """Rewrite every record of schema 1 under a folder, and delete its replicas.

    Raises `UserError` if a file is no record, a data set is not installed, or the folder cannot be
    written. Records that were rewritten before the error stay.
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
    """Return the record of schema 2 with the content of a record of schema 1."""
    declared = raw["config"]
    likelihood = load(LIKELIHOODS, declared["likelihood"]["name"])
    # schema 1 wrote the keys of all likelihoods
    keys = {"name", *option_names(likelihood)}
    likelihood_options = {
        key: value for key, value in declared["likelihood"].items() if key in keys
    }
    config = CellConfig.model_validate(declared | {"likelihood": likelihood_options})
    complete = completed(config, load_data(config.data))
    changed = {
        "schema_version": SCHEMA_VERSION,
        "cell_id": cell_id(complete, raw["data"]["fingerprint"], OLD_VERSION),
        "method_version": OLD_VERSION,
        "config": complete,
    }
    return Record.model_validate(raw | changed)
