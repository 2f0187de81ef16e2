"""`svgpbench new`: write a small package of a plugin from the templates of its kind."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from svgpbench import __version__
from svgpbench.errors import UserError
from svgpbench.papers.loading import paper_folders
from svgpbench.plugins import (
    BACKENDS,
    DATASETS,
    LIKELIHOODS,
    METHODS,
    PAPERS,
    plugins,
    registries,
)

FILLED = ".template"
"""Suffix of a file with placeholders; any other file is copied unchanged."""


class Kind(StrEnum):
    """Kinds of plugins that a new package can have."""

    backend = "backend"
    method = "method"
    likelihood = "likelihood"
    dataset = "dataset"
    paper = "paper"


GROUPS = {
    Kind.backend: BACKENDS,
    Kind.method: METHODS,
    Kind.likelihood: LIKELIHOODS,
    Kind.dataset: DATASETS,
    Kind.paper: PAPERS,
}
"""Entry-point group of each kind."""


def new_command(
    kind: Annotated[Kind, typer.Argument(help="Kind of plugin.")],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the package and of the plugin.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder in which the package is made.")
    ] = Path(),
) -> None:
    """Write a small package that adds a plugin: it installs, its tests pass, and it is yours to change."""
    words = words_of(kind, name)
    content = filled(files("svgpbench") / "templates" / kind, words)
    folder = out / name
    write_folder(folder, content)
    for path in content:
        typer.echo(folder / path)
    typer.echo(f"next: cd {shlex.quote(str(folder))} && pip install --no-deps -e . && pytest")


def words_of(kind: Kind, name: str) -> dict[str, str]:
    """Return the text of each placeholder: `name`, `module`, `cls` and `version`.

    Raises `UserError` if `name` is not valid for a package or a module, or is taken.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UserError(
            f"{name!r} names no package: use small letters and digits, with single hyphens between them, "
            "and begin with a letter"
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module):
        raise UserError(f"{name!r} is a word of Python's own; take another name")
    if name in _taken(kind):
        raise UserError(f"there is a {kind} {name!r} already; take another name")
    imported = f"{module}_papers" if kind is Kind.paper else module
    if importlib.util.find_spec(imported) is not None:
        raise UserError(f"there is a module {imported!r} already; take another name")
    cls = "".join(part.capitalize() for part in name.split("-"))
    return {"name": name, "module": module, "cls": cls, "version": __version__}


def _taken(kind: Kind) -> set[str]:
    """Return the names that are taken by existing plugins of the kind."""
    found = set(plugins(GROUPS[kind]))
    if kind is Kind.dataset:
        found.update(name for registry in registries() for name in registry.names())
    return found | set(paper_folders()) if kind is Kind.paper else found


def filled(template: Traversable, words: dict[str, str]) -> dict[Path, bytes]:
    """Return the files of a template by path in the package, sorted, with placeholders filled in."""
    found = {}
    for path, file in _files(template):
        text = str(path).replace("MODULE", words["module"]).replace("NAME", words["name"])
        content = file.read_bytes()
        if text.endswith(FILLED):
            content = Template(content.decode("utf-8")).substitute(words).encode("utf-8")
        found[Path(text.removesuffix(FILLED))] = content
    return found


def _files(folder: Traversable, below: Path = Path()) -> Iterator[tuple[Path, Traversable]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _files(item, below / item.name)
        else:
            yield below / item.name, item


def write_folder(folder: Path, content: dict[Path, bytes]) -> None:
    """Write a new folder with all files of `content`, or none of them.

    Raises `UserError` if the folder exists or cannot be written; partial files are removed.
    """
    if os.path.lexists(folder):
        raise UserError(f"{folder} is there already; take another name, or another folder by --out")
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        for path, raw in content.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_bytes(raw)
        draft.rename(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(draft)
