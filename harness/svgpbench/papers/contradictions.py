"""Where papers contradict themselves, each other or algebra, and which claims settle it."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from svgpbench.config import Strict
from svgpbench.papers.schema import Text


class Settles(Strict):
    """A claim of the ledger, and those of its parts that decide; its verdict alone, where none is named."""

    id: Text
    parts: tuple[Text, ...] = ()


class Contradiction(Strict):
    """Two statements that cannot both hold."""

    about: Text
    one: Text
    other: Text
    settled_by: Text
    claims: Annotated[tuple[Settles, ...], Field(min_length=1)]


class ContradictionsFile(Strict):
    """All of them."""

    contradictions: tuple[Contradiction, ...]


def contradictions() -> tuple[Contradiction, ...]:
    """Those between the papers that come with the package, in their order."""
    content = files("svgpbench.papers").joinpath("contradictions.toml").read_bytes()
    return ContradictionsFile.model_validate(tomllib.loads(content.decode())).contradictions
