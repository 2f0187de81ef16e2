"""Export of a data set: its table in Parquet and its description in Croissant 1.0.

Croissant (MLCommons) is JSON-LD. The table holds the inputs, not standardised, and the target last;
class labels are text. `isBasedOn` lists the addresses of the original files.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from svgpbench_datasets.dataset import Dataset
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.whole_files import whole_file, writing


def _croissant_terms(names: str) -> dict[str, str]:
    """Map the terms of Croissant's vocabulary to their short addresses."""
    return {name: f"cr:{name}" for name in names.split()}


CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **_croissant_terms("citeAs column"),
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **_croissant_terms(
        "extract field fileProperty fileObject fileSet format includes isLiveDataset jsonPath key "
        "md5 parentField path recordSet references regex repeated replace"
    ),
    "sc": "https://schema.org/",
    **_croissant_terms("separator source subField transform"),
}
TABLE, RECORDS = "table.parquet", "rows"


def write_croissant(entry: DatasetEntry, dataset: Dataset, folder: Path) -> Path:
    """Write the table and the description of a data set to a folder; return the description's path.

    Raises:
        DataError: the folder cannot be written.
    """
    content = io.BytesIO()
    table_of(dataset).to_parquet(content, index=False)
    description = description_of(entry, dataset, content.getvalue())
    file = folder / "croissant.json"
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / TABLE) as table, whole_file(file) as text:
            table.write_bytes(content.getvalue())
            text.write_text(json.dumps(description, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return file


def table_of(dataset: Dataset) -> pd.DataFrame:
    """Return the inputs and the target as a frame, with class labels as written."""
    table = pd.DataFrame(dataset.X, columns=list(dataset.feature_names))
    if dataset.class_labels is None:
        return table.assign(**{dataset.target_name: dataset.y})
    labels = pd.Series([dataset.class_labels[int(number)] for number in dataset.y], dtype="string")
    return table.assign(**{dataset.target_name: labels})


def description_of(entry: DatasetEntry, dataset: Dataset, table: bytes) -> dict[str, Any]:
    """Return the description in JSON-LD; `table` is the content of the Parquet file."""
    names = (*dataset.feature_names, dataset.target_name)
    kinds = dict.fromkeys(names, "sc:Float")
    if dataset.class_labels is not None:
        kinds[dataset.target_name] = "sc:Text"
    addresses = [address.url for file in entry.all_files for address in file.addresses]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": entry.name.replace(":", "-").replace("@", "-"),
        "alternateName": entry.name,
        "description": " ".join([f"{entry.title}.", *(f"{defect}." for defect in entry.defects)]),
        "url": entry.upstream,
        "license": entry.licence,
        "citeAs": entry.citation,
        "version": "1.0.0",
        "identifier": dataset.fingerprint,
        "isBasedOn": addresses,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": TABLE,
                "name": TABLE,
                "contentUrl": TABLE,
                "contentSize": f"{len(table)} B",
                "encodingFormat": "application/x-parquet",
                "sha256": hashlib.sha256(table).hexdigest(),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": RECORDS,
                "name": RECORDS,
                "description": f"{len(dataset.y)} rows; {dataset.task} of {dataset.target_name}",
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{RECORDS}/{name}",
                        "name": name,
                        "dataType": kinds[name],
                        "source": {"fileObject": {"@id": TABLE}, "extract": {"column": name}},
                    }
                    for name in names
                ],
            }
        ],
    }
