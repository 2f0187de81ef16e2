"""Default fits of hard data: each ends near the bound of a long run, or with a line that names the remedy."""

from __future__ import annotations

import pytest
from default_fits import LONG, SWEEP, default_fit, is_near, table_rows

TABLE = table_rows()
SOON = ("Poisson, mean 1000", "Student-t, scale 0.1, df 3")
"""Settings of the page that `make slow` fits anew; `make long` fits all."""


TOO_SOON = "Bernoulli (logit), 3 of 300"
"""A fit that counts as settled, by 0.001 nats per row, while its bound of a few nats still creeps up."""


def test_the_rule_holds_in_every_row_of_the_page_but_one() -> None:
    assert [name for name in SWEEP if name in TABLE] == list(TABLE)
    for setting, (bound, reference, ended) in TABLE.items():
        rows = len(SWEEP[setting][0]()[1])
        holds = is_near(bound, reference, rows) or ended.endswith("says what to do")
        assert holds == (setting != TOO_SOON), setting


@pytest.mark.parametrize("setting", SOON)
def test_a_default_fit_ends_as_the_page_says(setting: str) -> None:
    bound, reference, ended = TABLE[setting]
    found = default_fit(setting)
    assert is_near(found.bound, reference, found.rows)
    # how far a bound that has settled may still move
    assert found.bound == pytest.approx(bound, abs=0.001 * found.rows)
    assert (found.ended, found.remedies) == (ended, ())


@pytest.mark.long
@pytest.mark.parametrize("setting", SWEEP)
def test_a_default_fit_is_near_a_long_run_or_names_the_remedy(setting: str) -> None:
    found, long = default_fit(setting), default_fit(setting, training=LONG)
    assert setting == TOO_SOON or is_near(found.bound, long.bound, found.rows) or found.remedies
