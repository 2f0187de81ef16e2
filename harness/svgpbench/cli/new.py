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
from svgpbench.plugins import (
    BACKENDS,
    DATASETS,
    LIKELIHOODS,
    METHODS,
    PAPERS,
    paper_folders,
    plugins,
    registries,
)

TEMPLATE_SUFFIX = ".template"
"""Suffix of a file with placeholders; any other file is copied unchanged."""


class PluginKind(StrEnum):
    """Kinds of plugins that a new package can have."""

    backend = "backend"
    method = "method"
    likelihood = "likelihood"
    dataset = "dataset"
    paper = "paper"


GROUPS = {
    PluginKind.backend: BACKENDS,
    PluginKind.method: METHODS,
    PluginKind.likelihood: LIKELIHOODS,
    PluginKind.dataset: DATASETS,
    PluginKind.paper: PAPERS,
}
"""Entry-point group of each kind."""


def new_command(
    kind: Annotated[PluginKind, typer.Argument(help="Kind of plugin.")],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the package and of the plugin.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Parent folder of the new package."),
    ] = Path(),
) -> None:
    """Write a small package that adds a plugin: it installs, its tests pass, and it is yours to change."""
    template = files("svgpbench") / "templates" / kind
    package = fill_template(template, placeholders_of(kind, name))
    folder = out / name
    write_folder(folder, package)
    for path in package:
        typer.echo(folder / path)
    typer.echo(f"next: cd {shlex.quote(str(folder))} && pip install --no-deps -e . && pytest")


def placeholders_of(kind: PluginKind, name: str) -> dict[str, str]:
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
    if name in _existing_names(kind):
        raise UserError(f"there is a {kind} {name!r} already; take another name")
    imported = f"{module}_papers" if kind is PluginKind.paper else module
    if importlib.util.find_spec(imported) is not None:
        raise UserError(f"there is a module {imported!r} already; take another name")
    cls = "".join(part.capitalize() for part in name.split("-"))
    return {"name": name, "module": module, "cls": cls, "version": __version__}


def _existing_names(kind: PluginKind) -> set[str]:
    """Return the names of the existing plugins of a kind."""
    names = set(plugins(GROUPS[kind]))
    if kind is PluginKind.dataset:
        names.update(name for registry in registries() for name in registry.names())
    if kind is PluginKind.paper:
        names.update(paper_folders())
    return names


def fill_template(template: Traversable, placeholders: dict[str, str]) -> dict[Path, bytes]:
    """Return the files of a template by path in the package, sorted, with placeholders filled in."""
    package = {}
    for path, file in _files(template):
        text = str(path).replace("MODULE", placeholders["module"])
        text = text.replace("NAME", placeholders["name"])
        content = file.read_bytes()
        if text.endswith(TEMPLATE_SUFFIX):
            content = Template(content.decode("utf-8")).substitute(placeholders).encode("utf-8")
        package[Path(text.removesuffix(TEMPLATE_SUFFIX))] = content
    return package


def _files(folder: Traversable, parent: Path = Path()) -> Iterator[tuple[Path, Traversable]]:
    """Yield each file below a folder, with its path relative to the folder."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _files(item, parent / item.name)
        else:
            yield parent / item.name, item


def write_folder(folder: Path, content: dict[Path, bytes]) -> None:
    """Write a new folder with all files of `content`, or none of them.

    Raises `UserError` if the folder exists or cannot be written; partial files are removed.
    """
    # not `exists`, which is False for a link to nowhere
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
