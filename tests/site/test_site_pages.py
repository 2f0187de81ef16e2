"""What the pages hold: links that resolve, text that is escaped, every claim, nothing from elsewhere."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args
from urllib.parse import unquote, urlsplit

import pytest
from small_site import PLANTED, RESPONSE, Made

from svgpbench.papers.grades import Fidelity, Grade
from svgpbench.papers.grading import Kind
from svgpbench.site import meanings
from svgpbench.stats import convergence, rules
from svgpbench.stats.effects import with_interval
from svgpbench.stats.measures import MEASURES
from svgpbench.stats.pairs import UNLEARNED
from svgpbench.suite.board import Board
from svgpbench.suite.findings import findings
from svgpbench.suite.outcomes import Outcomes
from svgpbench.suite.schema import load_suite


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
        if parts.fragment:
            assert unquote(parts.fragment) in pages[file].anchors, f"{path.name}: {address}"
        seen += 1
    assert seen > 1000


def test_no_style_loads_from_elsewhere(made: Made) -> None:
    style = (made.folder / "assets" / "style.css").read_text()
    assert "url(" not in style and "@import" not in style


def test_text_of_a_claim_is_no_markup(pages: dict[Path, Elements], made: Made) -> None:
    of_claims = [made.folder / "index.html", made.folder / "papers" / "adam2021.html"]
    for path in of_claims:
        assert PLANTED in pages[path].text
        assert PLANTED not in path.read_text(encoding="utf-8")


def test_every_claim_is_on_the_overview_with_sentence_grade_fidelity_and_finding(
    pages: dict[Path, Elements], made: Made
) -> None:
    overview = pages[made.folder / "index.html"]
    rows = {row["data-tile"]: row for row in overview.all("tr") if "data-tile" in row}
    assert {row["data-grade"] for row in rows.values()} == set(map(str, Grade))
    for paper, one in made.judged:
        row = rows[f"tile-{one.claim.id}"]
        assert row["data-grade"] == one.grade
        assert row["data-fidelity"] == one.fidelity
        assert (row["data-kind"], row["data-paper"]) == (one.kind, paper.name)
        for text in (one.claim.claim, one.finding):
            assert text.replace("`", "") in overview.text
    assert made.judged[0][0].about.says in overview.text


def test_counts_are_those_of_the_claims(made: Made) -> None:
    text = (made.folder / "index.html").read_text("utf-8")
    found = re.findall(r"<dt>([^<]+)</dt><dd class=\"count\">(\d+)</dd>", text)
    counts = Counter(str(one.grade) for _, one in made.judged if not one.claim.ours)
    assert [(grade, int(count)) for grade, count in found] == [(g, counts[g]) for g in Grade]


def test_a_tile_stands_with_its_kind_and_says_what_is_claimed(made: Made) -> None:
    text = (made.folder / "index.html").read_text("utf-8")
    for kind in ("theory", "experiments", "speed"):
        _, _, row = text.partition(f'id="adam2021-{kind}"')
        here = set(re.findall(r'id="tile-([a-z0-9-]+)"', row.partition("</ul>")[0]))
        assert here == {one.claim.id for _, one in made.judged if one.kind == kind}
    for _, one in made.judged:
        _, _, tile = text.partition(f'id="tile-{one.claim.id}"')
        assert html.escape(one.claim.title) in html.escape(
            html.unescape(tile.partition("</li>")[0])
        )


def test_a_paper_leads_to_where_it_can_be_read(pages: dict[Path, Elements], made: Made) -> None:
    for name in ("index.html", "papers/adam2021.html"):
        linked = {one["href"] for one in pages[made.folder / name].all("a")}
        assert "https://arxiv.org/abs/2111.03412" in linked


def entry(made: Made, claim: str) -> str:
    """A claim's entry on its paper's page."""
    text = (made.folder / "papers" / "adam2021.html").read_text("utf-8")
    _, _, found = text.partition(f'<article class="claim" id="{claim}"')
    return html.unescape(
        re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", found.partition("</article>")[0]))
    )


def test_an_entry_has_all_that_a_reader_asks_of_a_claim(made: Made) -> None:
    for _, one in made.judged:
        text = entry(made, one.claim.id)
        wanted = [one.claim.title, one.claim.where, one.grade, one.fidelity, *one.commands]
        wanted += [one.claim.predicate, *(part.says for part in one.parts)]
        wanted += [name for name in one.under_other_rules if one.steady]
        wanted += [part.judgement.note for part in one.parts_of_role("core")]
        for said in wanted:
            assert re.sub(r"\s+", " ", said.replace("`", "")) in text, f"{one.claim.id}: {said}"
        core = [effect for part in one.parts_of_role("core") for effect in part.judgement.effects]
        assert all(with_interval(effect) in text for effect in core)
        assert all(record in text for record in one.records)


def test_an_entry_says_what_is_smaller_than_in_the_paper(made: Made) -> None:
    resting = {one.claim.id: {part.artefact for part in one.claim.core} for _, one in made.judged}
    assert any("fig3" in names for names in resting.values())
    for claim, names in resting.items():
        assert ("(smaller: two folds" in entry(made, claim)) == ("fig3" in names)


def test_errata_and_conditions_stand_apart_with_their_outcome(made: Made) -> None:
    text = entry(made, "adam2021-91")
    assert "Where the paper errs n/b is missing the print errs here holds" in text
    assert (
        "1 condition beside the claim at another rate fails +1.5 [+1.25, +1.75]; on this split"
        in text
    )
    assert "smallest effect: 1 %" in text
    assert "The grade turns under 1 of 7 other rules" in text
    assert "threshold doubled open" in text


def test_a_response_of_the_authors_is_printed_and_otherwise_asked_for(made: Made) -> None:
    assert f"Response of the authors {RESPONSE}" in entry(made, "adam2021-90")
    assert "No response" not in entry(made, "adam2021-90")
    assert "No response of the authors yet. Where to send one" in entry(made, "adam2021-91")


RULE_NAMES = (
    *("core-parts-decide", "errata", "conditions", "non-inferiority", "practical-equivalence"),
    *("three-tolerances-of-convergence", "censored-twice-says-nothing", "chaos", "exact-claims"),
    *("a-region-is-of-the-rows-that-the-bound-covers", "numbers-printed-of-other-data", "times"),
    *("a-data-set-that-no-method-learns", "lasts", "regions", "dispute"),
    *("data-sets-as-units", "corrected-error-over-splits", "steadiness"),
    "more-than-half-and-none-at-its-worst",
)


def test_rules_are_named_and_their_numbers_are_those_of_the_code(
    pages: dict[Path, Elements], made: Made
) -> None:
    page = pages[made.folder / "rules.html"]
    assert set(RULE_NAMES) <= page.anchors
    for word in (*Grade, *Fidelity, *rules.VARIANTS):
        assert word in page.text
    assert "τ is 5 %, 1 % and 0.1 %" in page.text
    assert f"running median over {convergence.WINDOW} looks" in page.text
    assert f"at least {UNLEARNED} of the error" in page.text
    assert "at most 1e-8 in float64" in page.text
    assert all(measure.title in page.text for measure in MEASURES.values())
    assert "0.1 nat for each 100 rows that the bound covers" in page.text
    assert "A claim that I dispute" in page.text


def test_no_grade_fidelity_or_variant_is_left_unexplained() -> None:
    assert list(meanings.GRADES) == list(Grade)
    assert list(meanings.FIDELITIES) == list(Fidelity)
    assert list(meanings.VARIANTS) == list(rules.VARIANTS)
    assert list(meanings.KINDS) == list(get_args(Kind))


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("grade", Grade)
def test_a_grade_has_a_colour_of_its_own_that_can_be_read(grade: Grade, made: Made) -> None:
    style = (made.folder / "assets" / "style.css").read_text("utf-8")
    name = meanings.class_name(grade)
    assert f".{name} {{" in style
    grounds = re.findall(rf"--{name}: (#[0-9a-f]{{6}});", style)
    inks = re.findall(rf"--{name}-ink: (#[0-9a-f]{{6}});", style)
    assert len(grounds) == len(inks) == 2  # light and dark
    for ground, ink in zip(grounds, inks, strict=True):
        dark, light = sorted((luminance(ground), luminance(ink)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5
        assert len(re.findall(rf": {ground};", style)) == 1


def test_every_picture_says_what_it_shows(pages: dict[Path, Elements]) -> None:
    pictures = [image for page in pages.values() for image in page.all("img")]
    assert len(pictures) >= 4
    assert all(len(image["alt"]) > 20 for image in pictures)


def test_sizes_are_those_of_a_mail(made: Made) -> None:
    first = sum((made.folder / name).stat().st_size for name in ("index.html", "assets/style.css"))
    assert first < 1_000_000
    assert made.built.size - made.built.downloads < 15_000_000


def test_pictures_have_a_palette_and_keep_their_colours(made: Made) -> None:
    from PIL import Image

    pictures = sorted(made.folder.rglob("*.png"))
    assert len(pictures) >= 4
    for path in pictures:
        with Image.open(path) as picture:
            assert picture.mode == "P"
            assert len(picture.convert("RGB").getcolors(picture.width * picture.height) or ()) > 8


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
        "../downloads/code/svgpbench.output.figures.convergence.py",
    } <= linked


def test_kept_records_are_downloaded_bit_for_bit(made: Made) -> None:
    name = "adam2021-rates.parquet"
    there = made.folder / "downloads" / "records" / name
    assert there.read_bytes() == (made.results / name).read_bytes()


def test_the_page_of_speed_has_the_dual_method_over_the_other(pages: dict[Path, Elements]) -> None:
    page = next(page for path, page in pages.items() if path.name == "speed.html")
    assert "steps-t-svgp-over-q-svgp" in page.anchors
    assert any(x["src"].endswith("dual-over-mean.png") for x in page.all("img"))
    assert "Time of t-svgp over that of q-svgp" in page.text


def test_the_board_has_its_findings_and_every_entrant(
    pages: dict[Path, Elements], made: Made
) -> None:
    suite, outcomes = load_suite(), Outcomes.read()
    board = Board(outcomes, [x.label for x in suite.entrants if not x.reference])
    page, overview = (pages[made.folder / name] for name in ("board.html", "index.html"))
    for finding in findings(board):
        assert finding in page.text
    for row in board.rows():
        assert row.entrant in page.text
    assert findings(board)[0] in overview.text
    assert "board.html" in {one["href"] for one in overview.all("a")}
