"""Uncompressed content of downloads and of members of archives; nothing else is unpacked."""

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
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, cast

from svgpbench_datasets.errors import did_you_mean, join_names
from svgpbench_datasets.fetch.verification import WrongContent

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_CHUNK = 1 << 18
_COMPRESSION_ERRORS = (EOFError, zlib.error, lzma.LZMAError)
_ARCHIVE_ERRORS = (tarfile.TarError, zipfile.BadZipFile, RuntimeError)  # last: encrypted zip


def chunks(path: Path, member: str | None, bound: int, *, as_served: bool) -> Iterator[bytes]:
    """Yield the bytes of `content` in chunks.

    An error in the caller's loop over them is not reported as damage of the file.
    """
    with content(path, member, bound, as_served=as_served) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


@contextmanager
def content(
    path: Path, member: str | None, bound: int, *, as_served: bool = False
) -> Iterator[IO[bytes]]:
    """Open the uncompressed content of a file, or of one member of an archive.

    Compression (gzip, xz, bzip2, Unix compress) is recognised by the first bytes, not by the name. At
    most `bound` bytes of a tar archive are uncompressed to reach a member, and at most as many bytes of
    Unix compress are read. With `as_served` the file or member itself is not uncompressed.

    Raises:
        WrongContent: the file is damaged; the member does not exist, is not a plain file, or has
            an unsafe name.
    """
    try:
        with path.open("rb") as raw, ExitStack() as closing:
            inside = raw if member is None else _member(raw, member, bound, closing)
            yield inside if as_served else _uncompressed(inside, bound, closing)
    except _COMPRESSION_ERRORS as error:
        raise WrongContent(f"its compression is damaged ({error})") from None
    except _ARCHIVE_ERRORS as error:
        raise WrongContent(f"its archive cannot be read ({error})") from None
    except OSError as error:  # gzip and bz2 raise it for damage, without an errno
        what = "its compression is damaged" if error.errno is None else "it cannot be read"
        raise WrongContent(f"{what} ({error.strerror or error})") from None


def _uncompressed(stream: IO[bytes], bound: int, closing: ExitStack) -> IO[bytes]:
    source = io.BufferedReader(cast(io.RawIOBase, stream))
    openers: dict[bytes, Callable[[IO[bytes]], object]] = {
        b"\x1f\x8b": gzip.open,
        b"\xfd7zXZ\x00": lzma.open,
        b"BZh": bz2.open,
        b"\x1f\x9d": lambda raw: _unix_uncompressed(raw, bound, closing),
    }
    for magic, opened in openers.items():
        if source.peek(len(magic)).startswith(magic):
            return cast(IO[bytes], opened(source))
    return source


def _unix_uncompressed(source: IO[bytes], bound: int, closing: ExitStack) -> IO[bytes]:
    """Uncompress LZW with the `gzip` command, as Python's library lacks it."""
    command = shutil.which("gzip")
    if command is None:
        raise WrongContent("it is compressed with Unix compress (.Z), which needs `gzip` on PATH")
    # a process reads from a file descriptor, which a member of an archive does not have
    compressed = closing.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    # a member of an archive may be a bomb by itself, before it is uncompressed a second time
    why = f"compressed it is more than the {bound:,} bytes allowed"
    shutil.copyfileobj(io.BufferedReader(Bounded(source, bound, why)), compressed, _CHUNK)
    compressed.seek(0)
    process = subprocess.Popen(
        [command, "-dc"],
        bufsize=0,
        stdin=compressed,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    closing.enter_context(process)
    # an ExitStack unwinds in reverse: the process is killed before it is waited for
    closing.callback(process.kill)
    return io.BufferedReader(_OutputOfGzip(process))


class _OutputOfGzip(io.RawIOBase):
    """The output of a `gzip` process. Its end raises `WrongContent` if the process failed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._output = process, cast(io.FileIO, process.stdout)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        count = self._output.readinto(buffer) or 0
        # up to a wrong code there is output; only the exit code tells that more was to come: 1, or a
        # signal that ended gzip; 2 is a warning, such as of bytes that follow the compressed ones
        if not count and self._process.wait() not in (0, 2):
            raise WrongContent("its compression is damaged (gzip cannot read it to the end)")
        return count


def _member(raw: IO[bytes], member: str, bound: int, closing: ExitStack) -> IO[bytes]:
    if PurePosixPath(member).is_absolute() or ".." in PurePosixPath(member).parts:
        raise WrongContent(f"{member!r} leads out of the archive")
    is_zip = raw.read(2) == b"PK"  # is_zipfile accepts a tar archive that ends in a zip
    raw.seek(0)
    not_plain = WrongContent(f"{member!r} in the archive is not a plain file")
    names: list[str] = []
    if is_zip:
        archive = zipfile.ZipFile(raw)
        names = archive.namelist()
        if member in names:
            # the upper 16 bits are the Unix mode, 0 where no Unix wrote the archive;
            # a link is refused
            plain = stat.S_IFMT(archive.getinfo(member).external_attr >> 16) in (0, stat.S_IFREG)
            if not member or member.endswith("/") or not plain:  # `is_dir` fails on an empty name
                raise not_plain
            with _refusing_nonsense():  # in the name that precedes the member itself
                return archive.open(member)
    else:
        why = f"its archive holds more than the {bound:,} bytes allowed"
        bounded = Bounded(_uncompressed(raw, bound, closing), bound, why)
        with _refusing_nonsense():  # in a header of a sparse file
            # `r|` only reads forward: nothing is uncompressed twice, and nothing behind the member
            tar = tarfile.open(fileobj=cast(IO[bytes], bounded), mode="r|")  # noqa: SIM115
            for info in tar:
                names.append(info.name.removeprefix("./"))
                if names[-1] == member:
                    if not info.isreg():
                        raise not_plain
                    return cast(IO[bytes], tar.extractfile(info))
    raise WrongContent(
        f"its archive has no {member!r}{did_you_mean(member, names)} "
        f"(it has: {join_names(names, 5) or 'nothing'})"
    )


@contextmanager
def _refusing_nonsense() -> Iterator[None]:
    """Raise `WrongContent` for a `ValueError`, such as of text where an archive has a number."""
    try:
        yield
    except ValueError as error:
        raise WrongContent(f"its archive cannot be read ({error})") from None


class Bounded(io.RawIOBase):
    """Stream that raises `WrongContent(why)` after `bound` bytes, to stop decompression bombs early."""

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
