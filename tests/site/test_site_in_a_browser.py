"""The pages in a real browser: filters, the choice in the address, what it draws, small screens, axe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium.webdriver.support.ui import WebDriverWait
from small_site import Made

from svgpbench.site.fields import Field

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PAGES = (
    *("index.html", "explorer.html", "papers/adam2021.html", "rules.html"),
    *("methods/t-svgp.html", "data/boston.html", "speed.html", "machines.html", "downloads.html"),
)
NARROW, WIDE = 390, 1280


def show(browser: Chrome, made: Made, page: str, width: int = WIDE) -> None:
    """Open a page anew; a fragment of it too is a new visit."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width == NARROW},
    )
    browser.get("about:blank")
    path, _, fragment = page.partition("#")
    browser.get((made.folder / path).as_uri() + (f"#{fragment}" if fragment else ""))
    if path == "explorer.html":  # it unpacks its numbers first
        has_drawn = "return document.getElementById('says').textContent"
        WebDriverWait(browser, 60).until(lambda page: page.execute_script(has_drawn))


def ask(browser: Chrome, script: str, *arguments: Any) -> Any:
    return browser.execute_script(f"return {script}", *arguments)


def choose(browser: Chrome, selector: str, value: str) -> None:
    """Set a field as a reader does, with the events of it."""
    browser.execute_script(
        """const field = document.querySelector(arguments[0]);
        if (field.type === "checkbox" || field.type === "radio") field.click();
        else {
          field.value = arguments[1];
          field.dispatchEvent(new Event("input", {bubbles: true}));
          field.dispatchEvent(new Event("change", {bubbles: true}));
        }""",
        selector,
        value,
    )


def shown_rows(browser: Chrome, table: str) -> list[str]:
    return ask(
        browser,
        "[...document.querySelectorAll(`#${arguments[0]} tbody tr`)].filter(r => r.offsetParent)"
        ".map(r => r.firstElementChild.textContent)",
        table,
    )


def shown_tiles(browser: Chrome) -> list[str]:
    return ask(
        browser,
        "[...document.querySelectorAll('.tiles > li')].filter(t => t.offsetParent).map(t => t.id)",
    )


