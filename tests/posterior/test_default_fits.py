"""Default fits of hard data: each ends near the bound of a long run, or with a line that names the remedy."""

from __future__ import annotations

import pytest
from default_fits import LONG, SWEEP, default_fit, is_near, table_rows

TABLE = table_rows()
SOON = ("Poisson, mean 1000", "Student-t, scale 0.1, df 3")
"""Settings of the page that `make slow` fits anew; `make long` fits all."""


def test_the_rule_holds_in_every_row_of_the_page() -> None:
    assert list(TABLE) == list(SWEEP)
    for setting, (bound, reference, ended) in TABLE.items():
        assert is_near(setting, bound, reference) or ended.endswith("says what to do"), setting


@pytest.mark.parametrize("setting", SOON)
def test_a_default_fit_ends_as_the_page_says(setting: str) -> None:
    bound, reference, ended = TABLE[setting]
    found = default_fit(setting)
    assert is_near(setting, found.bound, reference)
    # how far a bound that has settled may still move
    assert found.bound == pytest.approx(bound, abs=0.001 * len(SWEEP[setting][0]()[1]))
    assert (found.ended, found.remedies) == (ended, ())


@pytest.mark.long
@pytest.mark.parametrize("setting", SWEEP)
def test_a_default_fit_is_near_a_long_run_or_names_the_remedy(setting: str) -> None:
    found, long = default_fit(setting), default_fit(setting, training=LONG)
    assert is_near(setting, found.bound, long.bound) or found.remedies
