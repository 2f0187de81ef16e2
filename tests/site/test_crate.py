"""The downloads are an RO-Crate as others read it, and what it says of a file is so."""

from __future__ import annotations

import hashlib

from rocrate.model.file import File
from rocrate.rocrate import ROCrate
from small_site import Made

from svgpbench.results.store import records_in


def test_every_download_is_a_file_of_the_crate_with_its_size_and_digest(made: Made) -> None:
    folder = made.folder / "downloads"
    crate = ROCrate(folder)
    described = {str(one["name"]): one for one in crate.data_entities if isinstance(one, File)}
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.*")}
    metadata = there.pop("ro-crate-metadata.json")
    assert metadata.is_file() and described.keys() == there.keys() and len(there) > 15
    for name, path in there.items():
        content = path.read_bytes()
        assert described[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert described[name]["contentSize"] == str(len(content))
        assert described[name]["description"]
        assert "/" in described[name]["encodingFormat"]
    assert described["records/adam2021-rates.parquet"]["encodingFormat"].endswith("parquet")


def test_the_crate_says_what_it_is_and_is_dated_by_its_newest_record(made: Made) -> None:
    root = ROCrate(made.folder / "downloads").root_dataset
    assert root["name"] and root["description"] and root["license"].id.endswith("/MIT")
    newest = max(record.started for record in records_in(made.results).records)
    assert root["datePublished"] == newest.date().isoformat()
