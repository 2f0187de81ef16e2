"""A site of a part of the committed records, made once, and a browser that reads it from the file system."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from small_site import Made, part_of_results

from svgpbench.experiments import load_experiment
from svgpbench.results.collect import collect
from svgpbench.site.fields import Field

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("site")
    return Made(folder / "pages", part_of_results(folder / "results"))


@pytest.fixture(scope="session")
def field(made: Made) -> Field:
    """Figure 3, read once more."""
    return Field(collect(made.results, load_experiment("adam2021-fig3")))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Chromium without a window; it reaches nothing but files."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("no Chromium: apt-get install chromium chromium-driver")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = chromium
    for argument in (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *(
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ),
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = Chrome(options=options, service=ChromeService(driver))
    yield found
    found.quit()
