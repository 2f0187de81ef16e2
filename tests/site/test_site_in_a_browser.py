"""The pages in a real browser: filters, the choice in the address, small screens, axe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from small_site import Made

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PAGES = (
    *("index.html", "experiments/adam2021-fig3.html", "papers/adam2021.html", "rules.html"),
    *(
        "experiments/index.html",
        "methods/t-svgp.html",
        "data/boston.html",
        "speed.html",
        "board.html",
    ),
    "downloads.html",
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


def ask(browser: Chrome, script: str, *arguments: Any) -> Any:
    return browser.execute_script(f"return {script}", *arguments)


def choose(browser: Chrome, selector: str, value: str) -> None:
    """Set a field as a reader does, with the events of it."""
    browser.execute_script(
        """const field = document.querySelector(arguments[0]);
        field.value = arguments[1];
        field.dispatchEvent(new Event("input", {bubbles: true}));""",
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


def test_the_site_is_walked_by_keyboard(browser: Chrome, made: Made) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, made, "index.html")
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert ask(browser, "document.activeElement.className") == "skip"
    seen = []
    for _ in range(18):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        seen.append(ask(browser, "document.activeElement.textContent"))
    assert {"Overview", "Board", "Experiments", "Methods", "Downloads"} <= set(seen)
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
