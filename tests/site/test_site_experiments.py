"""The page of an experiment has the best first, and the standings of its methods are those of the records."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

from hand_records import cell, collected, record
from small_site import Made

from svgpbench.output.result_table import Finals
from svgpbench.site.downloads import Downloads
from svgpbench.site.experiments import experiment_facts
from svgpbench.site.fields import Field


def page_of(made: Made, name: str) -> str:
    text = (made.folder / "experiments" / f"{name}.html").read_text("utf-8")
    return html.unescape(text)


def test_a_page_says_who_leads_each_score_with_the_interval_of_the_rank(
    made: Made, field: Field
) -> None:
    said = re.findall(r'class="leader">([^<]+)<', page_of(made, "adam2021-fig3"))
    assert len(said) == len(field.ranks) > 1
    for sentence, (score, ranks) in zip(said, field.ranks.items(), strict=True):
        first = min(ranks.by_method, key=lambda rank: rank.mean)
        assert f"{first.method}, {first.text}" in sentence, score
        assert f"among {len(field.methods)} methods on 6 data sets." in sentence


def test_the_best_of_a_data_set_is_its_first_row(made: Made, field: Field) -> None:
    frame = Finals().build(field.collected).frame
    *results, _ = Finals(sorted_by="nlpd").build(field.collected).tables  # the last is of ranks
    assert len(results) == 2  # regression and classification
    shown = [dict(zip(x.header, row, strict=True)) for x in results for row in x.texts]
    for data in field.data:
        rows = frame[(frame["data"] == data) & (frame["backend"] == field.backend)]
        rows = rows[rows["ok"] == rows["cells"]]
        first = next(row for row in shown if row["data set"] == data)
        assert first["method"] == rows.loc[rows["nlpd_mean"].idxmin(), "method"]
    assert all(
        f'<th scope="row">{row["data set"]}</th>' in page_of(made, "adam2021-fig3") for row in shown
    )


def test_experiments_without_ranks_or_traces_say_so(tmp_path: Path) -> None:
    bare = Field(collected(record(cell(method="A"), -1.0), record(cell(method="B"), -2.0)))
    (facts,) = experiment_facts([bare], tmp_path, Downloads(tmp_path))
    assert facts.leaders == (
        "No average rank: it takes 5 data sets. The table has the best method of each first.",
    )
    assert (facts.picture, facts.caption) == ("", "No record has a trace of the bound or of NLPD.")
    alone = Field(collected(record(cell(), -1.0)))
    (facts,) = experiment_facts([alone], tmp_path, Downloads(tmp_path))
    assert facts.leaders == ()


def test_no_picture_has_more_curves_than_can_be_told_apart(tmp_path: Path) -> None:
    looks = {"iteration": [1, 2], "elbo": [-2.0, -1.0]}
    many = [record(cell(method=f"M{k}"), -1.0, trace=looks) for k in range(17)]
    fields = [Field(collected(*many)), Field(collected(*many[1:]))]
    facts, fewer = experiment_facts(fields, tmp_path, Downloads(tmp_path))
    said = "The curves of 17 methods are not drawn: the tables have them all."
    assert (facts.picture, facts.caption) == ("", said)
    assert (tmp_path / fewer.picture).is_file()


def test_a_standing_names_who_is_better_and_where(field: Field) -> None:
    (mine,) = [one for one in field.summaries("t-SVGP") if one.score == "NLPD"]
    assert (mine.data_sets, mine.methods) == (6, len(field.methods))
    beaten = [text.partition(": ")[0] for text in mine.wins if "q-SVGP Adam" in text]
    # Adam at the natural gradient's rate takes one step of rate 1 where there is Gaussian noise
    assert beaten == ["airfoil", "boston:no-rad", "concrete:5"]
    (theirs,) = [one for one in field.summaries("q-SVGP Adam") if one.score == "NLPD"]
    assert [text.partition(": ")[0] for text in theirs.fails if "t-SVGP" in text] == beaten
    assert not [text for text in theirs.wins if "t-SVGP" in text]


def test_a_difference_is_the_same_from_either_side(field: Field) -> None:
    turned = {"better": "worse", "worse": "better", "equal": "equal", "undecided": "undecided"}
    seen = set()
    for pairs in field.outcomes.values():
        for (first, second), outcomes in pairs.items():
            seen |= set(map(str, outcomes.values()))
            assert {d: turned[o] for d, o in outcomes.items()} == dict(pairs[second, first])
    assert seen == set(turned)


def test_two_methods_have_no_outcome_where_one_of_them_did_not_run(field: Field) -> None:
    there, gone, data = *field.methods[:2], field.data[0]
    kept = [
        record
        for record in field.records
        if (record.config.method.title, record.config.data.title) != (gone, data)
    ]
    fewer = Field(replace(field.collected, records=tuple(kept)))
    assert data in field.outcomes["nlpd"][there, gone]
    for score, pairs in field.outcomes.items():
        mine = fewer.outcomes[score]
        assert mine[there, gone] == {k: v for k, v in pairs[there, gone].items() if k != data}
