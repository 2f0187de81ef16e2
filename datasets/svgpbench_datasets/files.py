"""A file that a data set is read from: its content's hash, and where it can be had."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

Sha256: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Strict(BaseModel):
    """Frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Address(Strict):
    """Where upstream serves a file: by itself, compressed (.gz, .xz, .Z), or inside an archive."""

    url: Annotated[str, Field(pattern=r"^https?://")]
    member: Annotated[str, Field(min_length=1)] | None = None  # path inside a zip or tar archive
    served_md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    """As published, of what is served where that is compressed; for people who compare."""


class DataFile(Strict):
    """One file, identified by the hash of its uncompressed content.

    `path` is its name in the cache and below a mirror (which may hold it with .xz or .gz added). Without
    addresses it is shipped with the package, xz-compressed.
    """

    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*$")]
    sha256: Sha256
    bytes: PositiveInt | None = None  # of the uncompressed content; required where it is downloaded
    md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None  # as published
    sha1: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None  # as published
    addresses: tuple[Address, ...] = ()


class LocalFile(Strict):
    """A file of which no copy has been seen, so that no hash is known: the user brings it.

    `path` is its name below a folder that the user names.
    """

    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*$")]
    sha256: None = None
    bytes: None = None
    addresses: tuple[Address, ...] = ()
