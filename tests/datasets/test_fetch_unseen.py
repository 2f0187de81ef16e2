"""Files that are told by the checksum of what is served, and files that only their form tells."""

from __future__ import annotations

import gzip
import hashlib
import re
import zipfile
from functools import partial
from pathlib import Path

import absent_files as made
import numpy as np
import pytest
from declared import write_registry
from faulty_server import Server
from pydantic import ValidationError
from wanted_files import PAGE, ROADS, answers, entry, fetch_file, left_in, unseen, wanted

from svgpbench_datasets import DataError, DataFile, DatasetEntry, Registry
from svgpbench_datasets.fetch.cache import is_cached, sha256_of
from svgpbench_datasets.fetch.fetching import Fetcher
from svgpbench_datasets.files import UnseenFile
from svgpbench_datasets.sources import Sources, check_form

TABLE = made.prepared(3)
PACKED = gzip.compress(TABLE, mtime=0)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:23b4\nsize 5684264\n"


def packed(*urls: str, content: bytes = PACKED) -> DataFile:
    return wanted(*urls, content=content, path="roads/data.csv.gz", packed=True)


def registry(folder: Path, cache: Path, declared: DatasetEntry) -> Registry:
    """A registry with one data set, no mirror, and a cache."""
    write_registry(folder, declared)
    return Registry(folder, Sources(folder, cache=cache, mirrors=()))


def why(cache: Path, file: UnseenFile) -> list[str]:
    """What each place answered, read as six rows of 3droad."""
    return answers(cache, file, accept=partial(check_form, entry(file)))


def test_a_packed_file_is_kept_as_it_is_served_and_unpacked_when_it_is_read(
    server: Server, cache: Path, tmp_path: Path
) -> None:
    mask = gzip.compress(b"1,0\n0,1\n" + b"0,0\n" * 4)
    masks = wanted(server.serve("/mask", mask), content=mask, path="roads/mask.csv.gz", packed=True)
    declared = entry(
        packed(server.serve("/data", PACKED)), splits={"masks": masks.model_dump(), "count": 2}
    )
    known = registry(tmp_path / "sets", cache, declared)
    assert not known.at_hand("roads")
    dataset = known.load("roads")
    assert dataset.y.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert known.fixed_split("roads", 1).test.tolist() == [1]
    assert (cache / "roads/data.csv.gz").read_bytes() == PACKED
    assert left_in(cache) == {"roads/data.csv.gz", "roads/mask.csv.gz"}
    assert known.at_hand("roads")
    known.load("roads")
    assert len(server.requests) == 2


def test_a_pointer_or_other_bytes_in_place_of_a_packed_file_are_refused(
    server: Server, cache: Path
) -> None:
    pointer = server.serve("/pointer", POINTER)
    plain, other = server.serve("/plain", TABLE), server.serve("/other", gzip.compress(b"1"))
    refusals = answers(cache, packed(pointer, plain, other))
    expected = hashlib.sha256(PACKED).hexdigest()
    assert all(
        why.startswith(f"wrong content: expected sha256 {expected} (") for why in refusals[::2]
    )
    assert [why.endswith(", a Git LFS pointer to the file") for why in refusals] == [
        True,
        False,
        False,
    ]
    assert refusals[1] == f"more than the {len(PACKED)} bytes declared"
    good = packed(pointer, server.serve("/good", PACKED))
    assert fetch_file(good, cache=cache).read_bytes() == PACKED


def test_a_mirror_holds_a_packed_file_under_its_own_name_only(server: Server, cache: Path) -> None:
    server.serve("/m/roads/data.csv.gz", PACKED)
    file = packed("http://nowhere.invalid/f")
    fetch_file(file, cache=cache, mirrors=[f"{server.url}/m"])
    assert [request.path for request in server.requests] == ["/m/roads/data.csv.gz"]


def test_a_packed_file_has_an_address_and_is_no_member() -> None:
    for urls, member in (((), None), (("http://up/a.zip",), "in/data.csv")):
        with pytest.raises(ValidationError, match="it needs a plain address"):
            wanted(*urls, member=member, packed=True)


def test_a_gzip_bomb_with_the_right_checksum_stops_at_what_its_rows_can_take(
    server: Server, cache: Path, tmp_path: Path
) -> None:
    bomb = gzip.compress(b"0" * (64 << 20))
    declared = entry(packed(server.serve("/bomb", bomb), content=bomb))
    message = (
        r"roads/data\.csv\.gz: uncompressed it is more than the 768 bytes that 6 rows may take"
    )
    with pytest.raises(DataError, match=message):
        registry(tmp_path / "sets", cache, declared).load("roads")


