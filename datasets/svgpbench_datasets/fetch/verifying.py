"""Write a file's content and refuse it unless it is what is declared: by checksums, or by its form."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeAlias

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.fetch.answers import WrongContent
from svgpbench_datasets.fetch.limits import size_of
from svgpbench_datasets.files import DataFile, File, UnseenFile

Accept: TypeAlias = Callable[[UnseenFile, Path], None]
"""Reads a file without a known checksum; a DataError says why it is not what is declared."""

_CHUNK = 1 << 18


def nothing_accepted(file: UnseenFile, path: Path) -> None:
    """Refuse every file that only its form can tell.

    Raises:
        DataError: always.
    """
    raise DataError("nobody who knows its form has looked at it")


def write_verified(stream: IO[bytes], target: Path, file: DataFile) -> None:
    """Copy a stream to a new file while its checksums are taken.

    Args:
        stream: the content, uncompressed unless the file is packed.
        target: the file to make; the caller removes it after a failure.
        file: what the content must be.

    Raises:
        WrongContent: more or fewer bytes than declared, or another checksum; reading stops at the
            first byte too many.
        DataError: the file cannot be written.
    """
    expected = {"sha256": file.sha256, "md5": file.md5, "sha1": file.sha1}
    published = {name: value for name, value in expected.items() if value is not None}
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in published}

    def take(chunk: bytes) -> None:
        for digest in digests.values():
            digest.update(chunk)

    size, beginning = _copy(stream, target, file, take)
    limit = size_of(file)
    for name, value in published.items():
        if (found := digests[name].hexdigest()) != value:
            raise WrongContent(
                f"wrong content: expected {name} {value} ({limit:,} bytes), "
                f"got {found} ({size:,} bytes){_looks_like(beginning)}"
            )
    if size != limit:
        raise WrongContent(f"{size:,} bytes where {limit:,} are declared")


def write_accepted(stream: IO[bytes], target: Path, file: UnseenFile, accept: Accept) -> None:
    """Copy a stream to a new file that must then read as declared.

    Args:
        stream: the uncompressed content.
        target: the file to make; the caller removes it after a failure.
        file: how large it may be.
        accept: reads it.

    Raises:
        WrongContent: more bytes than may be, or not of the declared form, and why.
        DataError: the file cannot be written.
    """
    _, beginning = _copy(stream, target, file, lambda _: None)
    try:
        accept(file, target)
    except DataError as error:
        raise WrongContent(f"not of the declared form: {error}{_looks_like(beginning)}") from None


def _copy(
    stream: IO[bytes], target: Path, file: File, take: Callable[[bytes], None]
) -> tuple[int, bytes]:
    """Write a stream to a new file, no more than is declared; its size and how it begins."""
    size, limit, beginning = 0, size_of(file), b""
    declared = "allowed" if isinstance(file, UnseenFile) else "declared"
    with target.open("xb") as out:
        while chunk := stream.read(_CHUNK):
            beginning = beginning or chunk[:512]
            size += len(chunk)
            if size > limit:
                raise WrongContent(
                    f"more than the {limit:,} bytes {declared}{_looks_like(beginning)}"
                )
            take(chunk)
            _write(chunk, out, target)
    return size, beginning


def _write(chunk: bytes, out: IO[bytes], target: Path) -> None:
    """Told apart from what goes wrong while reading, which the next place may do better."""
    try:
        out.write(chunk)
        out.flush()
    except OSError as error:
        raise DataError(
            f"{target.parent} cannot be written ({error.strerror}); make room there, or name "
            "another folder with --cache or SVGPBENCH_DATA"
        ) from None


def _looks_like(beginning: bytes) -> str:
    start = beginning.lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return ", a web page"
    return ", a Git LFS pointer to the file" if start.startswith(_POINTER) else ""


_POINTER = b"version https://git-lfs.github.com/spec/"
