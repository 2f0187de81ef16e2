"""Every predicate comes out each way that its rule allows, on records planted for it."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest
from planted_frames import around, planted, reversed_around, together
from planted_verdicts import NO, OPEN, PARTLY, YES, judged

from svgpbench.papers.verdict import Verdict, combined

WIDE = [0.1, 0.9, 0.2, 0.8, 0.5]  # decides nothing


def on_sets(*outcomes: str) -> pd.DataFrame:
    """A data set each on which A comes out so against B in NLPD."""
    of_b = {"better": around(0.6), "worse": around(0.4), "equal": around(0.5), "open": WIDE}
    return together(
        *(
            planted({"A": reversed_around(0.5), "B": of_b[outcome]}, data=f"set {at}")
            for at, outcome in enumerate(outcomes)
        )
    )


@pytest.mark.parametrize(
    ("outcomes", "strict", "at_least"),
    [
        (("better",), YES, YES),
        (("equal",), NO, YES),
        (("worse",), NO, NO),
        (("open",), OPEN, OPEN),
        (("better", "better", "open"), YES, YES),
        (("better", "better", "equal"), YES, YES),
        (("better", "better", "worse"), PARTLY, PARTLY),
        (("better", "equal", "open"), PARTLY, YES),
        (("better", "equal", "equal"), NO, YES),
        (("better", "open", "open"), OPEN, OPEN),
        (("better", "better", "open", "open"), OPEN, OPEN),  # half is not more than half
        (("equal", "equal", "worse", "worse"), NO, PARTLY),
        (("worse", "worse", "open"), NO, NO),
        (("worse", "open", "open"), OPEN, OPEN),
    ],
)
def test_ordering_over_data_sets(
    outcomes: tuple[str, ...], strict: Verdict, at_least: Verdict
) -> None:
    frame = on_sets(*outcomes)
    keys = {"metric": "nlpd", "methods": ("A", "B")}
    assert judged(frame, "ordering", **keys).verdict == strict
    assert judged(frame, "ordering", **keys, at_least=True).verdict == at_least


def test_an_ordering_of_three_takes_every_neighbour() -> None:
    def frame(c: float) -> pd.DataFrame:
        return planted({"A": around(0.3), "B": reversed_around(0.4), "C": around(c)})

    keys = {"metric": "nlpd", "methods": ("A", "B", "C")}
    assert judged(frame(0.5), "ordering", **keys).verdict == YES
    assert judged(frame(0.35), "ordering", **keys).verdict == PARTLY
    finding = judged(frame(0.5), "ordering", **keys)
    assert [effect.value for effect in finding.effects] == pytest.approx([0.1, 0.1])


def test_an_ordering_over_data_sets_has_the_ranks_of_its_methods_alone() -> None:
    frame = on_sets("better", "better", "better", "worse", "worse")
    field = together(frame, *(planted({"C": [0.0] * 5}, data=f"set {at}") for at in range(5)))
    for each in (frame, field):
        ranks = judged(each, "ordering", metric="nlpd", methods=("A", "B")).ranks
        assert ranks is not None
        assert [(rank.method, rank.mean) for rank in ranks.of] == [("A", 1.4), ("B", 1.6)]
    few = judged(on_sets("better", "worse"), "ordering", metric="nlpd", methods=("A", "B"))
    assert few.ranks is None


@pytest.mark.parametrize(
    ("outcomes", "strict", "at_least"),
    [
        (("better", "better", "open"), YES, YES),
        (("equal", "equal", "equal"), NO, YES),
        (("better", "equal", "open"), PARTLY, YES),
        (("better", "better", "worse"), PARTLY, PARTLY),
        (("worse", "worse", "open"), NO, NO),
        (("better", "open", "open"), OPEN, OPEN),
    ],
)
def test_ordering_over_settings_of_a_fixed_split(
    outcomes: tuple[str, ...], strict: Verdict, at_least: Verdict
) -> None:
    of_b = {"better": around(0.6), "worse": around(0.4), "equal": around(0.5), "open": WIDE}
    values = {f"A{at}": reversed_around(0.5) for at in range(3)}
    values |= {f"B{at}": of_b[outcome] for at, outcome in enumerate(outcomes)}
    frame = planted(values, units="seed")
    keys = {
        "metric": "nlpd",
        "settings": {f"setting {at}": (f"A{at}", f"B{at}") for at in range(3)},
    }
    finding = judged(frame, "ordering", **keys)
    assert finding.verdict == strict
    assert judged(frame, "ordering", **keys, at_least=True).verdict == at_least
    assert [effect.of for effect in finding.effects] == ["setting 0", "setting 1", "setting 2"]
    for effect, outcome in zip(finding.effects, outcomes, strict=True):
        assert effect.outcome == outcome.replace("open", "undecided")
        if outcome != "open":
            assert effect.note == "on this split"


def test_a_setting_of_several_data_sets_names_them() -> None:
    keys = {"metric": "nlpd", "settings": {"fast": ("A", "B")}}
    finding = judged(on_sets("better", "worse"), "ordering", **keys)
    assert [effect.of for effect in finding.effects] == ["fast, set 0", "fast, set 1"]
    assert finding.verdict == PARTLY


@pytest.mark.parametrize(
    "keys", [{}, {"methods": ("A", "B"), "settings": {"one": ("A", "B")}}], ids=["none", "both"]
)
def test_an_ordering_is_of_methods_or_of_settings(keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="of `methods` or of `settings`; give one of them"):
        judged(on_sets("better"), "ordering", metric="nlpd", **keys)


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (("equal",), YES),
        (("better",), NO),
        (("worse",), NO),
        (("open",), OPEN),
        (("equal", "equal", "better"), PARTLY),
        (("equal", "equal", "open"), YES),
        (("equal", "open", "open"), OPEN),
    ],
)
def test_equality_of_two(outcomes: tuple[str, ...], verdict: Verdict) -> None:
    finding = judged(on_sets(*outcomes), "equality", metric="nlpd", methods=("A", "B"))
    assert finding.verdict == verdict


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        ((0.5, 0.4, 0.3), YES),
        ((0.5, 0.4, 0.4), YES),
        ((0.5, 0.5, 0.5), NO),
        ((0.3, 0.4, 0.5), NO),
        ((0.5, 0.4, 0.5), PARTLY),
        ((0.5, 0.4, None), OPEN),
    ],
)
def test_monotone_in_a_setting(levels: tuple[float | None, ...], verdict: Verdict) -> None:
    frame = together(
        *(
            planted({"A": WIDE if level is None else spread(level)}, inducing=count)
            for level, count, spread in zip(
                levels, (25, 50, 100), itertools.cycle((around, reversed_around)), strict=False
            )
        )
    )
    keys = {"metric": "nlpd", "method": "A", "setting": "inducing"}
    assert judged(frame, "monotone", **keys).verdict == verdict


def rounds(*ratios: float) -> pd.DataFrame:
    pairs = [(at, 2.0 + at, (2.0 + at) * ratio) for at, ratio in enumerate(ratios)]
    rows = [(at, "A", a) for at, a, _ in pairs] + [(at, "B", b) for at, _, b in pairs]
    return pd.DataFrame(rows, columns=["round", "method", "seconds"]).assign(problem="M50")


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((3.0, 4.1, 5.0, 5.2, 9.0), YES),
        ((3.0, 3.9, 5.0, 5.2, 9.0), PARTLY),
        ((1.0, 1.1, 5.0, 5.2, 9.0), NO),
        ((5.0, 5.0, 5.0, 5.0), OPEN),
    ],
)
def test_ratio_of_times_by_its_lower_quartile(ratios: tuple[float, ...], verdict: Verdict) -> None:
    finding = judged(rounds(*ratios), "ratio", methods=("A", "B"), at_least=4.0)
    assert finding.verdict == verdict
    if verdict != OPEN:
        (effect,) = finding.effects
        assert (effect.low, effect.value) == pytest.approx((ratios[1], ratios[2]))


def on_problems(**ratios: tuple[float, ...]) -> pd.DataFrame:
    return together(*(rounds(*of).assign(problem=problem) for problem, of in ratios.items()))


FASTER, LITTLE, SLOWER, FEW = (5.0,) * 5, (2.0,) * 5, (0.5,) * 5, (5.0,) * 4


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((0.5, 0.95, 1.0, 1.05, 9.0), YES),
        ((0.5, 0.95, 1.0, 1.2, 9.0), OPEN),
        ((0.5, 1.2, 1.3, 1.4, 9.0), NO),
        ((0.1, 0.5, 0.6, 0.7, 9.0), NO),
        ((1.0, 1.0, 1.0, 1.0), OPEN),
    ],
)
def test_as_long_by_both_quartiles(ratios: tuple[float, ...], verdict: Verdict) -> None:
    assert judged(rounds(*ratios), "as_long", methods=("A", "B")).verdict == verdict


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((FASTER, FASTER), YES),
        ((FASTER, LITTLE), PARTLY),
        ((FASTER, SLOWER), PARTLY),
        ((SLOWER, SLOWER), NO),
        ((FASTER, FEW), OPEN),
    ],
)
def test_a_ratio_is_of_every_problem(
    ratios: tuple[tuple[float, ...], ...], verdict: Verdict
) -> None:
    frame = on_problems(M25=ratios[0], M50=ratios[1])
    finding = judged(frame, "ratio", methods=("A", "B"), at_least=4.0)
    assert (finding.verdict, [x.of for x in finding.effects]) == (verdict, ["M25", "M50"])


@pytest.mark.parametrize(
    ("ratios", "verdict", "outcomes"),
    [
        ((FASTER, FASTER, LITTLE), YES, ["better", "better"]),
        ((FASTER, LITTLE, FASTER), NO, ["equal", "worse"]),
        ((FASTER, LITTLE, LITTLE), PARTLY, ["better", "equal"]),
        ((FASTER, FEW, LITTLE), OPEN, ["better", "undecided"]),
        ((FASTER, FASTER, FEW), OPEN, ["undecided", "undecided"]),
        ((FASTER, (3.0, 3.0, 4.2, 5.0, 9.0), (4.0,) * 5), OPEN, ["better", "undecided"]),
        ((FASTER, (4.3,) * 5, (4.0,) * 5), PARTLY, ["better", "equal"]),
    ],
)
def test_a_gain_is_larger_than_on_another_problem(
    ratios: tuple[tuple[float, ...], ...], verdict: Verdict, outcomes: list[str]
) -> None:
    frame = on_problems(M25=ratios[0], M50=ratios[1], M500=ratios[2])
    finding = judged(frame, "gain", methods=("A", "B"), than="M500")
    assert [effect.outcome for effect in finding.effects] == outcomes
    assert finding.verdict == verdict


def test_a_gain_goes_from_quartile_to_quartile() -> None:
    frame = on_problems(M25=(4.0, 5.0, 6.0, 7.0, 8.0), M500=(1.0, 2.0, 2.5, 3.0, 9.0))
    (effect,) = judged(frame, "gain", methods=("A", "B"), than="M500").effects
    assert (effect.low, effect.value, effect.high) == pytest.approx((5 / 3, 6 / 2.5, 7 / 2))


@pytest.mark.parametrize(
    ("values", "printed", "verdict"),
    [
        (around(0.30), 0.30, YES),
        (around(0.30), 0.3152, YES),  # the printed ± and the region reach 0.015
        (around(0.30), 0.316, NO),
        (around(0.30), 0.2848, YES),
        (around(0.30), 0.284, NO),
        (WIDE, 0.5, OPEN),
        ([*around(0.30)[:4], None], 0.30, OPEN),
    ],
)
def test_number_as_printed(values: list[float | None], printed: float, verdict: Verdict) -> None:
    keys = {"metric": "nlpd", "method": "A", "printed": printed, "spread": 0.005, "gap": 0.02}
    assert judged(planted({"A": values, "B": WIDE}), "number", **keys).verdict == verdict


@pytest.mark.parametrize(
    ("spread", "printed", "outcome", "note"),
    [
        (1e-4, 0.30, "as printed", "on this split"),
        (1e-4, 0.40, "not as printed", "on this split"),
        (0.01, 0.30, "too wide", "13 starts would decide"),
    ],
)
def test_a_number_says_what_came_out_and_how_many_starts_would_decide(
    spread: float, printed: float, outcome: str, note: str
) -> None:
    frame = planted({"A": around(0.30, spread)}, units="seed")
    keys = {"metric": "nlpd", "method": "A", "printed": printed, "gap": 0.02}
    (effect,) = judged(frame, "number", **keys).effects
    assert (effect.outcome, effect.note) == (outcome, note)


def test_a_number_over_splits_is_not_of_one_split() -> None:
    keys = {"metric": "nlpd", "method": "A", "printed": 0.3, "gap": 0.02}
    (effect,) = judged(planted({"A": around(0.30)}), "number", **keys).effects
    assert effect.note == ""


@pytest.mark.parametrize(
    ("residuals", "verdict"),
    [((1e-9, -9e-9), YES), ((1e-9, -2e-8), NO), ((1e-9, float("nan")), OPEN), ((), OPEN)],
)
def test_identity_within_a_tolerance(residuals: tuple[float, ...], verdict: Verdict) -> None:
    frame = pd.DataFrame({"residual": pd.Series(residuals, dtype=float)})
    assert judged(frame, "identity").verdict == verdict


@pytest.mark.parametrize(
    ("residuals", "verdict"),
    [((0.3, -0.1), YES), ((0.3, 0.09), NO), ((0.3, float("nan")), OPEN), ((), OPEN)],
)
def test_what_is_printed_differs_by_so_much_in_every_case(
    residuals: tuple[float, ...], verdict: Verdict
) -> None:
    frame = pd.DataFrame({"residual": pd.Series(residuals, dtype=float)})
    finding = judged(frame, "differs", at_least=0.1)
    assert finding.verdict == verdict
    if verdict != OPEN:
        assert finding.effects[0].value == min(map(abs, residuals))


@pytest.mark.parametrize(
    ("sizes", "power", "verdict"),
    [
        ((10, 30, 100), 2.0, YES),
        ((10, 30, 100), 2.04, YES),
        ((10, 30, 100), 2.06, NO),
        ((10, 30, 90), 2.0, OPEN),
    ],
)
def test_exponent_over_a_decade(sizes: tuple[int, ...], power: float, verdict: Verdict) -> None:
    frame = pd.DataFrame({"M": sizes, "flops": [7.0 * size**power for size in sizes]})
    keys = {"cost": "flops", "size": "M", "power": 2.0}
    assert judged(frame, "exponent", **keys).verdict == verdict


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ((), Verdict.not_run),
        ((YES, Verdict.not_run), Verdict.not_run),
        ((YES, YES), YES),
        ((NO, NO), NO),
        ((OPEN, OPEN), OPEN),
        ((PARTLY, PARTLY), PARTLY),
        ((YES, NO), PARTLY),
        ((YES, NO, OPEN), PARTLY),
        ((PARTLY, OPEN), PARTLY),
        ((YES, PARTLY), PARTLY),
        ((YES, OPEN), OPEN),
        ((NO, OPEN), OPEN),
    ],
)
def test_a_claim_of_several_parts(parts: tuple[Verdict, ...], whole: Verdict) -> None:
    assert combined(parts) == whole
