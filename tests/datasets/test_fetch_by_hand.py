"""What the user downloaded: taken for what it is, whatever its name."""

from __future__ import annotations

import gzip
import hashlib
import zipfile
from pathlib import Path

import pytest
from wanted_files import left_in, wanted

from svgpbench_datasets import DataError
from svgpbench_datasets.fetch.fetching import Fetcher
from svgpbench_datasets.files import DataFile


def members_of(archive: Path) -> list[DataFile]:
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("in/one.txt", "1")
        out.writestr("in/two.txt", "2")
    url = "http://up/a.zip"
    return [
        wanted(url, content=b"1", member="in/one.txt", path="set/one.txt"),
        wanted(url, content=b"2", member="in/two.txt", path="set/two.txt"),
    ]


def test_what_the_user_downloaded_is_told_by_its_content(cache: Path, tmp_path: Path) -> None:
    given = tmp_path / "download (1)"
    files = members_of(given)
    before = given.read_bytes()
    assert Fetcher(cache).adopt(given, files) == (cache / "set/one.txt", cache / "set/two.txt")
    assert left_in(cache) == {"set/one.txt", "set/two.txt"}
    assert given.read_bytes() == before
    (cache / "set/two.txt").unlink()
    for raw in (b"2", gzip.compress(b"2")):
        given.write_bytes(raw)
        assert Fetcher(cache).adopt(given, files) == (cache / "set/two.txt",)
        assert Fetcher(cache).adopt(given, files) == ()
        (cache / "set/two.txt").unlink()


def test_what_is_something_else_is_refused_with_both_checksums(cache: Path, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_bytes(b"3")
    with pytest.raises(DataError) as caught:
        Fetcher(cache).adopt(given, [wanted("http://up/f", content=b"1")])
    assert str(caught.value) == (
        f"--from {given} is not what is wanted (as set/data.txt: wrong content: expected sha256 "
        f"{hashlib.sha256(b'1').hexdigest()} (1 bytes), got {hashlib.sha256(b'3').hexdigest()} "
        "(1 bytes))"
    )
    assert left_in(cache) == set()
    with pytest.raises(DataError, match="no such file"):
        Fetcher(cache).adopt(tmp_path / "nothing", [wanted("http://up/f")])
