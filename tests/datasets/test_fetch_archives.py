"""Compressed files and members of archives: the wanted bytes come out, nothing else does."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from faulty_server import Server
from wanted_files import CONTENT, FAST, answers, fetch_file, left_in, wanted

from svgpbench_datasets import DataError, load_user_table
from svgpbench_datasets.fetch.fetching import Fetcher
from svgpbench_datasets.fetch.limits import DownloadLimits, Progress
from svgpbench_datasets.fetch.origins import Unavailable

MEMBER = "A set/data.txt"
TEXT = b"1.0 2.0 3.0\n" * 20_000


def zipped(*members: tuple[str, bytes], mode: int = stat.S_IFREG | 0o644) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, raw)
    return buffer.getvalue()


def tarred(
    *members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE, target: str = "", mode: str = "w"
) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, raw in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            info.size = len(raw) if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(raw))
    return buffer.getvalue()


def unix_compressed(raw: bytes) -> bytes:
    """LZW that never uses its table: a code of nine bits a byte, at most 250, before codes grow."""
    bits = sum(byte << (9 * at) for at, byte in enumerate(raw[:250]))
    return b"\x1f\x9d\x90" + bits.to_bytes((9 * len(raw[:250]) + 7) // 8, "little")


def fetched(server: Server, cache: Path, served: bytes, member: str | None = MEMBER) -> bytes:
    file = wanted(server.serve("/a", served), content=TEXT, member=member)
    raw = fetch_file(file, cache=cache).read_bytes()
    assert left_in(cache) == {"set/data.txt"}
    return raw


def refused(
    server: Server, cache: Path, served: bytes, member: str = MEMBER, limits: DownloadLimits = FAST
) -> str:
    file = wanted(server.serve("/a", served), content=TEXT, member=member)
    (why,) = answers(cache, file, limits=limits)
    return why


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress, bytes])
def test_an_address_may_serve_the_file_compressed(
    server: Server, cache: Path, compress: Callable[[bytes], bytes]
) -> None:
    assert fetched(server, cache, compress(TEXT), member=None) == TEXT


@pytest.mark.skipif(shutil.which("gzip") is None, reason="no gzip command")
def test_unix_compress_is_read(server: Server, cache: Path) -> None:
    short = TEXT[:150]
    served = unix_compressed(short)
    assert subprocess.check_output(["gzip", "-dc"], input=served) == short
    file = wanted(server.serve("/a.Z", served), content=short)
    assert fetch_file(file, cache=cache).read_bytes() == short


@pytest.mark.skipif(shutil.which("gzip") is None, reason="no gzip command")
def test_unix_compress_with_a_wrong_code_is_damage_and_not_a_shorter_file(
    server: Server, cache: Path
) -> None:
    whole = unix_compressed(TEXT[:150])
    broken = whole[:60] + b"\xff" * 6  # codes that are in no table
    answer = refused(server, cache, zipped((MEMBER, broken)))
    assert answer == "its compression is damaged (gzip cannot read it to the end)"


def test_a_gzip_command_that_is_killed_does_not_give_a_shorter_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "gzip"
    command.write_text("#!/bin/sh\necho a,y\necho 1,2\necho 3,4\nkill -9 $$\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    table = tmp_path / "table.csv.gz"
    table.write_bytes(unix_compressed(TEXT))
    with pytest.raises(DataError, match="gzip cannot read it to the end"):
        load_user_table(table, target="y", task="regression")


def test_unix_compress_in_a_zip_that_is_a_bomb_is_not_written_out(
    server: Server, cache: Path
) -> None:
    served = zipped((MEMBER, b"\x1f\x9d\x90" + bytes(16 << 20)))
    answer = refused(server, cache, served, limits=replace(FAST, archive_bytes=1))
    assert answer == "compressed it is more than the 10,347,008 bytes allowed"


def test_without_a_gzip_command_unix_compress_is_refused(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(cache))
    answer = refused(server, cache, zipped((MEMBER, unix_compressed(b"1"))))
    assert answer == "it is compressed with Unix compress (.Z), which needs `gzip` on PATH"


@pytest.mark.parametrize(
    "served",
    [
        zipped(("README", b"?"), (MEMBER, TEXT)),
        zipped((MEMBER, lzma.compress(TEXT))),
        tarred(("README", b"?"), (MEMBER, TEXT), ("more", b"!")),
        tarred((f"./{MEMBER}", TEXT)),
        tarred((MEMBER, TEXT), ("inner.zip", zipped((MEMBER, b"other")))),
        tarred((MEMBER, TEXT), mode="w:gz"),
        tarred((MEMBER, TEXT), mode="w:xz"),
        tarred((MEMBER, gzip.compress(TEXT)), mode="w:bz2"),
    ],
    ids=[
        "zip",
        "xz in zip",
        "tar",
        "dotted tar",
        "zip in tar",
        "tar.gz",
        "tar.xz",
        "gz in tar.bz2",
    ],
)
def test_a_member_is_read_by_name(server: Server, cache: Path, served: bytes) -> None:
    assert fetched(server, cache, served) == TEXT


@pytest.mark.parametrize("make", [zipped, tarred])
@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_a_member_that_leads_out_is_refused(
    server: Server, cache: Path, make: Callable[..., bytes], name: str
) -> None:
    assert refused(server, cache, make((name, TEXT)), name) == f"{name!r} leads out of the archive"
    assert not list(cache.parent.glob("x"))


@pytest.mark.parametrize("make", [zipped, tarred])
def test_what_else_is_in_an_archive_is_never_unpacked(
    server: Server, cache: Path, make: Callable[..., bytes]
) -> None:
    assert fetched(server, cache, make(("../../x", b"evil"), (MEMBER, TEXT))) == TEXT
    assert not list(cache.parent.rglob("x"))


@pytest.mark.parametrize(
    "served",
    [
        zipped((MEMBER, b"/etc/hostname"), mode=stat.S_IFLNK | 0o777),
        zipped((MEMBER, b""), mode=stat.S_IFBLK | 0o666),
        tarred((MEMBER, b""), kind=tarfile.SYMTYPE, target="/etc/hostname"),
        tarred((MEMBER, b""), kind=tarfile.LNKTYPE, target="/etc/hostname"),
        tarred((MEMBER, b""), kind=tarfile.CHRTYPE),
        tarred((MEMBER, b""), kind=tarfile.FIFOTYPE),
        tarred((MEMBER, b""), kind=tarfile.DIRTYPE),
    ],
    ids=["zip link", "zip device", "link", "hard link", "device", "fifo", "folder"],
)
def test_what_is_not_a_plain_file_is_refused(server: Server, cache: Path, served: bytes) -> None:
    assert refused(server, cache, served) == f"{MEMBER!r} in the archive is not a plain file"


@pytest.mark.parametrize("make", [zipped, tarred])
def test_a_missing_member_names_the_nearest(
    server: Server, cache: Path, make: Callable[..., bytes]
) -> None:
    assert refused(server, cache, make(("A set/Data.txt", TEXT), ("README", b"?"))) == (
        "its archive has no 'A set/data.txt'; did you mean 'A set/Data.txt'? "
        "(it has: A set/Data.txt, README)"
    )


def test_names_in_an_archive_do_not_reach_the_terminal_as_they_are(
    server: Server, cache: Path
) -> None:
    served = tarred(("x\x1b[31m\ny", TEXT))
    file = wanted(server.serve("/a", served), content=TEXT, member=MEMBER)
    seen: list[Progress] = []
    with pytest.raises(Unavailable) as caught:
        fetch_file(file, cache=cache, on_progress=seen.append)
    for text in (str(caught.value), seen[-1].doing):
        assert text.isprintable() and r"(it has: x\x1b[31m\ny)" in text


@pytest.mark.parametrize("keep", [40, 2_000, 150_000])
@pytest.mark.parametrize(
    "served",
    [
        zipped((MEMBER, CONTENT)),
        tarred((MEMBER, CONTENT), mode="w:gz"),
        tarred((MEMBER, CONTENT), mode="w:xz"),
        tarred((MEMBER, CONTENT), mode="w:bz2"),
    ],
    ids=["zip", "tar.gz", "tar.xz", "tar.bz2"],
)
def test_a_damaged_archive_is_refused(
    server: Server, cache: Path, served: bytes, keep: int
) -> None:
    file = wanted(server.serve("/a", served[:keep]), content=CONTENT, member=MEMBER)
    (why,) = answers(cache, file)
    assert re.search(r"is damaged|cannot be read|has no", why)


@pytest.mark.parametrize(
    "header", [{"GNU.sparse.map": "x"}, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}]
)
def test_a_tar_header_of_nonsense_is_refused(
    server: Server, cache: Path, header: dict[str, str]
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo(MEMBER)
        info.size, info.pax_headers = len(TEXT), header
        archive.addfile(info, io.BytesIO(TEXT))
    assert refused(server, cache, buffer.getvalue()).startswith("its archive cannot be read (")


def test_an_encrypted_member_is_refused(server: Server, cache: Path) -> None:
    served = bytearray(zipped((MEMBER, TEXT)))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        served[served.index(magic) + offset] |= 1
    assert refused(server, cache, bytes(served)) == (
        f"its archive cannot be read (File {MEMBER!r} is encrypted, password required for extraction)"
    )


def test_a_member_that_is_a_bomb_stops_at_the_declared_size(server: Server, cache: Path) -> None:
    too_much = "more than the 240,000 bytes declared"
    assert refused(server, cache, zipped((MEMBER, bytes(16 << 20)))) == too_much
    assert refused(server, cache, zipped((MEMBER, gzip.compress(bytes(16 << 20))))) == too_much
    assert refused(server, cache, tarred((MEMBER, bytes(16 << 20)), mode="w:gz")) == too_much


def test_a_bomb_in_front_of_the_member_stops_at_the_archives_bound(
    server: Server, cache: Path
) -> None:
    served = tarred(("bomb", bytes(16 << 20)), (MEMBER, TEXT), mode="w:gz")
    small = replace(FAST, archive_bytes=1)
    answer = refused(server, cache, served, limits=small)
    assert answer == "its archive holds more than the 10,347,008 bytes allowed"


def test_an_archive_of_several_files_is_downloaded_once(server: Server, cache: Path) -> None:
    url = server.serve("/a", zipped(("one", b"1"), ("two", b"2")))
    one = wanted(url, content=b"1", member="one", path="set/one")
    two = wanted(url, content=b"2", member="two", path="set/two")
    paths = Fetcher(cache).fetch([one, two])
    assert [path.read_bytes() for path in paths] == [b"1", b"2"]
    assert len(server.requests) == 1
    assert left_in(cache) == {"set/one", "set/two"}
