"""Table 1 of adam2021 on planted records: its claims come out each way, and stand beside what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_table1 import TABLE1, Levels, plant, plant_choice

from svgpbench.experiments import resolve
from svgpbench.papers import load_paper
from svgpbench.report.collect import collect
from svgpbench.report.grading import Judged, judge
from svgpbench.report.printed_beside_ours import as_text, beside

PAPER = load_paper("adam2021")
PRINTED = [figure for figure in PAPER.printed if figure.artefact == "table1"]
AS_PRINTED: Levels = {
    "t-SVGP 1E1M .040 .05": 0.304, "q-SVGP 1E1M .040 .05": 0.304,
    "t-SVGP 2E1M .030 .10": 0.283, "q-SVGP 2E1M .030 .10": 0.288,
    "t-SVGP 3E1M .030 .10": 0.281, "q-SVGP 3E1M .030 .10": 0.293,
    "t-SVGP 4E1M .035 .03": 0.255, "q-SVGP 4E1M .035 .03": 0.259,
    "t-SVGP 4E2M .030 .03": 0.283, "q-SVGP 4E2M .030 .03": 0.282,
    "t-SVGP 4E1M .030 .03": 0.230, "q-SVGP 4E1M .030 .03": 0.243,
    "t-SVGP 1E1M .030 .03": 0.330, "t-SVGP 2E1M .030 .03": 0.290, "t-SVGP 3E1M .030 .03": 0.260,
    "q-SVGP Adam": 0.600,
}  # fmt: skip


def judged(number: int, folder: Path, *changes: Levels, **more: object) -> Judged:
    """A claim on records whose NLPDs are those that are printed, but for some."""
    levels = {name: value for each in (AS_PRINTED, *changes) for name, value in each.items()}
    plant_choice(folder)
    plant(folder, "paper", levels, **more)  # type: ignore[arg-type]
    return only(number, folder)


def only(number: int, folder: Path) -> Judged:
    """A claim on the records of a folder."""
    (one,) = judge(PAPER, [x for x in PAPER.claims if x.id == f"adam2021-{number}"], folder)
    return one


def outcomes(one: Judged, part: int = 0) -> dict[str, str]:
    return {effect.of: effect.outcome for effect in one.parts[part].judgement.effects}


def test_every_printed_figure_is_a_part_of_the_claim_with_its_number() -> None:
    (claim,) = (claim for claim in PAPER.claims if claim.id == "adam2021-17")
    parts = [part.model_dump() for part in claim.parts]
    found = [(part["method"], f"{part['printed']:.3f}", f"{part['spread']:.3f}") for part in parts]
    assert found == [(x.setting, x.value, x.spread) for x in PRINTED if x.value]
    assert {part["gap"] for part in parts} == {0.013}


def test_the_numbers_as_printed_are_reproduced_row_by_row(tmp_path: Path) -> None:
    one = judged(17, tmp_path)
    assert (one.grade, one.effect) == ("reproduced", "11 as printed")
    assert one.condition == "1 data set, 1 split, 5 starts, jax"
    assert [part.judgement.effects[0].note for part in one.parts] == ["on this split"] * 11
    assert one.parts[3].says == "q-SVGP, lrE=? lrM=.10 E=3 M=1 (q-SVGP 3E1M .030 .10)"
    assert len(one.records) == 11 * 5


def test_a_row_that_is_off_makes_the_numbers_partly_so_and_is_named(tmp_path: Path) -> None:
    one = judged(17, tmp_path, {"t-SVGP 4E1M .030 .03": 0.260})
    assert (one.grade, one.effect) == ("partly", "10 as printed, 1 not as printed")
    (off,) = (part for part in one.parts if part.grade == "not reproduced")
    assert off.says == "t-SVGP, lrE=.030 lrM=.03 E=4 M=1 (t-SVGP 4E1M .030 .03)"


def test_other_numbers_are_not_reproduced(tmp_path: Path) -> None:
    assert judged(17, tmp_path, dict.fromkeys(AS_PRINTED, 0.15)).grade == "not reproduced"


def test_a_failed_cell_leaves_its_number_undecided(tmp_path: Path) -> None:
    one = judged(17, tmp_path, fails=["t-SVGP 4E1M .030 .03"])
    assert (one.grade, one.parts[-1].grade) == ("undecided", "undecided")


@pytest.mark.parametrize("status", ["crashed", "error", "skipped"])
def test_a_cell_that_the_machine_ended_decides_nothing(tmp_path: Path, status: str) -> None:
    one = judged(17, tmp_path, fails=["t-SVGP 4E1M .030 .03"], status=status)
    assert (one.grade, one.records) == ("not run", ())
    assert one.condition == f"5 of 85 cells of adam2021-table1 ended {status}; run them again"


SIX = ["1E1M .05", "2E1M .10", "3E1M .10", "4E1M .03", "4E2M .03", "4E1M .03, lrE .030"]


def test_t_never_worse_is_a_setting_each_and_one_rule_over_six(tmp_path: Path) -> None:
    one = judged(18, tmp_path)
    assert list(outcomes(one)) == SIX
    assert outcomes(one)["3E1M .10"] == outcomes(one)["4E1M .03, lrE .030"] == "undecided"
    assert one.grade == "reproduced"  # equal on four
    assert len(one.records) == 6 * 2 * 5


@pytest.mark.parametrize(
    ("t", "verdict", "outcome"),
    [
        ({"t-SVGP": 0.2}, "reproduced", "better"),
        ({"t-SVGP": 0.5}, "not reproduced", "worse"),
        ({"t-SVGP 4E2M": 0.4}, "partly", "equal"),
    ],
)
def test_t_never_worse_comes_out_each_way(
    tmp_path: Path, t: Levels, verdict: str, outcome: str
) -> None:
    levels = {"t-SVGP": 0.3, "q-SVGP": 0.3, **t}
    plant_choice(tmp_path)
    plant(tmp_path, "paper", levels)
    one = only(18, tmp_path)
    assert one.grade == verdict
    assert outcomes(one)["1E1M .05"] == outcome


def test_more_e_steps_pay_at_equal_m_steps_and_at_equal_time(tmp_path: Path) -> None:
    one = judged(19, tmp_path)
    assert one.grade == "reproduced"
    assert outcomes(one) == {f"{k}E1M against 1E1M": "better" for k in (2, 3, 4)}
    assert list(outcomes(one, 1)) == ["750 of 2E1M", "500 of 3E1M", "500 of 4E1M"]
    assert len(one.records) == 4 * 5


def test_more_e_steps_that_pay_at_equal_m_steps_alone_pay_partly(tmp_path: Path) -> None:
    """At iteration 500 the four E-steps have not yet come so far; at 750 two have."""
    one = judged(19, tmp_path, early={"": 0.45})
    assert [part.grade for part in one.parts] == ["reproduced", "not reproduced"]
    assert outcomes(one, 1) == {
        "750 of 2E1M": "better", "500 of 3E1M": "worse", "500 of 4E1M": "worse"
    }  # fmt: skip
    earlier = one.parts[1].judgement.effects[2]
    assert earlier.value == pytest.approx(0.330 - 0.45)
    assert one.grade == "partly"


def test_more_e_steps_that_do_not_pay_are_not_reproduced(tmp_path: Path) -> None:
    same = {f"t-SVGP {k}E1M .030 .03": 0.25 for k in (1, 2, 3, 4)}
    assert judged(19, tmp_path, same).grade == "not reproduced"


@pytest.mark.parametrize(
    ("adam", "verdict"), [(0.6, "reproduced"), (0.304, "not reproduced"), (0.1, "not reproduced")]
)
def test_natural_gradients_beat_adam_on_mnist_in_bound_and_density(
    tmp_path: Path, adam: float, verdict: str
) -> None:
    bounds = {"": -20_000.0, "q-SVGP Adam": -20_000.0 - 1e5 * (adam - 0.304)}
    one = judged(15, tmp_path, {"q-SVGP Adam": adam}, elbo=bounds)
    assert [part.grade for part in one.parts[4:]] == [verdict] * 4
    assert [part.judgement.effects[0].of for part in one.parts[4:]] == ["mnist"] * 4


def test_each_printed_figure_has_ours_beside_it_row_by_row(tmp_path: Path) -> None:
    cells = plant(tmp_path, "paper", AS_PRINTED)
    records = collect(tmp_path, TABLE1, cells).records
    rows = beside(PRINTED, records, [], TABLE1.methods)
    assert [row.printed for row in rows] == PRINTED
    for row in rows:
        if row.printed.value:
            assert row.difference == pytest.approx(0.0, abs=1e-12)
            assert (row.ours.n, row.ours.unit) == (5, "starts")
    text = as_text(rows).rows
    assert text[1][0] == "t-SVGP, lrE=.040 lrM=.05 E=1 M=1 (t-SVGP 1E1M .040 .05)"
    assert text[2][0] == "q-SVGP, lrE=? lrM=.10 E=2 M=1 (q-SVGP 2E1M .030 .10)"
    assert text[2][2:3] == text[3][2:3] == [""]  # no claim is asked for
    assert text[2][3:] == ["cannot be read", "0.288±0.002", "5 starts", "–"]


def test_the_verdict_beside_a_figure_is_that_on_it(tmp_path: Path) -> None:
    one = judged(17, tmp_path, {"t-SVGP 4E1M .030 .03": 0.260})
    records = collect(tmp_path, TABLE1, resolve(TABLE1, "paper")).records
    rows = beside(PRINTED, records, [one], TABLE1.methods)
    verdicts = ["reproduced"] * 2 + ["no figure"] + ["reproduced"] * 8 + ["not reproduced"]
    assert [row[2] for row in as_text(rows).rows] == [f"adam2021-17: {v}" for v in verdicts]


def test_all_methods_that_may_stand_for_a_row_stand_there_before_one_is_chosen(
    tmp_path: Path,
) -> None:
    cells = plant(tmp_path, "rates", {"": 0.3, "t-SVGP 2E1M .040": 0.4})
    records = collect(tmp_path, TABLE1, cells).records
    rows = beside(PRINTED, records, [], TABLE1.methods)
    second = [row for row in rows if row.printed.setting == "t-SVGP, lrE=? lrM=.10 E=2 M=1"]
    rates = [".030", ".035", ".040"]
    assert [row.stands for row in second] == [f"t-SVGP 2E1M {rate} .10" for rate in rates]
    assert [row.ours.mean for row in second] == pytest.approx([0.302, 0.302, 0.402])
    last = [row for row in rows if row.printed.setting == "t-SVGP, lrE=.030 lrM=.03 E=4 M=1"]
    assert [row.stands for row in last] == ["t-SVGP 4E1M .030 .03"]


def test_rates_alone_decide_nothing(tmp_path: Path) -> None:
    plant(tmp_path, "rates", {"": 0.3})
    one = only(18, tmp_path)
    why = "73 of 85 cells of adam2021-table1 have not run"
    assert (one.grade, one.condition) == ("not run", why)


def test_nothing_is_decided_at_rates_that_the_records_do_not_choose(tmp_path: Path) -> None:
    plant(tmp_path, "paper", AS_PRINTED)
    assert only(18, tmp_path).condition == "14 of the cells that choose have not run"
    row = [x for x in TABLE1.labels if x.startswith("q-SVGP 2E1M") and x.endswith(".10")]
    named = next(label for label in row if label in (TABLE1.presets["paper"].methods or ()))
    plant_choice(tmp_path, [next(label for label in row if label != named)])
    one = only(18, tmp_path)
    assert one.grade == "not run"
    assert (
        one.condition == f"{named!r} is not what records choose (svgpbench choose adam2021-table1)"
    )
