"""What the pages hold: links that resolve, text that is escaped, every claim, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from small_site import PLANTED, Made


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {key: value or "" for key, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.found if name == tag]

    @property
    def anchors(self) -> set[str]:
        return {attributes["id"] for _, attributes in self.found if "id" in attributes}


@pytest.fixture(scope="module")
def pages(made: Made) -> dict[Path, Elements]:
    return {path: Elements(path) for path in made.pages}


def leads(pages: dict[Path, Elements]) -> Iterator[tuple[Path, str]]:
    """Every address that a page names but for those that a reader follows to elsewhere."""
    for path, page in pages.items():
        for tag, attributes in page.found:
            for key in ("href", "src"):
                address = attributes.get(key, "")
                elsewhere = tag == "a" and urlsplit(address).scheme in ("http", "https")
                if address and address != "data:," and not elsewhere:
                    yield path, address


def test_every_link_leads_to_a_file_and_a_place_that_are_there(pages: dict[Path, Elements]) -> None:
    seen = 0
    for path, address in leads(pages):
        parts = urlsplit(address)
        assert not parts.scheme and not parts.netloc, f"{path.name} loads {address}"
        file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        assert file.is_file(), f"{path.name} links to {address}"
        if parts.fragment and file.name != "explorer.html":  # there it is a choice
            assert unquote(parts.fragment) in pages[file].anchors, f"{path.name}: {address}"
        seen += 1
    assert seen > 1000


def test_no_page_loads_from_elsewhere(pages: dict[Path, Elements], made: Made) -> None:
    for path, page in pages.items():
        for attributes in (*page.all("script"), *page.all("link"), *page.all("img")):
            address = attributes.get("src") or attributes.get("href", "")
            assert "//" not in address, f"{path.name} loads {address}"
    style = (made.folder / "assets" / "style.css").read_text()
    assert "url(" not in style and "@import" not in style


def test_text_of_a_claim_is_no_markup(pages: dict[Path, Elements], made: Made) -> None:
    of_claims = [made.folder / "index.html", made.folder / "papers" / "adam2021.html"]
    for path in of_claims:
        assert PLANTED in pages[path].text
        assert PLANTED not in path.read_text(encoding="utf-8")


def test_every_claim_is_there_with_its_verdict(pages: dict[Path, Elements], made: Made) -> None:
    overview = pages[made.folder / "index.html"]
    paper = pages[made.folder / "papers" / "adam2021.html"]
    verdicts = {row["data-verdict"] for row in overview.all("tr") if "data-verdict" in row}
    assert verdicts == {str(one.verdict) for _, one in made.judged}
    for _, one in made.judged:
        assert one.claim.id in paper.anchors
        assert one.claim.predicate.replace("`", "") in paper.text
        assert one.effect in overview.text


def test_every_picture_says_what_it_shows(pages: dict[Path, Elements]) -> None:
    pictures = [image for page in pages.values() for image in page.all("img")]
    assert len(pictures) >= 4
    assert all(len(image["alt"]) > 20 for image in pictures)


def test_sizes_are_those_of_a_mail(made: Made) -> None:
    first = sum((made.folder / name).stat().st_size for name in ("index.html", "assets/style.css"))
    assert first < 1_000_000
    assert made.built.size - made.built.downloads < 15_000_000


def test_what_no_page_shows_is_among_the_downloads(made: Made) -> None:
    beside = [
        x for x in made.folder.rglob("*") if x.relative_to(made.folder).parts[0] != "downloads"
    ]
    assert {x.suffix for x in beside}.isdisjoint({".csv", ".pdf", ".tex", ".parquet", ".toml"})
    there = {x.suffix for x in (made.folder / "downloads" / "artefacts").rglob("*")}
    assert there >= {".csv", ".pdf", ".tex"}


def test_a_figure_leads_to_its_experiment_its_records_and_its_code(
    pages: dict[Path, Elements], made: Made
) -> None:
    linked = {one["href"] for one in pages[made.folder / "papers" / "adam2021.html"].all("a")}
    assert {
        "../downloads/experiments/adam2021-fig3.toml",
        "../downloads/tidy/adam2021-fig3.csv",
        "../downloads/code/svgpbench.report.figures.convergence.py",
    } <= linked


def test_kept_records_are_downloaded_bit_for_bit(made: Made) -> None:
    name = "adam2021-rates.parquet"
    there = made.folder / "downloads" / "records" / name
    assert there.read_bytes() == (made.results / name).read_bytes()
