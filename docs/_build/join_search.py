"""Join the report's pages to the search of a built site: `join_search.py SITE`. This part is bound to MkDocs."""

from __future__ import annotations

import html
import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any


def join(site: Path) -> None:
    """Add the report's pages to the search index, and to its copy for pages opened from the file system."""
    index = site / "search" / "search_index.json"
    known = json.loads(index.read_text("utf-8"))
    for path in sorted((site / "report").rglob("*.html")):
        page = _Text()
        page.feed(path.read_text("utf-8"))
        location, words = path.relative_to(site).as_posix(), html.escape(page.words)
        known["docs"].append({"location": location, "title": page.title, "text": words})
    index.write_text(json.dumps(known), "utf-8")
    index.with_suffix(".js").write_text(f"var __index = {json.dumps(known)}", "utf-8")


class _Text(HTMLParser):
    """Title and words of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.title, self.words = "", ""
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("script", "style", "title", "nav"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside == ["title"]:
            self.title += data.strip()
        elif not self._inside:
            self.words += f" {' '.join(data.split())}"


if __name__ == "__main__":
    join(Path(sys.argv[1]))
