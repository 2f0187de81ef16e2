"""Real files out of the mirror that SVGPBENCH_MIRROR names, where it has them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from mirror import mirror_folder
from wanted_files import fetch_file, left_in

from svgpbench_datasets import REGISTRY, fingerprint
from svgpbench_datasets.fetch import mirrors_from_environment, places
from svgpbench_datasets.files import Address, DataFile
from svgpbench_datasets.reading.tables import read_entry
from svgpbench_datasets.sources import Sources

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
NAVAL = f"{UCI}/00316/UCI%20CBM%20Dataset.zip"
KIN40K = "https://github.com/treforevans/uci_datasets/raw/HEAD/uci_datasets/kin40k/data.csv.gz"
REAL = [  # path, bytes and sha256 of the uncompressed content, address, member
    (
        "naval/data.txt",
        3448926,
        "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
        Address(url=NAVAL, member="UCI CBM Dataset/data.txt"),
    ),
    (
        "kin40k/kin40k.data.csv",
        2894011,
        "72ad383c3281a7c85ac49cde9b9682d3e0181e24b1b8a6fe33fd9b993b7db16e",
        Address(url=KIN40K),
    ),
    (
        "mnist/t10k-labels-idx1-ubyte",
        10008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        Address(url="http://yann.lecun.com/exdb/mnist/t10k-labels-idx1-ubyte.gz"),
    ),
    (
        "ionosphere/ionosphere.data",
        76467,
        "c30292428ab9a121cd678e62a0f8c6d6a17e341afdd5205602bbd78027d87c5d",
        Address(url=f"{UCI}/ionosphere/ionosphere.data"),
    ),
]


@pytest.mark.parametrize(("path", "size", "sha256", "address"), REAL, ids=[r[0] for r in REAL])
def test_a_real_file_is_had_from_the_mirror(
    path: str, size: int, sha256: str, address: Address, cache: Path
) -> None:
    file = DataFile(path=path, bytes=size, sha256=sha256, addresses=(address,))
    mirrors = mirrors_from_environment()
    if not mirrors:
        pytest.skip("SVGPBENCH_MIRROR names no mirror")
    mirror, *_ = places(file, mirrors)
    if not any(Path(candidate).is_file() for candidate in mirror.candidates):
        pytest.skip(f"the first mirror is no folder that has {path}")
    fetched = fetch_file(file, cache=cache, mirrors=mirrors[:1])
    assert fetched == cache / path
    assert hashlib.sha256(fetched.read_bytes()).hexdigest() == sha256
    assert left_in(cache) == {path}


def test_a_real_prepared_copy_kept_packed_holds_what_the_unpacked_one_does(cache: Path) -> None:
    path = "kin40k/kin40k.data.csv.gz"
    if not (mirror_folder() / path).is_file():
        pytest.skip(f"the mirror has no {path}")
    served = (mirror_folder() / path).read_bytes()
    entry = REGISTRY.describe("kin40k")
    kept = entry.files[0].model_copy(
        update={
            "path": path,
            "packed": True,
            "sha256": hashlib.sha256(served).hexdigest(),
            "bytes": len(served),
        }
    )
    sources = Sources(cache, cache=cache, mirrors=(str(mirror_folder()),))
    X, y = read_entry(entry, lambda _: sources.read(kept, entry))
    assert fingerprint(X, y) == entry.fingerprint
    assert (cache / path).read_bytes() == served
