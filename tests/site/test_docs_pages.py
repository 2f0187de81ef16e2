"""The docs as pages, built without a warning, with the site beside them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from interpreter import python
from small_site import Made

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared") / "docs"


@pytest.fixture(scope="module")
def pages(made: Made, prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, by the commands of `make pages`."""
    out = tmp_path_factory.mktemp("docs") / "pages"
    for command in (
        ("docs/_build/prepare.py", made.folder, prepared),
        ("-m", "mkdocs", "build", "--strict", "--site-dir", out),
    ):
        environment = {**os.environ, "SVGPBENCH_DOCS": str(prepared)}
        done = python(*command, cwd=ROOT, env=environment)
        assert done.returncode == 0, done.stderr
        assert not re.search("^(WARNING|ERROR)", done.stderr, re.MULTILINE), done.stderr
    return out


def visit(browser: Chrome, page: Path) -> None:
    browser.get("about:blank")
    browser.get(page.as_uri())


@pytest.mark.parametrize("page", ["index", "tutorial", "mathematics", "api", "claims"])
def test_a_page_opens_from_the_file_system_and_asks_for_nothing_else(
    browser: Chrome, pages: Path, page: str
) -> None:
    visit(browser, pages / f"{page}.html")
    assert [line["message"] for line in browser.get_log("browser")] == []


def test_formulas_are_drawn_and_no_mark_is_left(pages: Path) -> None:
    text = (pages / "mathematics.html").read_text("utf-8")
    assert text.count("<math") > 50
    assert not re.search(r"\$", text.partition("<article")[2].partition("</article")[0])


def test_every_link_of_a_prepared_page_leads_somewhere_in_its_folder(
    pages: Path, prepared: Path
) -> None:
    for page in prepared.glob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^):#\s]+)[)#]", text):
            assert (prepared / target).is_file(), f"{page.name}: {target}"


def test_every_link_of_a_page_leads_somewhere(pages: Path) -> None:
    for page in sorted(set(pages.glob("*.html")) - {pages / "404.html"}):  # shown at any address
        for target in re.findall(r'href="([^":#?]+)["#]', page.read_text("utf-8")):
            assert (pages / target).exists(), f"{page.name}: {target}"


def test_the_site_leads_back_to_the_docs(browser: Chrome, pages: Path) -> None:
    visit(browser, pages / "report" / "papers" / "adam2021.html")
    link = browser.find_element("link text", "Docs")
    assert link.get_attribute("href") == (pages / "index.html").as_uri()
