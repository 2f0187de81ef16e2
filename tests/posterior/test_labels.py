"""Labels come back as they were given, in value and dtype, also from a file; `score` takes them too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_fits import QUICK

from svgpbench.api import Posterior, UserError, fit, load_posterior, save_posterior
from svgpbench.config import KernelConfig, LikelihoodConfig, MethodConfig
from svgpbench.posterior.labels import Classes, classes_of
from svgpbench.posterior.posterior import TrainingFacts
from svgpbench.sklearn import SVGPClassifier

pytestmark = pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")

PATTERN = np.arange(40) % 2 == 1
X = np.c_[np.where(PATTERN, 1.0, -1.0), np.linspace(-1.0, 1.0, 40)]
LEVELS = pd.CategoricalDtype(["low", "none", "high"], ordered=True)


def pick(zero: Any, one: Any, dtype: Any = None) -> Any:
    return np.where(PATTERN, np.array(one, dtype), np.array(zero, dtype))


GIVEN: dict[str, tuple[Any, list[str]]] = {
    "words": (pick("no", "yes"), ["no", "yes"]),
    "0/1": (pick(0, 1), ["0", "1"]),
    "uint8": (pick(3, 200, np.uint8), ["3", "200"]),
    "big integers": (pick(2**53, 2**53 + 1), [str(2**53), str(2**53 + 1)]),
    "truth": (PATTERN, ["False", "True"]),
    "-1/1": (pick(-1.0, 1.0), ["-1", "1"]),
    "float32": (pick(0.1, 2.5, np.float32), ["0.1", "2.5"]),
    "float16": (pick(0.5, 2.5, np.float16), ["0.5", "2.5"]),
    "big-endian": (pick(9, 10, ">i4"), ["9", "10"]),
    "leading zeros": (pick("01", "02"), ["01", "02"]),
    "text with a point": (pick("1.0", "2.0"), ["1.0", "2.0"]),
    "text numbers": (pick("9", "10"), ["9", "10"]),
    "words for nothing": (pick("NA", "None"), ["NA", "None"]),
    "nan and inf": (pick("nan", "inf"), ["inf", "nan"]),
    "blank": (pick("", " a "), ["", " a "]),
    "formula": (pick("=1+1", "$x$"), ["$x$", "=1+1"]),
    "objects": (pick("a", "b").astype(object), ["a", "b"]),
    "mixed objects": (np.array(["b" if x else 1 for x in PATTERN], object), ["1", "b"]),
    "list": (["b" if x else "a" for x in PATTERN], ["a", "b"]),
    "mixed list": (["b" if x else 7 for x in PATTERN], ["7", "b"]),
    "list of truth": ([bool(x) for x in PATTERN], ["False", "True"]),
    "category": (pd.Categorical(pick("b", "a")), ["a", "b"]),
    "ordered": (pd.Series(pick("low", "high")).astype(LEVELS), ["low", "high"]),
    "category of numbers": (pd.Series(pick(7, 5)).astype("category"), ["5", "7"]),
    "string": (pd.Series(pick("a", "b"), dtype="string"), ["a", "b"]),
    "string[python]": (pd.Series(pick("a", "b"), dtype="string[python]"), ["a", "b"]),
    "boolean": (pd.Series(PATTERN, dtype="boolean"), ["False", "True"]),
    "Int64": (pd.Series(pick(4, 6), dtype="Int64"), ["4", "6"]),
    "Float64": (pd.Series(pick(0.5, 6.0), dtype="Float64"), ["0.5", "6"]),
    "arrow": (pd.Series(pick(4, 6), dtype="int64[pyarrow]"), ["4", "6"]),
    "named, with an index": (pd.Series(pick(4, 6), index=range(90, 50, -1), name="y"), ["4", "6"]),
}


def cells(column: Any) -> list[tuple[str, Any]]:
    """Type and value of each label, with NumPy's scalars as Python's."""
    plain = [x.item() if isinstance(x, np.generic) else x for x in column]
    return [(type(x).__name__.replace("str_", "str"), x) for x in plain]


@pytest.mark.parametrize("kind", GIVEN)
def test_labels_and_their_dtype_come_back_also_from_json(kind: str) -> None:
    given, names = GIVEN[kind]
    classes, numbers = classes_of(given, 40)
    assert list(classes.names) == names
    for known in (classes, Classes.model_validate_json(classes.model_dump_json())):
        back = known.column(numbers.astype(int))
        assert cells(back) == cells(given)
        if (
            getattr(given, "dtype", np.dtype("U1")) != back.dtype
        ):  # NumPy's text, a list, big-endian
            assert kind == "big-endian" or back.dtype == pd.Series(list(given)).dtype
        assert known.numbers(given, 40).tolist() == numbers.tolist()


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        ("0/1", [pick("0", "1"), pick(0.0, 1.0), PATTERN, pick("0.0", "1e0"), pick("00", "01")]),
        ("truth", [pick(0, 1), pick("False", "True"), pd.Series(PATTERN, dtype="boolean")]),
        ("leading zeros", [pick(1, 2), pick("1", "2"), pd.Categorical(pick("01", "02"))]),
        ("-1/1", [pick(-1, 1), pick("-1", "+1"), pd.Series(pick(-1, 1), dtype="Int64")]),
        ("words", [pick("no", "yes").astype(object), list(pick("no", "yes"))]),
        ("float32", [pick("0.1", "2.5"), pick(0.1, 2.5, np.float32)]),
    ],
)
def test_a_score_takes_any_spelling_of_the_labels(kind: str, spellings: list[Any]) -> None:
    classes, numbers = classes_of(GIVEN[kind][0], 40)
    for spelling in spellings:
        assert classes.numbers(spelling, 40).tolist() == numbers.tolist()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pick("1", "1.0"), "y holds '1' and '1.0', two spellings of one number; write it in one"),
        (pick("1", "01"), "y holds '1' and '01', two spellings of one number"),
        (["1" if x else 1 for x in PATTERN], "y holds 1 and '1', two spellings of one number"),
        (["True" if x else True for x in PATTERN], "labels that read alike: True, True"),
        (pick("a", "a"), "y holds 1 class, a; give two or more"),
        ([None, *pick("a", "b")[1:]], "y[0] is missing; fill in or remove that row"),
        ([*pick("a", "b")[1:], pd.NA], "y[39] is missing"),
        ([*pick(0.0, 1.0)[1:], np.nan], "y[39] is missing"),
        (pd.Series(pick("a", "b")).where(~PATTERN), "y[1] is missing"),
        (pd.Series(pick(0.0, 1.0)).mask(PATTERN).astype("Int64"), "y[1] is missing"),
        (pick(0.0, np.inf), "y[1] is inf (float); labels are text, finite numbers or truth"),
        (pick("2020-01-01", "2021-01-01", "datetime64[s]"), "labels are text, finite numbers"),
        (pick(b"a", b"b"), "y[0] is b'a' (bytes); labels are text"),
        (pick(1j, 2j), "(complex); labels are text"),
        (
            pd.cut(X[:, 1], 2),
            "y[0] is Interval(-1.002, 0.0, closed='right') (Interval); labels are",
        ),
        ([{}, *pick("a", "b")[1:]], "y holds no labels"),
        (pick("a", "b\nc"), r"y holds the label 'b\nc', with a control character; rename it"),
        (pick("a", "b")[:, None], "y has shape (40, 1) for 40 rows of X; give [n]"),
        (np.ma.masked_array(pick(0, 1), mask=PATTERN), "y[1] is masked"),
        (X[:, 1], "y holds 40 distinct numbers in 40 rows, such as -1.0: these are no labels"),
    ],
)
def test_what_is_no_label_is_refused_in_a_line(given: Any, words: str) -> None:
    with pytest.raises(UserError) as error:
        classes_of(given, 40)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_label_that_was_never_given_is_refused() -> None:
    classes, _ = classes_of(pick("ash", "oak"), 40)
    with pytest.raises(UserError, match=r"^y\[1\] is 'elm', which is none of ash, oak$"):
        classes.numbers(["ash", "elm"], 2)
    with pytest.raises(UserError, match=r"^y\[0\] is 2, which is none of 0, 1$"):
        classes_of(pick(0, 1), 40)[0].numbers(np.array([2, 1]), 2)


@pytest.mark.parametrize("kind", ["leading zeros", "truth", "ordered", "objects"])
def test_a_fit_predicts_and_scores_what_it_was_given(kind: str, tmp_path: Path) -> None:
    given, names = GIVEN[kind]
    posterior = fit(X, given, likelihood="bernoulli-probit", inducing=6, training=QUICK)
    again = load_posterior(save_posterior(posterior, tmp_path / "one.npz"))
    for known in (posterior, again):
        predicted = known.predict(X)
        assert list(predicted) == ["label", *(f"p({name})" for name in names)]
        assert cells(predicted["label"]) == cells(given)
        assert (predicted["label"].to_numpy() == np.asarray(given)).all()
        assert known.score(X, given)["error_rate"] == 0.0
        assert predicted["label"].dtype == known.classes.column(np.array([0])).dtype
    assert again.facts == posterior.facts


def without_arrays(facts: TrainingFacts) -> Posterior:
    return Posterior(facts, None, None, np.zeros(1), np.ones(1))  # type: ignore[arg-type]


def test_a_file_of_before_has_labels_that_are_their_names() -> None:
    old = {
        "kernel": KernelConfig().model_dump(),
        "likelihood": LikelihoodConfig(name="bernoulli-probit").model_dump(),
        "method": MethodConfig(name="t-svgp").model_dump(),
        "jitter": 1e-6,
        "seed": 0,
        "n": 40,
        "features": ["a"],
        "class_labels": ["0", "1"],
    }
    facts = TrainingFacts.model_validate_json(json.dumps(old))
    classes = without_arrays(facts).classes
    assert list(classes.column(np.array([1, 0]))) == ["1", "0"]
    assert classes.numbers(PATTERN, 40).tolist() == PATTERN.astype(float).tolist()
    for damage in (
        {"labels": [0, 1], "dtype": "code"},
        {"labels": [0, 2], "dtype": "int64"},  # not the names beside them
        {"labels": ["a", "b"], "dtype": "int64"},
        {"labels": ["0", "1"], "dtype": "str", "categories": ["0"]},
    ):
        with pytest.raises(ValueError, match=r"agree|dtype|categories"):
            TrainingFacts.model_validate_json(json.dumps(old | {"classes": damage}))


@pytest.mark.parametrize("kind", ["text numbers", "ordered", "truth", "0/1"])
def test_an_estimators_posterior_speaks_of_the_same_labels(kind: str) -> None:
    given, names = GIVEN[kind]
    model = SVGPClassifier(inducing=6, training=QUICK).fit(X, given)
    assert list(model.posterior_.facts.class_labels or ()) == names
    assert (model.predict(X) == np.asarray(given)).all() and model.score(X, given) == 1.0
    assert (model.posterior_.predict(X)["label"].to_numpy() == np.asarray(given)).all()
    assert model.posterior_.score(X, given)["error_rate"] == 0.0
    p, shown = model.predict_proba(X), model.posterior_.predict(X)
    for column, label in enumerate(model.classes_):
        assert p[:, column].tolist() == shown[f"p({label})"].to_list()
