"""The uncompressed content inside what was downloaded; only the wanted bytes are ever unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import stat
import subprocess
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, cast

from svgpbench_datasets.errors import did_you_mean
from svgpbench_datasets.fetch.answers import WrongContent

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_ENCRYPTED = 0x1
_CHUNK = 1 << 18
_UNIX_COMPRESS = b"\x1f\x9d"

_OPENERS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda raw: cast(IO[bytes], gzip.GzipFile(fileobj=raw)),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}
"""First bytes of a compressed file, and what reads it."""

_DAMAGED = (EOFError, zlib.error, lzma.LZMAError)
_DAMAGED_ARCHIVE = (tarfile.TarError, zipfile.BadZipFile, NotImplementedError)


@contextmanager
def content(
    path: Path, member: str | None, bound: int, *, as_served: bool = False
) -> Iterator[IO[bytes]]:
    """The uncompressed content of a file, or of one member of the archive that it is.

    Compression is told by the first bytes, not by the name: gzip, xz, bzip2, Unix compress.

    Args:
        path: the file.
        member: its path inside a zip or tar archive, itself compressed or not.
        bound: the most bytes that may be uncompressed on the way to a member.
        as_served: whether to leave a file that is no archive compressed.

    Raises:
        WrongContent: damaged; no such member, or one that is not a plain file; an unsafe name.
    """
    try:
        with path.open("rb") as raw:
            if member is None and as_served:
                yield raw
            elif member is None:
                with _uncompressed(raw) as plain:
                    yield plain
            else:
                with _member(raw, member, bound) as inside, _uncompressed(inside) as plain:
                    yield plain
    except _DAMAGED as error:
        raise WrongContent(f"its compression is damaged ({error})") from None
    except _DAMAGED_ARCHIVE as error:
        raise WrongContent(f"its archive cannot be read ({error})") from None
    except OSError as error:  # gzip and bz2 say so of damage, without a number
        what = "its compression is damaged" if error.errno is None else "it cannot be read"
        raise WrongContent(f"{what} ({error.strerror or error})") from None


@contextmanager
def _uncompressed(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    source = io.BufferedReader(cast(io.RawIOBase, stream))
    first = source.peek(6)
    if first.startswith(_UNIX_COMPRESS):
        with _unix_uncompressed(source) as plain:
            yield plain
        return
    for magic, opened in _OPENERS.items():
        if first.startswith(magic):
            with opened(source) as plain:
                yield plain
            return
    yield source


@contextmanager
def _unix_uncompressed(source: IO[bytes]) -> Iterator[IO[bytes]]:
    """LZW is not in Python's library; the `gzip` command reads it."""
    command = shutil.which("gzip")
    if command is None:
        raise WrongContent("it is compressed with Unix compress (.Z), which needs `gzip` on PATH")
    with tempfile.TemporaryFile() as compressed:
        shutil.copyfileobj(source, compressed, _CHUNK)
        compressed.seek(0)
        with subprocess.Popen(
            [command, "-dc"], stdin=compressed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield cast(IO[bytes], process.stdout)
            finally:
                process.kill()


def _member(raw: IO[bytes], member: str, bound: int) -> AbstractContextManager[IO[bytes]]:
    if PurePosixPath(member).is_absolute() or ".." in PurePosixPath(member).parts:
        raise WrongContent(f"{member!r} leads out of the archive")
    is_zip = raw.read(2) == b"PK"  # is_zipfile takes a tar archive that ends in a zip for one
    raw.seek(0)
    if is_zip:
        return _zip_member(raw, member)
    return _tar_member(raw, member, bound)


@contextmanager
def _zip_member(raw: IO[bytes], member: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(raw) as archive:
        names = archive.namelist()
        if member not in names:
            raise _no_member(member, names)
        info = archive.getinfo(member)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir() or kind not in (0, stat.S_IFREG):
            raise WrongContent(f"{member!r} in the archive is not a plain file")
        if info.flag_bits & _ENCRYPTED:
            raise WrongContent(f"{member!r} in the archive is encrypted")
        with archive.open(info) as inside:
            yield inside


@contextmanager
def _tar_member(raw: IO[bytes], member: str, bound: int) -> Iterator[IO[bytes]]:
    names = []
    with _uncompressed(raw) as plain:
        why = f"its archive holds more than the {bound:,} bytes allowed"
        bounded = cast(IO[bytes], Bounded(plain, bound, why))
        with tarfile.open(fileobj=bounded, mode="r|") as archive:
            for info in archive:
                names.append(info.name.removeprefix("./"))
                if names[-1] != member:
                    continue
                if not info.isreg():
                    raise WrongContent(f"{member!r} in the archive is not a plain file")
                with closing(cast(IO[bytes], archive.extractfile(info))) as inside:
                    yield inside
                return
    raise _no_member(member, names)


class Bounded(io.RawIOBase):
    """Reads no more than a bound in all, so that a bomb is told early: `WrongContent`, and why."""

    def __init__(self, stream: IO[bytes], bound: int, why: str) -> None:
        self._stream, self._left, self._why = stream, bound, why

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        data = self._stream.read(len(view))
        self._left -= len(data)
        if self._left < 0:
            raise WrongContent(self._why)
        view[: len(data)] = data
        return len(data)


def _no_member(member: str, names: list[str]) -> WrongContent:
    few = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return WrongContent(
        f"its archive has no {member!r}{did_you_mean(member, names)} (it has: {few or 'nothing'})"
    )