def texts_by_tiles(browser: Chrome) -> list[str]:
    """What is shown of the texts that belong to tiles."""
    return ask(
        browser,
        "[...document.querySelectorAll('.about')].filter(t => t.checkVisibility()).map(t => t.id)",
    )


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_said_on_the_console_and_nothing_hangs_over(
    browser: Chrome, made: Made, page: str
) -> None:
    for width in (WIDE, NARROW):
        show(browser, made, page, width)
        assert [line["message"] for line in browser.get_log("browser")] == []
        assert ask(browser, "document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(browser: Chrome, made: Made, page: str) -> None:
    import axe_core_python

    script = Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    show(browser, made, page)
    # the colours are those of one file: three pages have them all
    for scheme in ("light", "dark") if page in PAGES[:3] else ("light",):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        browser.execute_script(script)
        found = browser.execute_async_script(
            "const done = arguments[0]; axe.run().then(r => done(r.violations.map("
            "v => [v.id, v.impact, v.nodes[0].html])))"
        )
        assert [one for one in found if one[1] in ("serious", "critical")] == []


def test_the_table_of_claims_is_filtered_and_its_address_restores_it(
    browser: Chrome, made: Made
) -> None:
    show(browser, made, "index.html")
    everything = [one.claim.id for _, one in made.judged]
    assert len({one.grade for _, one in made.judged}) > 1
    assert shown_rows(browser, "claims-table") == everything
    grade = str(made.judged[0][1].grade)
    chosen = [one.claim.id for _, one in made.judged if one.grade == grade]
    choose(browser, "[name=grade]", grade)
    assert shown_rows(browser, "claims-table") == chosen
    assert sorted(shown_tiles(browser)) == sorted(f"tile-{claim}" for claim in chosen)
    said = ask(browser, "document.querySelector('.found').textContent")
    assert said == f"{len(chosen)} of {len(everything)} claims"
    fragment = ask(browser, "location.hash.slice(1)")
    show(browser, made, f"index.html#{fragment}")
    assert shown_rows(browser, "claims-table") == chosen
    choose(browser, "[name=words]", "no such words")
    assert shown_rows(browser, "claims-table") == []


@pytest.mark.parametrize("field", ["fidelity", "kind"])
def test_claims_are_filtered_by_fidelity_and_by_kind(
    browser: Chrome, made: Made, field: str
) -> None:
    everything = [(one.claim.id, str(getattr(one, field))) for _, one in made.judged]
    show(browser, made, "index.html")
    for value in sorted({value for _, value in everything}):
        choose(browser, f"[name={field}]", value)
        chosen = [claim for claim, of in everything if of == value]
        assert shown_rows(browser, "claims-table") == chosen
        assert len(chosen) < len(everything)


def test_a_tile_tells_its_claim_to_a_pointer_and_to_the_keyboard(
    browser: Chrome, made: Made
) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    show(browser, made, "index.html")
    assert texts_by_tiles(browser) == []
    tile = browser.find_element("css selector", "#tile-adam2021-91 a")
    ActionChains(browser).move_to_element(tile).perform()
    assert texts_by_tiles(browser) == ["about-adam2021-91"]
    said = browser.find_element("id", "about-adam2021-91")
    one = next(one for _, one in made.judged if one.claim.id == "adam2021-91")
    assert one.claim.claim in said.text and one.finding in said.text
    ActionChains(browser).move_to_element(said).perform()  # it stays to be read and copied
    assert texts_by_tiles(browser) == ["about-adam2021-91"]
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert texts_by_tiles(browser) == []
    show(browser, made, "index.html")
    browser.find_element("css selector", "[name=words]").send_keys(Keys.TAB, Keys.NULL)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    tiled = ask(browser, "document.activeElement.getAttribute('aria-describedby')")
    assert tiled and texts_by_tiles(browser) == [tiled]


def test_the_explorer_ranks_as_tables_do(browser: Chrome, made: Made, field: Field) -> None:
    """The page's exact bootstrap against ten thousand draws, all methods on all sets.

    An end of an interval is a multiple of 1/6, the number of sets: draws may end one such step apart.
    """
    for score in ("nlpd", "elbo"):
        show(browser, made, f"explorer.html#e=adam2021-fig3&k={score}")
        drawn = ask(
            browser,
            "document.getElementById('ranks').data.map(t => [t.y[0], t.x[0], "
            "t.x[0] - t.error_x.arrayminus[0], t.x[0] + t.error_x.array[0]])",
        )
        found = {name: numbers for name, *numbers in drawn}
        ranks = field.ranks[score]
        assert found.keys() == {one.method for one in ranks.by_method}
        for one in ranks.by_method:
            assert found[one.method] == pytest.approx(
                [one.mean, one.low, one.high], abs=1 / 6 + 1e-9
            )
            assert found[one.method][0] == pytest.approx(one.mean, abs=1e-9)


def test_the_explorer_has_the_fronts_of_the_tables(
    browser: Chrome, made: Made, field: Field
) -> None:
    from svgpbench.output.pareto_table import ParetoTable

    frame = ParetoTable().build(field.collected).frame
    for cost, address in (("flops", ""), ("seconds", "&c=seconds")):
        show(browser, made, f"explorer.html#e=adam2021-fig3{address}")
        rows = ask(
            browser,
            "[...document.querySelectorAll('#table tbody tr')].map(r => "
            "[...r.children].map(c => c.textContent))",
        )
        places = {(row[0], row[1]): row[-1].partition(":")[0] for row in rows}
        expected = frame[frame["cost"] == cost]
        assert places == {(one.data, one.method): one.place for one in expected.itertuples()}


def test_the_address_restores_the_choice(browser: Chrome, made: Made) -> None:
    show(browser, made, "explorer.html#e=adam2021-fig3")
    choose(browser, "#methods label:nth-child(1) input", "")
    choose(browser, "#data-sets label:nth-child(2) input", "")
    choose(browser, "#metric", "0")
    choose(browser, "[name=at][value=time]", "")
    choose(browser, "#moment", "3")
    says = "document.getElementById('says').textContent"
    rows = "document.getElementById('table').textContent"
    said, table, fragment = ask(browser, says), ask(browser, rows), ask(browser, "location.hash")
    assert "s of training" in said and "5 of 6 data sets" in said
    show(browser, made, f"explorer.html{fragment}")
    assert (ask(browser, says), ask(browser, rows)) == (said, table)
    show(browser, made, "explorer.html#e=adam2021-fig3")
    assert ask(browser, rows) != table


def test_a_choice_changes_what_is_drawn(browser: Chrome, made: Made) -> None:
    show(browser, made, "explorer.html#e=adam2021-fig3")
    methods = ask(browser, "document.querySelectorAll('#methods input').length")
    charts = "document.querySelectorAll('#traces .chart .main-svg').length > 0"
    assert ask(browser, charts)
    assert ask(browser, "document.getElementById('ranks').data.length") == methods
    choose(browser, "#methods label:nth-child(2) input", "")
    assert ask(browser, "document.getElementById('ranks').data.length") == methods - 1
    choose(browser, "#experiment", "adam2021-rates")
    assert "adam2021-rates" in ask(browser, "document.title")
    labelled = "[...document.querySelectorAll('.chart')].every(c => c.hidden || c.ariaLabel)"
    assert ask(browser, labelled)


def test_the_site_is_walked_by_keyboard(browser: Chrome, made: Made) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, made, "index.html")
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert ask(browser, "document.activeElement.className") == "skip"
    seen = []
    for _ in range(16):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        seen.append(ask(browser, "document.activeElement.textContent"))
    assert {"Overview", "Explorer", "Methods", "Downloads"} <= set(seen)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert "papers/adam2021.html#adam2021-" in browser.current_url


def test_from_the_overview_to_raw_numbers_and_their_command_in_three_clicks(
    browser: Chrome, made: Made
) -> None:
    show(browser, made, "index.html")
    browser.find_element("css selector", '.tiles a[href$="#adam2021-16"]').click()
    claim = browser.find_element("id", "adam2021-16")
    assert "svgpbench run adam2021-fig3 --preset starts" in claim.text
    claim.find_element("css selector", 'a[href="#artefact-fig3"]').click()
    assert browser.current_url.endswith("papers/adam2021.html#artefact-fig3")
    links = browser.find_elements("css selector", "#artefact-fig3 a[href*='/downloads/tidy/']")
    (raw,) = {str(link.get_attribute("href")) for link in links}
    header, *rows = Path(raw.removeprefix("file://")).read_text("utf-8").splitlines()
    assert {"data", "method", "seed", "nlpd"} <= {*header.split(",")}
    assert len(rows) > 100