def test_an_unseen_file_is_taken_for_its_form_and_its_sha256_is_noted(
    server: Server, cache: Path, tmp_path: Path
) -> None:
    file = unseen(server.serve("/roads", gzip.compress(ROADS)))
    known = registry(tmp_path / "sets", cache, entry(file))
    assert not known.at_hand("roads")
    assert sha256_of(file, cache) is None
    found = hashlib.sha256(ROADS).hexdigest()
    sources = Sources(tmp_path, cache=cache, mirrors=())
    assert sources.sha256(file, entry(file)) == sha256_of(file, cache) == found
    assert known.load("roads").X[1].tolist() == [9.3498487, 56.7408757]
    assert (cache / "roads/roads.txt.sha256").read_text() == f"{found}  roads.txt\n"
    assert left_in(cache) == {"roads/roads.txt", "roads/roads.txt.sha256"}
    assert known.at_hand("roads")
    known.load("roads")
    assert len(server.requests) == 1
    (cache / file.path).write_bytes(ROADS.replace(b"17.00", b"17.01", 1))
    assert not is_cached(file, cache)
    assert known.load("roads").y[0] == 17.0
    assert len(server.requests) == 2


def test_what_does_not_read_as_declared_is_refused_with_the_reason(
    server: Server, cache: Path
) -> None:
    lines = ROADS.split(b"\n")
    served = {
        "/page": PAGE,
        "/short": b"\n".join(lines[:-1]),
        "/narrow": b"\n".join(line.partition(b",")[2] for line in lines),
        "/word": ROADS.replace(b"144552913", b"E45", 1),  # no input of the data set, and looked at
        "/large": b"0" * 1001,
        "/bomb": gzip.compress(bytes(64 << 20)),
    }
    urls = [server.serve(path, content) for path, content in served.items()]
    urls.append(server.serve("/announced", ROADS, declared=10_000_000_000))
    refusals = why(cache, unseen(*urls))
    form = "not of the declared form: roads/roads.txt"
    assert refusals[0].startswith(f"{form}: line 1 has 1 ")
    assert refusals[0].endswith(", a web page")
    assert refusals[1] == f"{form} has 5 rows where 6 are declared"
    assert refusals[2].startswith(f"{form}: line 1 has 3 ")
    assert refusals[3].startswith(f"{form}: line 3, column 1 ('road') holds 'E45', not a number")
    assert refusals[4:] == [
        "more than the 1,000 bytes allowed",
        "more than the 1,000 bytes allowed",
        "declares 10,000,000,000 bytes where at most 1,049,596 are expected",
    ]
    file = unseen(*urls, server.serve("/good", ROADS))
    fetch_file(file, cache=cache, accept=partial(check_form, entry(file)))
    assert is_cached(file, cache)


def test_without_anybody_to_read_it_an_unseen_file_is_never_taken(
    server: Server, cache: Path
) -> None:
    (refusal,) = answers(cache, unseen(server.serve("/roads", ROADS)))
    assert refusal == "not of the declared form: nobody who knows its form has looked at it"


def test_a_file_given_by_hand_must_have_the_form_too(cache: Path, tmp_path: Path) -> None:
    file, given = unseen("http://up/a.zip", member="in/roads.txt"), tmp_path / "download (1)"
    accept = partial(check_form, entry(file))
    given.write_bytes(ROADS[:40])
    message = "is not what is wanted (as roads/roads.txt: not of the declared form: "
    with pytest.raises(DataError, match=re.escape(message)):
        Fetcher(cache, accept=accept).adopt(given, [file])
    assert left_in(cache) == set()
    with zipfile.ZipFile(given, "w") as archive:
        archive.writestr("in/roads.txt", ROADS)
    assert Fetcher(cache, accept=accept).adopt(given, [file]) == (cache / file.path,)
    assert is_cached(file, cache)


@pytest.mark.parametrize("by_form", [0, 1])
def test_one_part_told_by_its_form_and_the_other_by_its_checksum(
    cache: Path, tmp_path: Path, by_form: int
) -> None:
    contents = [made.sarcos(6), made.sarcos(3)]
    files: list[DataFile | UnseenFile] = [
        wanted("http://up/arm", content=raw, path=f"arm/{at}.mat")
        for at, raw in enumerate(contents)
    ]
    files[by_form] = UnseenFile(path=f"arm/{by_form}.mat", at_most=9999)
    names = [f"x{at}" for at in range(28)]
    arm = entry(
        *files, reader="mat", rows=9, parts=[6, 3],
        columns=names, features=names[:21], target="x21",
    )  # fmt: skip
    for at in (1, 0):
        (tmp_path / "given").write_bytes(contents[at])
        accept = partial(check_form, arm)
        taken = Fetcher(cache, accept=accept).adopt(tmp_path / "given", arm.files)
        assert taken == (cache / files[at].path,)
    X = registry(tmp_path / "sets", cache, arm).load("roads").X
    np.testing.assert_array_equal(X[:, 1], [1, 29, 57, 85, 113, 141, 1, 29, 57])


def test_a_file_that_its_form_cannot_tell_is_refused() -> None:
    beside = DataFile(path="b", sha256="0" * 64)
    with pytest.raises(ValidationError, match="stands beside another"):
        entry(unseen(), beside)
    with pytest.raises(ValidationError, match="a file has no sha256: give one, or say `unseen"):
        entry(unseen(), unseen=False, fingerprint=f"sha256:{'0' * 64}")
