"""Every predicate comes out each way that its rule allows, on records planted for it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted_frames import around, planted, reversed_around, together
from planted_grades import AB, DIRECTION, MIXED, NO, OPEN, YES, judged
from scipy import stats

from svgpbench.papers.grades import Grade, combined
from svgpbench.stats.rules import Rules

WIDE = [0.1, 0.9, 0.2, 0.8, 0.5]  # decides nothing


OF_B = {"better": around(0.6), "worse": around(0.4), "equal": around(0.5), "open": WIDE}
"""NLPD of B by how A, around 0.5, comes out against it."""


def on_sets(*outcomes: str) -> pd.DataFrame:
    """A data set each on which A comes out so against B in NLPD."""
    return together(
        *(
            planted({"A": reversed_around(0.5), "B": OF_B[outcome]}, data=f"set {at}")
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
        (("better", "better", "worse"), MIXED, MIXED),
        (("better", "equal", "open"), MIXED, YES),
        (("better", "equal", "equal"), NO, YES),
        (("better", "open", "open"), OPEN, OPEN),
        (("better", "better", "open", "open"), OPEN, OPEN),  # half is not more than half
        (("equal", "equal", "worse", "worse"), NO, MIXED),
        (("worse", "worse", "open"), NO, NO),
        (("worse", "open", "open"), OPEN, OPEN),
    ],
)
def test_ordering_over_data_sets(outcomes: tuple[str, ...], strict: Grade, at_least: Grade) -> None:
    frame = on_sets(*outcomes)
    assert judged(frame, "ordering", **AB).grade == strict
    assert judged(frame, "ordering", **AB, at_least=True).grade == at_least


def test_an_ordering_of_three_takes_every_neighbour() -> None:
    def frame(c: float) -> pd.DataFrame:
        return planted({"A": around(0.3), "B": reversed_around(0.4), "C": around(c)})

    keys = {"metric": "nlpd", "methods": ("A", "B", "C")}
    assert judged(frame(0.5), "ordering", **keys).grade == YES
    assert judged(frame(0.35), "ordering", **keys).grade == MIXED
    finding = judged(frame(0.5), "ordering", **keys)
    assert [effect.value for effect in finding.effects] == pytest.approx([0.1, 0.1])


def test_an_ordering_over_data_sets_has_the_ranks_of_its_methods_alone() -> None:
    frame = on_sets("better", "better", "better", "worse", "worse")
    field = together(frame, *(planted({"C": [0.0] * 5}, data=f"set {at}") for at in range(5)))
    for each in (frame, field):
        ranks = judged(each, "ordering", **AB).ranks
        assert ranks is not None
        assert [(rank.method, rank.mean) for rank in ranks.by_method] == [("A", 1.4), ("B", 1.6)]
    few = judged(on_sets("better", "worse"), "ordering", **AB)
    assert few.ranks is None


@pytest.mark.parametrize(
    ("outcomes", "strict", "at_least"),
    [
        (("better", "better", "open"), YES, YES),
        (("equal", "equal", "equal"), NO, YES),
        (("better", "equal", "open"), MIXED, YES),
        (("better", "better", "worse"), MIXED, MIXED),
        (("worse", "worse", "open"), NO, NO),
        (("better", "open", "open"), OPEN, OPEN),
    ],
)
def test_ordering_over_settings_of_a_fixed_split(
    outcomes: tuple[str, ...], strict: Grade, at_least: Grade
) -> None:
    values = {f"A{at}": reversed_around(0.5) for at in range(3)}
    values |= {f"B{at}": OF_B[outcome] for at, outcome in enumerate(outcomes)}
    frame = planted(values, units="seed")
    keys = {
        "metric": "nlpd",
        "settings": {f"setting {at}": (f"A{at}", f"B{at}") for at in range(3)},
    }
    finding = judged(frame, "ordering", **keys)
    assert finding.grade == strict
    assert judged(frame, "ordering", **keys, at_least=True).grade == at_least
    assert [effect.of for effect in finding.effects] == ["setting 0", "setting 1", "setting 2"]
    for effect, outcome in zip(finding.effects, outcomes, strict=True):
        assert effect.outcome == outcome.replace("open", "undecided")
        if outcome != "open":
            assert effect.note == "on this split"


def test_a_setting_of_several_data_sets_names_them() -> None:
    keys = {"metric": "nlpd", "settings": {"fast": ("A", "B")}}
    finding = judged(on_sets("better", "worse"), "ordering", **keys)
    assert [effect.of for effect in finding.effects] == ["fast, set 0", "fast, set 1"]
    assert finding.grade == MIXED


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
        (("equal", "equal", "better"), MIXED),
        (("equal", "equal", "open"), YES),
        (("equal", "open", "open"), OPEN),
    ],
)
def test_equality_of_two(outcomes: tuple[str, ...], verdict: Grade) -> None:
    finding = judged(on_sets(*outcomes), "equality", **AB)
    assert finding.grade == verdict


def by(difference: float, spread: float = 1e-4) -> pd.DataFrame:
    """A better than B in NLPD by so much on five folds."""
    return planted({"A": reversed_around(0.5, spread), "B": around(0.5 + difference, spread)})


@pytest.mark.parametrize(
    ("difference", "spread", "grade"),
    [
        (0.05, 1e-4, YES),
        (0.0, 1e-4, YES),
        (-0.009, 1e-4, YES),  # the whole interval lies above minus the region of 0.01
        (-0.011, 1e-4, NO),
        (0.026, 0.005, YES),  # neither better nor equal, and yet no worse
        (0.0, 0.01, OPEN),
    ],
)
def test_no_worse_is_non_inferiority(difference: float, spread: float, grade: Grade) -> None:
    assert judged(by(difference, spread), "ordering", **AB, at_least=True).grade == grade


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [(0.94, 0.98, "better"), (0.98, 0.94, "worse"), (0.99, 0.91, "equal"), (0.951, 0.949, "equal")],
)
def test_coverage_is_better_the_nearer_it_is_to_95_percent(
    first: float, second: float, outcome: str
) -> None:
    frame = planted({"A": around(first), "B": around(second)}, "coverage")
    (effect,) = judged(frame, "equality", metric="coverage", methods=("A", "B")).effects
    distances = abs(second - 0.95) - abs(first - 0.95)
    assert (effect.outcome, effect.value) == (outcome, pytest.approx(distances, abs=1e-12))


def test_no_worse_says_how_many_splits_would_decide() -> None:
    values = {"A": reversed_around(0.5, 3e-3), "B": around(0.5, 3e-3)}
    (effect,) = judged(planted(values, units="seed"), "ordering", **AB, at_least=True).effects
    assert effect.outcome == "undecided"
    units = int(effect.note.split()[0])
    assert units > 5
    deviation = 6e-3 * math.sqrt(2.5)
    halves = [stats.t.ppf(0.975, n - 1) * deviation / math.sqrt(n) for n in (units - 1, units)]
    assert halves[1] < 0.01 <= halves[0]


@pytest.mark.parametrize(("moved", "grade"), [(0.008, YES), (0.02, OPEN)])
def test_no_worse_is_chaotic_where_rounding_moves_it_out_of_the_region(
    moved: float, grade: Grade
) -> None:
    plain = by(0.005)
    replica = by(0.005 - moved).assign(perturbation=1e-15)
    keys = AB | {"at_least": True}
    frame = together(plain, replica)
    assert judged(frame, "ordering", **keys).grade == grade
    assert judged(frame, "ordering", Rules(chaos=False), **keys).grade == YES


def test_halved_and_doubled_regions_show_how_steady_a_grade_is() -> None:
    found = [judged(by(0.015), "ordering", Rules(threshold=x), **AB).grade for x in (0.5, 1, 2)]
    assert found == [YES, YES, NO]


@pytest.mark.parametrize("share", ["nmae", "nmse"])
def test_a_data_set_that_no_method_learns_is_named_and_takes_no_part(share: str) -> None:
    learned = by(0.1).assign(data="learned", **{share: 0.5})
    never = [by(-0.1).assign(data=f"never {at}", **{share: 0.99}) for at in range(3)]
    found = judged(together(learned, *never), "ordering", **AB)
    assert found.grade == YES
    assert [effect.outcome for effect in found.effects] == ["better", *["not learned"] * 3]
    one = by(-0.1).assign(data="by one", **{share: [0.5] * 5 + [0.99] * 5})
    assert judged(together(learned, one), "ordering", **AB).grade == MIXED


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        ((0.5, 0.4, 0.3), YES),
        ((0.5, 0.4, 0.4), YES),
        ((0.5, 0.5, 0.5), NO),
        ((0.3, 0.4, 0.5), NO),
        ((0.5, 0.4, 0.5), MIXED),
        ((0.5, 0.4, None), OPEN),
    ],
)
def test_monotone_in_a_setting(levels: tuple[float | None, ...], verdict: Grade) -> None:
    frame = together(
        *(
            planted({"A": WIDE if level is None else spread(level)}, inducing=count)
            for level, count, spread in zip(
                levels, (25, 50, 100), itertools.cycle((around, reversed_around)), strict=False
            )
        )
    )
    keys = {"metric": "nlpd", "method": "A", "setting": "inducing"}
    assert judged(frame, "monotone", **keys).grade == verdict
    backwards = frame.iloc[::-1].reset_index(drop=True)  # settings are sorted, whatever comes first
    assert judged(backwards, "monotone", **keys).grade == verdict


def test_monotone_is_open_where_no_step_counts() -> None:
    frame = together(*(planted({"A": around(1.0 / m)}, inducing=m) for m in (1, 2)))
    keys = {"metric": "nlpd", "method": "A", "setting": "inducing"}
    assert judged(frame.assign(nmae=0.5), "monotone", **keys).grade == YES
    assert judged(frame.assign(nmae=1.0), "monotone", **keys).grade == OPEN  # nothing learns it
    assert judged(frame[frame["inducing"] == 1], "monotone", **keys).grade == OPEN


def rounds(*ratios: float) -> pd.DataFrame:
    pairs = [(at, 2.0 + at, (2.0 + at) * ratio) for at, ratio in enumerate(ratios)]
    rows = [(at, "A", a) for at, a, _ in pairs] + [(at, "B", b) for at, _, b in pairs]
    return pd.DataFrame(rows, columns=["round", "method", "seconds"]).assign(problem="M50")


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((3.0, 4.1, 5.0, 5.2, 9.0), YES),
        ((3.0, 3.9, 5.0, 5.2, 9.0), DIRECTION),
        ((1.0, 1.1, 5.0, 5.2, 9.0), NO),
        ((5.0, 5.0, 5.0, 5.0), OPEN),
    ],
)
def test_ratio_of_times_by_its_lower_quartile(ratios: tuple[float, ...], verdict: Grade) -> None:
    finding = judged(rounds(*ratios), "ratio", methods=("A", "B"), at_least=4.0)
    assert finding.grade == verdict
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
def test_as_long_by_both_quartiles(ratios: tuple[float, ...], verdict: Grade) -> None:
    assert judged(rounds(*ratios), "as-long", methods=("A", "B")).grade == verdict


def test_a_claim_of_a_size_holds_in_direction_where_the_ratio_is_far_larger() -> None:
    def graded(*ratios: float) -> Grade:
        frame = on_problems(M25=ratios)
        return judged(frame, "ratio", methods=("A", "B"), at_least=4.0, at_most=6.25).grade

    assert graded(3.0, 4.1, 5.0, 6.2, 90.0) == YES
    assert graded(3.0, 4.1, 5.0, 6.3, 90.0) == DIRECTION
    assert graded(1.0, 1.05, 5.0, 6.3, 90.0) == NO


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((FASTER, FASTER), YES),
        ((FASTER, LITTLE), DIRECTION),
        ((FASTER, SLOWER), MIXED),
        ((LITTLE, SLOWER), MIXED),
        ((SLOWER, SLOWER), NO),
        ((FASTER, FEW), OPEN),
    ],
)
def test_a_ratio_is_of_every_problem(ratios: tuple[tuple[float, ...], ...], verdict: Grade) -> None:
    frame = on_problems(M25=ratios[0], M50=ratios[1])
    finding = judged(frame, "ratio", methods=("A", "B"), at_least=4.0)
    assert (finding.grade, [x.of for x in finding.effects]) == (verdict, ["M25", "M50"])


@pytest.mark.parametrize(
    ("ratios", "verdict", "outcomes"),
    [
        ((FASTER, FASTER, LITTLE), YES, ["better", "better"]),
        ((FASTER, LITTLE, FASTER), NO, ["equal", "worse"]),
        ((FASTER, LITTLE, LITTLE), MIXED, ["better", "equal"]),
        ((FASTER, FEW, LITTLE), OPEN, ["better", "undecided"]),
        ((FASTER, FASTER, FEW), OPEN, ["undecided", "undecided"]),
        ((FASTER, (3.0, 3.0, 4.2, 5.0, 9.0), (4.0,) * 5), OPEN, ["better", "undecided"]),
        ((FASTER, (4.3,) * 5, (4.0,) * 5), MIXED, ["better", "equal"]),
    ],
)
def test_a_gain_is_larger_than_on_another_problem(
    ratios: tuple[tuple[float, ...], ...], verdict: Grade, outcomes: list[str]
) -> None:
    frame = on_problems(M25=ratios[0], M50=ratios[1], M500=ratios[2])
    finding = judged(frame, "gain", methods=("A", "B"), than="M500")
    assert [effect.outcome for effect in finding.effects] == outcomes
    assert finding.grade == verdict


def test_a_gain_goes_from_quartile_to_quartile() -> None:
    frame = on_problems(M25=(4.0, 5.0, 6.0, 7.0, 8.0), M500=(1.0, 2.0, 2.5, 3.0, 9.0))
    (effect,) = judged(frame, "gain", methods=("A", "B"), than="M500").effects
    assert (effect.low, effect.value, effect.high) == pytest.approx((5 / 3, 6 / 2.5, 7 / 2))


def training(*speeds: float, last: float = -100.0, metric: str = "elbo") -> pd.DataFrame:
    """B climbs from -200 to -100 in ten seconds, A so many times as fast to `last`: a seed each."""
    looks = []
    for seed, speed in enumerate(speeds):
        for method, times, end in (("B", 1.0, -100.0), ("A", speed, last)):
            for share in (0.0, 0.5, 1.0):
                score = -200.0 + share * (end + 200.0)
                value = score if metric == "elbo" else -score / 100
                looks.append((method, seed, 10 * share / times, value))
    frame = pd.DataFrame(looks, columns=["method", "seed", "seconds", metric])
    return frame.assign(problem="mnist", n_bound=1000)


@pytest.mark.parametrize("metric", ["elbo", "nlpd"])
@pytest.mark.parametrize(
    ("speeds", "last", "verdict", "outcome"),
    [
        ((2.0, 3.0, 4.0), -100.0, YES, "better"),
        ((2.0, 3.0, 1.05), -100.0, OPEN, "undecided"),
        ((1.0, 1.02, 1.05), -100.0, NO, "equal"),
        ((0.5, 0.4, 0.3), -100.0, NO, "worse"),
        ((9.0, 9.0, 9.0), -150.0, NO, "worse"),  # it never gets there
        ((9.0, 9.0, 9.0), -100.5, YES, "better"),  # within what is equal in practice
        ((2.0, 3.0), -100.0, OPEN, ""),
    ],
)
def test_a_quality_is_reached_sooner_on_every_seed(
    speeds: tuple[float, ...], last: float, verdict: Grade, outcome: str, metric: str
) -> None:
    frame = training(*speeds, last=last, metric=metric)
    found = judged(frame, "reaches", metric=metric, methods=("A", "B"))
    assert (found.grade, [x.outcome for x in found.effects]) == (verdict, [outcome])


def test_a_quality_is_compared_on_seeds_that_both_ran() -> None:
    frame = training(2.0, 3.0, 4.0, 0.1)
    frame = frame[(frame["method"] == "A") | (frame["seed"] < 3)]
    (effect,) = judged(frame, "reaches", metric="elbo", methods=("A", "B")).effects
    assert (effect.outcome, effect.note) == ("better", "median, least and most of 3 seeds")


@pytest.mark.parametrize(
    ("start", "verdict", "ratio"), [("A", YES, math.inf), ("both", NO, 1.0), ("B", NO, 0.0)]
)
def test_a_quality_may_be_there_before_the_first_step(
    start: str, verdict: Grade, ratio: float
) -> None:
    frame = training(1.0, 1.0, 1.0)
    frame.loc[frame["method"].isin({"both": ["A", "B"]}.get(start, [start])), "elbo"] = -100.0
    found = judged(frame, "reaches", metric="elbo", methods=("A", "B"))
    assert (found.grade, found.effects[0].value) == (verdict, ratio)


def test_times_to_a_quality_are_between_looks_and_less_its_region() -> None:
    frame = training(2.0, 4.0, 5.0, last=-90.0)
    (effect,) = judged(frame, "reaches", metric="elbo", methods=("A", "B")).effects
    # -101 is 90 % of A's way, and 99 % of B's
    ratios = [9.9 / (10 / speed * 99 / 110) for speed in (2.0, 4.0, 5.0)]
    assert (effect.low, effect.value, effect.high) == pytest.approx(
        (ratios[0], ratios[1], ratios[2])
    )


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
def test_number_as_printed(values: list[float | None], printed: float, verdict: Grade) -> None:
    keys = {"metric": "nlpd", "method": "A", "printed": printed, "spread": 0.005, "gap": 0.02}
    assert judged(planted({"A": values, "B": WIDE}), "number", **keys).grade == verdict


@pytest.mark.parametrize(
    ("spread", "printed", "outcome", "note"),
    [
        (1e-4, 0.30, "as printed", "printed 0.3"),
        (1e-4, 0.40, "not as printed", "printed 0.4"),
        (0.01, 0.30, "too wide", "printed 0.3; 13 starts would decide"),
    ],
)
def test_a_number_says_what_came_out_and_how_many_starts_would_decide(
    spread: float, printed: float, outcome: str, note: str
) -> None:
    frame = planted({"A": around(0.30, spread)}, units="seed")
    keys = {"metric": "nlpd", "method": "A", "printed": printed, "gap": 0.02}
    (effect,) = judged(frame, "number", **keys).effects
    assert (effect.outcome, effect.note) == (outcome, note)


def test_a_number_is_the_mean_of_the_method_with_the_error_of_overlapping_splits() -> None:
    values = [0.28, 0.31, 0.30, 0.33, 0.29]
    frame = planted({"A": values, "B": [0.9] * 5})
    keys = {"metric": "nlpd", "method": "A", "printed": 0.3, "gap": 1.0}
    (effect,) = judged(frame, "number", **keys).effects
    half = stats.t.ppf(0.975, 4) * np.std(values, ddof=1) * math.sqrt(1 / 5 + 20 / 80)
    mean = float(np.mean(values))
    assert (effect.value, effect.low, effect.high) == pytest.approx(
        (mean, mean - half, mean + half)
    )


def test_the_region_of_a_number_is_that_of_the_rows_which_its_bound_covers() -> None:
    frame = planted({"A": around(-1.0)}, "elbo", units="seed").assign(n_train=10_000)
    keys = {"metric": "elbo", "method": "A", "printed": -1.5, "gap": 1.0}
    assert judged(frame, "number", **keys).grade == NO  # 80 rows: 0.08
    assert judged(frame.assign(n_bound=1000), "number", **keys).grade == YES  # 1000 rows: 1


@pytest.mark.parametrize(
    ("residuals", "verdict"),
    [((1e-9, -9e-9), YES), ((1e-9, -2e-8), NO), ((1e-9, float("nan")), OPEN), ((), OPEN)],
)
def test_identity_within_a_tolerance(residuals: tuple[float, ...], verdict: Grade) -> None:
    frame = pd.DataFrame({"residual": pd.Series(residuals, dtype=float)})
    assert judged(frame, "identity").grade == verdict


@pytest.mark.parametrize(
    ("residuals", "verdict"),
    [((0.3, -0.1), YES), ((0.3, 0.09), NO), ((0.3, float("nan")), OPEN), ((), OPEN)],
)
def test_what_is_printed_differs_by_so_much_in_every_case(
    residuals: tuple[float, ...], verdict: Grade
) -> None:
    frame = pd.DataFrame({"residual": pd.Series(residuals, dtype=float)})
    finding = judged(frame, "differs", at_least=0.1)
    assert finding.grade == verdict
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
def test_exponent_over_a_decade(sizes: tuple[int, ...], power: float, verdict: Grade) -> None:
    frame = pd.DataFrame({"M": sizes, "flops": [7.0 * size**power for size in sizes]})
    keys = {"cost": "flops", "size": "M", "power": 2.0}
    assert judged(frame, "exponent", **keys).grade == verdict


@pytest.mark.parametrize("costs", [[], [1.0, math.nan, 100.0], [1.0, 0.0, 100.0]])
def test_an_exponent_of_no_positive_costs_is_open(costs: list[float]) -> None:
    frame = pd.DataFrame({"M": [1.0, 10.0, 100.0][: len(costs)], "flops": costs})
    found = judged(frame, "exponent", cost="flops", size="M", power=1.0)
    assert found.grade == OPEN
    assert found.effects[0].note == (
        f"{min(1, len(costs))} of {len(costs)} rows have no positive size and cost"
    )


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ((), Grade.not_run),
        ((YES, Grade.not_run), Grade.not_run),
        ((YES, YES), YES),
        ((NO, NO), NO),
        ((OPEN, OPEN), OPEN),
        ((MIXED, MIXED), MIXED),
        ((YES, NO), MIXED),
        ((YES, NO, OPEN), MIXED),
        ((MIXED, OPEN), MIXED),
        ((YES, MIXED), MIXED),
        ((YES, OPEN), OPEN),
        ((NO, OPEN), MIXED),  # a sentence with a false half does not hold
        ((DIRECTION, YES), DIRECTION),
        ((DIRECTION, NO), MIXED),
        ((DIRECTION, OPEN), OPEN),
    ],
)
def test_a_claim_of_several_core_parts(parts: tuple[Grade, ...], whole: Grade) -> None:
    assert combined(parts) == whole
