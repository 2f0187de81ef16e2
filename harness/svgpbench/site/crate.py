"""RO-Crate metadata of the downloads: description, size and SHA-256 of each file, as JSON-LD.

Source: RO-Crate 1.1, Secs. 4 to 6 (root, data entities, metadata file).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

from svgpbench import __version__
from svgpbench.site.downloads import FOLDER, Download

METADATA = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/crate/1.1"
LICENCE = "https://spdx.org/licenses/MIT"
MEDIA = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".toml": "application/toml",
    ".pdf": "application/pdf",
    ".tex": "application/x-tex",
    ".py": "text/x-python",
}


def write_crate(site: Path, files: Sequence[Download], published: date) -> Path:
    """Write the metadata file of the folder of downloads, and return its path."""
    described = [_file_entity(site, file) for file in files]
    graph = [*_about(described, published), *described]
    path = site / FOLDER / METADATA
    crate = {"@context": f"{PROFILE}/context", "@graph": graph}
    path.write_text(json.dumps(crate, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _about(files: Sequence[dict[str, Any]], published: date) -> Iterator[dict[str, Any]]:
    """Yield the entities of the metadata file, of the crate and of its licence."""
    yield {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": PROFILE},
        "about": {"@id": "./"},
    }
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": "Records and results of svgpbench",
        "description": "Sparse variational Gaussian processes in several parameterizations: records of "
        "training and timing, tables and figures made of them, and what declares them.",
        "version": __version__,
        "datePublished": published.isoformat(),
        "license": {"@id": LICENCE},
        "hasPart": [{"@id": file["@id"]} for file in files],
    }
    yield {"@id": LICENCE, "@type": "CreativeWork", "name": "MIT License"}


def _file_entity(site: Path, file: Download) -> dict[str, Any]:
    """Return the entity of one file, with its SHA-256."""
    path = site / file.path
    name = path.relative_to(site / FOLDER).as_posix()
    return {
        "@id": quote(name),
        "@type": "File",
        "name": name,
        "description": file.description,
        "encodingFormat": MEDIA.get(path.suffix, "application/octet-stream"),
        "contentSize": str(file.size),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
