"""Verification of a file: by its checksums or, if none is known, by reading it as declared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File, UnseenFile

Accept: TypeAlias = Callable[[UnseenFile, Path], None]
"""Function that reads a file without a known checksum and raises `DataError` if it is not as declared."""

_HINTS = {  # by first bytes of what a server may send instead of a file
    b"<!doctype html": ", a web page",
    b"<html": ", a web page",
    b"version https://git-lfs.github.com/spec/": ", a Git LFS pointer to the file",
}


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """Error that one origin did not give a file; the next origin is tried."""


class Absent(Refusal):
    """Error that an origin answered but does not have the file."""


class WrongContent(Refusal):
    """Error that an origin gave content that is not the file."""


def nothing_accepted(file: UnseenFile, path: Path) -> None:
    """Raise `DataError` for every file without a known checksum."""
    raise DataError("nobody who knows its form has looked at it")


def write_verified(content: Iterable[bytes], target: Path, file: File, accept: Accept) -> None:
    """Write content to `target` and verify it; the caller removes the file if that fails.

    Raises:
        WrongContent: the content is not the file. Writing stops as soon as it is too large.
    """
    # an MD5 is as published; a FIPS build of OpenSSL refuses it unless told that it guards nothing
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in file.checksums}
    size, hint = 0, ""
    with target.open("wb") as out:
        for chunk in content:
            if not size:
                start = chunk[:512].lstrip().lower()
                hint = next((text for magic, text in _HINTS.items() if start.startswith(magic)), "")
            size += len(chunk)
            if size > file.most:
                word = "declared" if file.checksums else "allowed"
                raise WrongContent(f"more than the {file.most:,} bytes {word}{hint}")
            for digest in digests.values():
                digest.update(chunk)
            out.write(chunk)
    for name, expected in file.checksums.items():
        if (actual := digests[name].hexdigest()) != expected:
            raise WrongContent(
                f"wrong content: expected {name} {expected} ({file.most:,} bytes), "
                f"got {actual} ({size:,} bytes){hint}"
            )
    if file.checksums and size != file.most:
        raise WrongContent(f"{size:,} bytes where {file.most:,} are declared")
    if isinstance(file, UnseenFile):
        try:
            accept(file, target)
        except DataError as error:
            raise WrongContent(f"not of the declared form: {error}{hint}") from None
