"""Pages from templates: whatever comes from a record or a file is escaped, and nothing is marked safe."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from svgpbench import __version__
from svgpbench.site.entries import outcome_of
from svgpbench.site.meanings import GRADES, class_name
from svgpbench.stats.effects import with_interval

FILES = ("style.css", "site.js", "explorer.js")
"""What lies beside the pages, as it is in the package."""


class Link(NamedTuple):
    """A text that leads somewhere below the site."""

    text: str
    path: str


class Page(NamedTuple):
    """A page, and what its template shows."""

    path: str  # below the site
    title: str
    template: str
    content: Mapping[str, Any]
    section: str = ""  # of the navigation


def slug(name: str) -> str:
    """A name as that of a file and in an address; different ones stay different."""
    plain = name.replace(":", ".").replace("/", ".")
    return re.sub(r"[^A-Za-z0-9._-]", lambda found: f"_{ord(found[0]):x}", plain)


def packed(value: Any) -> str:
    """JSON, compressed, in letters that mean nothing to a page: no text in it can end a script element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def in_bytes(size: int) -> str:
    """`1.2 MB`."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000  # type: ignore[assignment]
    return f"{size:.3g} GB"


class Writer:
    """Renders pages into a folder; `sections` are the navigation."""

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
            "packed": packed,
            "bytes": in_bytes,
        }

    def write(self, page: Page) -> None:
        """Render a page; a name that its template lacks is an error."""
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
        """Style and scripts, and plotly.js for the explorer."""
        folder = self.folder / "assets"
        folder.mkdir(parents=True, exist_ok=True)
        ours = files("svgpbench.site").joinpath("assets")
        for name in FILES:
            folder.joinpath(name).write_bytes(ours.joinpath(name).read_bytes())
        plotly = files("plotly").joinpath("package_data", "plotly.min.js")
        folder.joinpath("plotly.min.js").write_bytes(plotly.read_bytes())
