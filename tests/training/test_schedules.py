"""Rates of the E-step: rises by factors and by amounts, and the decay of Cheng and Boots."""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench.config import Decay, Linear, LogLinear, TrainingConfig
from svgpbench.training.schedules import cool_down_factor, rate_at


def test_a_number_is_the_rate_of_every_iteration() -> None:
    assert [rate_at(0.7, t) for t in (1, 2, 1000)] == [0.7] * 3


def test_log_linear_rises_by_equal_factors_and_then_stays() -> None:
    rise = LogLinear(start=1e-4, end=1e-1, steps=40)
    rates = np.array([rate_at(rise, t) for t in range(1, 101)])
    assert rates[0] == 1e-4
    assert rates[20] == pytest.approx(10**-2.5, rel=1e-13)  # half the way on a logarithmic scale
    np.testing.assert_allclose(np.diff(np.log10(rates[:41])), 3.0 / 40.0, rtol=1e-12)
    np.testing.assert_allclose(rates[40:], 1e-1, rtol=1e-15)


def test_log_linear_may_fall() -> None:
    fall = LogLinear(start=1.0, end=0.25, steps=2)
    assert [rate_at(fall, t) for t in (1, 2, 3, 4)] == pytest.approx([1.0, 0.5, 0.25, 0.25])


def test_linear_grows_by_equal_amounts_up_to_its_end() -> None:
    rates = [rate_at(Linear(start=1e-4, end=5e-2, increment=5e-4), t) for t in range(1, 301)]
    assert rates[:3] == pytest.approx([1e-4, 6e-4, 1.1e-3], rel=1e-13)
    assert rates[99] == pytest.approx(1e-4 + 99 * 5e-4, rel=1e-13)
    assert rates[100:] == [5e-2] * 200


def test_decay_is_the_start_over_one_plus_a_tenth_of_the_root_of_t() -> None:
    rates = [rate_at(Decay(start=0.01), t) for t in (1, 2, 5, 101, 2001)]
    wanted = [0.01, 0.01 / 1.1, 0.01 / 1.2, 0.01 / 2.0, 0.01 / (1.0 + 0.1 * np.sqrt(2000.0))]
    assert rates == pytest.approx(wanted, rel=1e-14)
    assert rate_at(Decay(start=0.01, decay=0.5), 10) == pytest.approx(0.01 / 2.5, rel=1e-14)


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        (0.3, float),
        ({"start": 1e-4, "end": 1e-1, "steps": 40}, LogLinear),
        ({"start": 1e-4, "end": 5e-2, "increment": 5e-4}, Linear),
        ({"start": 0.1, "decay": 0.1}, Decay),
        ({"start": 0.1}, Decay),
    ],
)
def test_settings_survive_a_record(declared: object, kind: type) -> None:
    settings = TrainingConfig.model_validate({"e_rate": declared})
    assert isinstance(settings.e_rate, kind)
    assert TrainingConfig.model_validate_json(settings.model_dump_json()) == settings


def test_a_cool_down_is_by_equal_factors_to_a_tenth_at_the_last_iteration() -> None:
    settings = TrainingConfig(em_iterations=9, cool_down=1 / 3)
    factors = [cool_down_factor(settings, t) for t in range(1, 10)]
    assert factors == pytest.approx([1.0] * 6 + [10 ** (-1 / 3), 10 ** (-2 / 3), 0.1], rel=1e-12)
    # of 10 iterations, 3 1/3 are cooled: the first of them starts within the seventh
    settings = TrainingConfig(em_iterations=10, cool_down=1 / 3)
    assert cool_down_factor(settings, 6) == 1.0
    assert cool_down_factor(settings, 7) == pytest.approx(10**-0.1, rel=1e-12)
    assert cool_down_factor(settings, 10) == pytest.approx(0.1, rel=1e-12)
    assert cool_down_factor(TrainingConfig(em_iterations=1, cool_down=0.5), 1) == pytest.approx(0.1)


def test_without_a_cool_down_rates_stay() -> None:
    settings = TrainingConfig(em_iterations=9)
    assert {cool_down_factor(settings, t) for t in range(1, 10)} == {1.0}
