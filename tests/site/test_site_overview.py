"""The overview's summaries: claims in short and by kind, methods, machines and dates."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from committed_records import RESULTS
from small_site import Made

from svgpbench.benchmarks.stability.records import read_stability
from svgpbench.methods.method import MethodInfo
from svgpbench.papers.grades import Grade
from svgpbench.results.store import records_in
from svgpbench.site.fields import Field
from svgpbench.site.overview import in_short, machine_table, method_table

INFO = MethodInfo({}, "M", "O(M)", "O(M)")


@pytest.mark.parametrize(
    ("grades", "sentence"),
    [
        (["holds"], "1 of 1 claim holds."),
        (["fails", "fails"], "0 of 2 claims hold; 2 fail."),
        (["holds", "holds, corrected"], "2 of 2 claims hold, 1 after a correction."),
        (
            ["holds, corrected", "open", "fails", "mixed", "mixed"],
            "1 of 5 claims holds, 1 after a correction; 2 are mixed, 1 fails, 1 is open.",
        ),
        (
            ["direction only", "not testable here", "not run", "not run"],
            "0 of 4 claims hold; 1 holds in direction only, 1 cannot be tested here, 2 have not run.",
        ),
    ],
)
def test_a_paper_in_short_counts_every_grade(grades: list[str], sentence: str) -> None:
    assert in_short(map(Grade, grades)) == sentence


def test_the_overview_has_each_paper_in_short(made: Made) -> None:
    text = (made.folder / "index.html").read_text("utf-8")
    said = re.findall(r'class="in-short">([^<]+)<', text)
    assert said == [in_short(one.grade for _, one in made.judged if not one.claim.ours)]


def test_findings_of_ours_are_no_claims_of_the_papers(made: Made) -> None:
    text = (made.folder / "index.html").read_text("utf-8")
    (said,) = re.findall(r"(\d+) claims of the papers, each tested", text)
    ours = [one for _, one in made.judged if one.claim.ours]
    assert ours and int(said) == len(made.judged) - len(ours)


def test_the_overview_counts_grades_by_kind(made: Made) -> None:
    text = (made.folder / "index.html").read_text("utf-8")
    rows = re.findall(r"<dt>(\w+)<br>.*?<dd class=\"tally\">(.*?)</dd>", text, re.DOTALL)
    assert [kind for kind, _ in rows] == ["theory", "experiments", "speed"]
    for kind, row in rows:
        counts = Counter(str(one.grade) for _, one in made.judged if one.kind == kind)
        found = re.findall(r'<span>(\d+) <span class="badge [a-z-]+">([^<]+)<', row)
        assert {grade: int(count) for count, grade in found} == counts


def rows_by_method(field: Field, names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    table = method_table(dict.fromkeys(names, INFO), [field], [])
    return {row[0]: dict(zip(table.header, row, strict=True)) for row in table.texts}


def test_a_method_is_best_where_its_rank_is_the_lowest(field: Field) -> None:
    rows = rows_by_method(field, ("t-svgp", "q-svgp", "gpr"))
    assert rows["t-svgp"]["best average rank in"] == "adam2021-fig3 (ELBO, NLPD)"
    assert not rows["q-svgp"]["best average rank in"]
    better, worse = rows["t-svgp"]["better : worse"].split(" : ")
    assert int(better) > int(worse)
    assert rows["q-svgp"]["better : worse"] == f"{worse} : {better}"  # there are no others
    assert rows["gpr"]["better : worse"] == "–"


def test_methods_that_share_the_lowest_rank_are_all_best(field: Field) -> None:
    alike = [r.model_copy(update={"metrics": dict.fromkeys(r.metrics, 1.0)}) for r in field.records]
    tied = Field(replace(field.collected, records=tuple(alike)))
    names = ("t-svgp", "q-svgp")
    best = [row["best average rank in"] for row in rows_by_method(tied, names).values()]
    assert best == ["adam2021-fig3 (ELBO, NLPD)"] * 2


def test_an_experiment_of_one_method_makes_it_best_of_nothing(field: Field) -> None:
    records = [r for r in field.records if r.config.method.name == "q-svgp"]
    alone = Field(replace(field.collected, records=tuple(records)))
    row = rows_by_method(alone, ("q-svgp",))["q-svgp"]
    assert alone.ranks
    assert (row["best average rank in"], row["better : worse"]) == ("", "–")


def test_the_share_of_failed_runs_and_the_seconds_are_those_of_the_records(field: Field) -> None:
    records = [r for r in field.records if r.config.method.name == "t-svgp"][:4]
    timed = [
        r.model_copy(
            update={"timing": {**r.timing, "train_s": s * float(r.data["n_train"]) / 1000}}
        )
        for r, s in zip(records, (1.0, 2.0, 3.0, 90.0), strict=True)
    ]
    timed[3] = timed[3].model_copy(update={"status": "not_pd"})
    few = Field(replace(field.collected, records=tuple(timed)))
    rows = rows_by_method(few, ("t-svgp", "q-vgp"))
    assert rows["t-svgp"]["failed runs"] == "25 % of 4: 1 not_pd"
    assert rows["t-svgp"]["seconds per 1,000 rows"] == "2"
    assert (rows["q-vgp"]["failed runs"], rows["q-vgp"]["seconds per 1,000 rows"]) == ("", "")
    dead = tuple(r.model_copy(update={"status": "not_pd"}) for r in records)
    rows = rows_by_method(Field(replace(field.collected, records=dead)), ("t-svgp",))
    assert rows["t-svgp"]["failed runs"] == "100 % of 4: 4 not_pd"


def test_the_stability_of_a_method_leaves_out_runs_without_a_verdict() -> None:
    found = [
        x
        for x in read_stability(RESULTS / "survival").values()
        if (x.run.library, x.run.method) == ("svgpbench", "t-svgp")
    ][:4]
    statuses = ("ok", "diverged", "not_pd", "timeout")
    ended = [x.model_copy(update={"status": s}) for x, s in zip(found, statuses, strict=True)]
    table = method_table({"t-svgp": INFO, "gpr": INFO}, [], ended)
    assert [row[-1] for row in table.texts] == ["2 of 3", "–"]


def test_the_overview_has_every_machine_with_number_and_dates_of_its_records(made: Made) -> None:
    records = records_in(made.results).records
    table = machine_table(records)
    days = [f"{r.started:%Y-%m-%d}" for r in records if r.environment]
    counts, firsts, lasts = zip(*(row[-3:] for row in table.rows), strict=True)
    assert (sum(counts), min(firsts), max(lasts)) == (len(days), min(days), max(days))
    text = (made.folder / "index.html").read_text("utf-8")
    _, _, section = text.partition('id="machines"')
    assert all(cell in section for row in table.texts for cell in row)
