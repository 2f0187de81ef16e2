"""The numbers that the explorer chooses among are those of tables and traces."""

from __future__ import annotations

import base64
import gzip
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from small_site import Made

from svgpbench.experiments import load_experiment
from svgpbench.output.result_table import Finals
from svgpbench.results.collect import collect
from svgpbench.site.explorer import OUTCOMES
from svgpbench.site.fields import Field
from svgpbench.stats.effects import Outcome


@pytest.fixture(scope="module")
def explored(made: Made) -> dict[str, Any]:
    """Figure 3 as the page has it."""
    text = (made.folder / "explorer.html").read_text(encoding="utf-8")
    _, _, data = text.partition('<script type="application/gzip" id="data">')
    found = json.loads(gzip.decompress(base64.b64decode(data.partition("</script>")[0])))
    return next(one for one in found if one["name"] == "adam2021-fig3")


def group(explored: dict[str, Any], data: str, method: str, backend: str) -> dict[str, Any]:
    key = (
        explored["data"].index(data),
        explored["methods"].index(method),
        explored["backends"].index(backend),
    )
    return next(one for one in explored["groups"] if (one["d"], one["m"], one["b"]) == key)


def test_means_and_errors_at_the_end_are_those_of_the_table(
    explored: dict[str, Any], made: Made
) -> None:
    table = Finals().build(collect(made.results, load_experiment("adam2021-fig3")))
    names = [one["name"] for one in explored["metrics"]]
    compared = 0
    for row in table.frame.to_dict(orient="records"):
        mine = group(explored, row["data"], row["method"], row["backend"])
        for name in ("elbo", "nlpd"):
            mean, error = mine["end"][names.index(name)]
            assert mean == pytest.approx(row[f"{name}_mean"], rel=1e-7)
            if error is None:
                assert math.isnan(row[f"{name}_se"])
            else:
                # the page keeps three digits of an error
                assert error == pytest.approx(row[f"{name}_se"], rel=5e-3)
            compared += 1
    assert compared > 50


def test_equal_steps_are_means_of_the_trace(explored: dict[str, Any], field: Field) -> None:
    backend, data, method = field.backend, "airfoil", "t-SVGP"
    mine = group(explored, data, method, backend)
    names = [one["name"] for one in explored["metrics"]]
    records = [
        r
        for r in field.records
        if (r.config.data.title, r.config.method.title) == (data, method)
        and r.config.backend.title == backend
        and r.config.perturbation == 0
    ]
    for place, iteration in enumerate(explored["iterations"]):
        at = [r.trace["elbo"][r.trace["iteration"].index(iteration)] for r in records]
        shown = mine["steps"][names.index("elbo")][place][0]
        assert shown == pytest.approx(sum(at) / len(at), rel=1e-7)


def test_equal_time_takes_no_look_that_came_later(explored: dict[str, Any], field: Field) -> None:
    backend, data, method = field.backend, "airfoil", "t-SVGP"
    names = [one["name"] for one in explored["metrics"]]
    curve = group(explored, data, method, backend)["time"][names.index("elbo")]
    records = [
        r
        for r in field.records
        if (r.config.data.title, r.config.method.title) == (data, method)
        and r.config.backend.title == backend
        and r.config.perturbation == 0
    ]
    for seconds, (mean, _) in zip(explored["times"], curve, strict=True):
        looks = [
            [e for s, e in zip(r.trace["seconds"], r.trace["elbo"], strict=True) if s <= seconds]
            for r in records
        ]
        if all(looks):
            assert mean == pytest.approx(sum(one[-1] for one in looks) / len(looks), rel=1e-7)
        else:
            assert mean is None


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


def test_the_page_has_a_place_for_every_outcome_of_a_pair() -> None:
    assert OUTCOMES[:4] == ("better", "worse", "equal", "undecided")  # as explorer.js numbers them
    # the others answer questions that only claims ask, and are of data sets as units
    of_claims = {Outcome.no_worse, Outcome.no_better, Outcome.same, Outcome.unit}
    assert set(OUTCOMES) == set(Outcome) - of_claims


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
