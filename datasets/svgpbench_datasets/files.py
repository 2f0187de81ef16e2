"""A file that a data set is read from: how it is told from others, and where it can be had."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

FilePath: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*$")]
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
    """One file, identified by the hash of its uncompressed content; a packed one, as it is served.

    `path` is its name in the cache and below a mirror (which may hold it with .xz or .gz added, unless
    it is packed). Without addresses it is shipped with the package, xz-compressed.
    """

    known_by: ClassVar[str] = "sha256"
    path: FilePath
    sha256: Sha256
    bytes: PositiveInt | None = None  # of what is hashed; required where it is downloaded
    packed: bool = False
    """Kept as it is served, compressed: checksums and size are those of the compressed file."""
    md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None  # as published
    sha1: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None  # as published
    addresses: tuple[Address, ...] = ()

    @model_validator(mode="after")
    def _packed_is_served(self) -> DataFile:
        if self.packed and (
            not self.addresses or any(address.member for address in self.addresses)
        ):
            raise ValueError("a packed file is kept as it is served: it needs a plain address")
        return self

    @property
    def shipped(self) -> bool:
        """Whether it comes with the package."""
        return not self.addresses

    @property
    def most(self) -> int:
        """The bytes that it has; 0 where none are declared."""
        return self.bytes or 0

    @property
    def checksums(self) -> dict[str, str]:
        """Published ones, by algorithm."""
        known = {"sha256": self.sha256, "md5": self.md5, "sha1": self.sha1}
        return {name: value for name, value in known.items() if value is not None}


class UnseenFile(Strict):
    """A file of which no copy has been seen, so that no checksum is known: it is told by its form.

    What an address or the user gives is taken for it where it reads as the entry declares. `path` is
    its name in the cache and below a mirror. Without addresses the user has to bring it.
    """

    known_by: ClassVar[str] = "form"
    shipped: ClassVar[bool] = False
    packed: ClassVar[bool] = False
    checksums: ClassVar[dict[str, str]] = {}
    path: FilePath
    at_most: PositiveInt  # bytes of the uncompressed content
    addresses: tuple[Address, ...] = ()

    @property
    def most(self) -> int:
        """The bytes that it may have."""
        return self.at_most


File: TypeAlias = DataFile | UnseenFile
