"""Names become names of files and addresses."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from svgpbench.site.downloads import FOLDER, Downloads
from svgpbench.site.pages import Link, Page, Writer, slug
from svgpbench.site.speed import Section


def test_names_become_different_names_of_files() -> None:
    names = ["concrete:5", "concrete", "naval@turbine", "a b", "a_b", "a/b", "a:b", "a.b", "a_20_b"]
    assert len({slug(name) for name in names}) == len(names)
    assert all(slug(name).replace(".", "").replace("_", "").isalnum() for name in names)


def test_a_record_of_any_name_can_be_downloaded(tmp_path: Path) -> None:
    results, site, name = tmp_path / "results", tmp_path / "site", "one thread #2, 50%?.json"
    (results / "speed").mkdir(parents=True)
    (results / "speed" / name).write_text("{}")
    downloads = Downloads(site)
    downloads.add_records(results, {})
    section = Section("Steps", (), (), "", "", (Link(name, f"{FOLDER}/speed/{name}"),))
    writer = Writer(site, ())
    writer.write(Page("speed.html", "Speed", "speed.html", {"records": [section]}))
    files = list(downloads.files.values())
    writer.write(Page("downloads.html", "D", "downloads.html", {"files": files, "left_out": []}))
    for page in ("speed.html", "downloads.html"):
        (address,) = re.findall(r'href="(downloads/[^"]*)"', (site / page).read_text("utf-8"))
        parts = urlsplit(html.unescape(address))
        assert (parts.query, parts.fragment) == ("", "")
        assert (site / unquote(parts.path)).read_text() == "{}"
