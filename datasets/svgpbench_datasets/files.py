"""Files that data sets are read from: how they are identified and where they are served."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt, model_validator

FilePath: TypeAlias = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_+-][A-Za-z0-9_.+-]*(/[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)*$")
]
"""Path in the cache; no part begins with a dot, as `..` leads out and the cache's own folders do."""
Sha256: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class RegistryModel(BaseModel):
    """Base model that is frozen and refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _http(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} does not begin with http:// or https://")
    return url


class Address(RegistryModel):
    """Upstream address of a file: plain, compressed (.gz, .xz, .bz2, .Z), or inside an archive."""

    url: Annotated[str, AfterValidator(_http)]
    member: Annotated[str, Field(min_length=1)] | None = None  # path inside a zip or tar archive


class DataFile(RegistryModel):
    """File identified by the SHA-256 of its uncompressed content or, if `packed`, of its served bytes.

    `path` is its name in the cache and on a mirror. Unless the file is packed, a mirror may add .xz or
    .gz to the name. A file without addresses is shipped with the package, xz-compressed.
    """

    known_by: ClassVar[str] = "sha256"
    path: FilePath
    sha256: Sha256
    bytes: PositiveInt | None = None  # size of the hashed content; required for a download
    packed: bool = False
    """True if the file is cached compressed, as served; checksums and size are of the compressed file."""
    md5: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None  # as published
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
        """True if the file comes with the package."""
        return not self.addresses

    @property
    def most(self) -> int:
        """Declared size in bytes; 0 if none is declared."""
        return self.bytes or 0

    @property
    def checksums(self) -> dict[str, str]:
        """Declared checksums by algorithm."""
        checksums = {"sha256": self.sha256, "md5": self.md5}
        return {name: value for name, value in checksums.items() if value is not None}


class UnseenFile(RegistryModel):
    """File without a known checksum, because no copy has been seen; it is identified by its form.

    A download is accepted if it can be read as the entry declares. `path` is its name in the cache and
    on a mirror. Without addresses the user has to supply it.
    """

    known_by: ClassVar[str] = "form"
    shipped: ClassVar[bool] = False
    packed: ClassVar[bool] = False
    checksums: ClassVar[dict[str, str]] = {}
    path: FilePath
    at_most: PositiveInt  # maximum size of the uncompressed content in bytes
    addresses: tuple[Address, ...] = ()

    @property
    def most(self) -> int:
        """Maximum size in bytes."""
        return self.at_most


File: TypeAlias = DataFile | UnseenFile
