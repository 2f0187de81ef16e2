"""What shows that bytes are a file: its checksums, or, where none is known, a reader of its form."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import File, UnseenFile

Accept: TypeAlias = Callable[[UnseenFile, Path], None]
"""Reads a file without a known checksum; a DataError says why it is not what is declared."""

_LOOKS = {
    b"<!doctype html": ", a web page",
    b"<html": ", a web page",
    b"version https://git-lfs.github.com/spec/": ", a Git LFS pointer to the file",
}


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """Why one place did not give a file; the next place is asked."""


class Absent(Refusal):
    """The place answers, and does not have the file."""


class WrongContent(Refusal):
    """The place gave something, and it is not the file."""


class Proof(NamedTuple):
    """What tells a file from any other."""

    by: Literal["sha256", "form"]
    most: int  # bytes that it has or, told by its form, may have; 0 where none are declared
    checksums: Mapping[str, str]  # published, by algorithm; none of a file told by its form
    read: Callable[[Path], None]  # raises a DataError where a file has not the form declared
    packed: bool  # whether all this is said of the file as it is served, compressed


def nothing_accepted(file: UnseenFile, path: Path) -> None:
    """Refuse every file that only its form can tell.

    Raises:
        DataError: always.
    """
    raise DataError("nobody who knows its form has looked at it")


def proof_of(file: File, accept: Accept = nothing_accepted) -> Proof:
    """What would verify a file: all that fetching knows of files of which no copy was seen."""
    if isinstance(file, UnseenFile):
        return Proof("form", file.at_most, {}, partial(accept, file), packed=False)
    checksums = {"sha256": file.sha256, "md5": file.md5, "sha1": file.sha1}
    published = {name: value for name, value in checksums.items() if value is not None}
    return Proof("sha256", file.bytes or 0, published, lambda _: None, file.packed)


def write_verified(content: Iterable[bytes], target: Path, proof: Proof) -> None:
    """Write a file's content, and see whether it is; the caller removes what is not.

    Raises:
        WrongContent: it is not; nothing is read or written after the first byte too many.
    """
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in proof.checksums}
    size, looks = 0, ""
    with target.open("wb") as out:
        for chunk in content:
            looks = looks if size else _looks_like(chunk)
            size += len(chunk)
            if size > proof.most:
                word = "declared" if proof.checksums else "allowed"
                raise WrongContent(f"more than the {proof.most:,} bytes {word}{looks}")
            for digest in digests.values():
                digest.update(chunk)
            out.write(chunk)
    for name, value in proof.checksums.items():
        if (found := digests[name].hexdigest()) != value:
            raise WrongContent(
                f"wrong content: expected {name} {value} ({proof.most:,} bytes), "
                f"got {found} ({size:,} bytes){looks}"
            )
    if proof.checksums and size != proof.most:
        raise WrongContent(f"{size:,} bytes where {proof.most:,} are declared")
    try:
        proof.read(target)
    except DataError as error:
        raise WrongContent(f"not of the declared form: {error}{looks}") from None


def _looks_like(beginning: bytes) -> str:
    start = beginning[:512].lstrip().lower()
    return next((words for magic, words in _LOOKS.items() if start.startswith(magic)), "")
