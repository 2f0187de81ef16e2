"""Contradictions within papers, between them or with algebra, and the claims that settle each."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from svgpbench.config import Strict
from svgpbench.papers.schema import Text


class DecidingClaim(Strict):
    """A claim of the ledger and its parts that decide; without parts the claim's grade decides."""

    id: Text
    parts: tuple[Text, ...] = ()


class Contradiction(Strict):
    """Two statements that cannot both hold."""

    about: Text
    one: Text
    other: Text
    settled_by: Text
    claims: Annotated[tuple[DecidingClaim, ...], Field(min_length=1)]


class ContradictionsFile(Strict):
    """Content of `contradictions.toml`."""

    contradictions: tuple[Contradiction, ...]


def contradictions() -> tuple[Contradiction, ...]:
    """Return the contradictions shipped with the package, in file order."""
    content = files("svgpbench.papers").joinpath("contradictions.toml").read_bytes()
    return ContradictionsFile.model_validate(tomllib.loads(content.decode())).contradictions
