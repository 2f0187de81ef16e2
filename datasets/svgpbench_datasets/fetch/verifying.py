"""Write a file's content and refuse it unless size and checksums are the declared ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import IO

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.fetch.answers import WrongContent
from svgpbench_datasets.fetch.limits import size_of
from svgpbench_datasets.files import DataFile

_CHUNK = 1 << 18


def write_verified(stream: IO[bytes], target: Path, file: DataFile) -> None:
    """Copy a stream to a new file while its checksums are taken.

    Args:
        stream: the uncompressed content.
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
    size, limit, beginning = 0, size_of(file), b""
    with target.open("xb") as out:
        while chunk := stream.read(_CHUNK):
            beginning = beginning or chunk[:512]
            size += len(chunk)
            if size > limit:
                raise WrongContent(
                    f"more than the {limit:,} bytes declared{_looks_like(beginning)}"
                )
            for digest in digests.values():
                digest.update(chunk)
            _write(chunk, out, target)
    for name, value in published.items():
        if (found := digests[name].hexdigest()) != value:
            raise WrongContent(
                f"wrong content: expected {name} {value} ({limit:,} bytes), "
                f"got {found} ({size:,} bytes){_looks_like(beginning)}"
            )
    if size != limit:
        raise WrongContent(f"{size:,} bytes where {limit:,} are declared")


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
    return ", a web page" if start.startswith((b"<!doctype html", b"<html")) else ""
