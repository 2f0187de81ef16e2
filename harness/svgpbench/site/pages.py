"""Rendering of pages from templates. Text of records and files is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from svgpbench import __version__
from svgpbench.output.number_formats import in_bytes
from svgpbench.site.entries import outcome_of
from svgpbench.site.meanings import GRADES, class_name
from svgpbench.stats.effects import with_interval

FILES = ("style.css", "site.js")
"""Style and script that are copied from the package."""


class Link(NamedTuple):
    """Text with a path relative to the site."""

    text: str
    path: str


class Page(NamedTuple):
    """A page: its path, title, template and the values of the template."""

    path: str  # relative to the site
    title: str
    template: str
    content: Mapping[str, Any]
    section: str = ""  # title in the navigation


def slug(name: str) -> str:
    """Return a name that is valid in a file name and a URL.

    `:` becomes `.`; any other special character becomes `_` and its code in hexadecimal. So different names
    stay different.
    """
    coded = re.sub(r"[^A-Za-z0-9:-]", lambda match: f"_{ord(match[0]):x}_", name)
    return coded.replace(":", ".")


class Writer:
    """Writer of pages into a folder; `sections` are the links of the navigation."""

    def __init__(self, folder: Path, sections: tuple[Link, ...]) -> None:
        self.folder, self.sections = folder, sections
        self.environment = Environment(
            loader=PackageLoader("svgpbench.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.globals["meanings"] = GRADES
        self.environment.filters |= {
            "interval": with_interval,
            "outcome": outcome_of,
            "class": class_name,
            "slug": slug,
            "bytes": in_bytes,
        }

    def write(self, page: Page) -> None:
        """Render a page and write it. Raises `UndefinedError` if the template uses an unknown name."""
        # relative: opened from a disk, a link that begins with / would leave the site
        root = "../" * page.path.count("/")
        template = self.environment.get_template(page.template)
        text = template.render(
            **page.content,
            page=page,
            root=root,
            sections=self.sections,
            version=__version__,
        )
        path = self.folder / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def write_assets(self) -> None:
        """Write the style and the script."""
        folder = self.folder / "assets"
        folder.mkdir(parents=True, exist_ok=True)
        sources = files("svgpbench.site").joinpath("assets")
        for name in FILES:
            folder.joinpath(name).write_bytes(sources.joinpath(name).read_bytes())
