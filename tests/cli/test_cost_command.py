"""`svgpbench cost`: a table, JSON, exponents and times; and the mistakes that it names in one line."""

from __future__ import annotations

import json

import pytest
from command_line import Cli

from svgpbench.checks.cases import build_model
from svgpbench.cost import Size, count
from svgpbench.methods import build_method

SIZES = ("--n", "10000000", "--M", "100000", "--D", "10", "--batch", "1000")


def test_the_table_says_what_was_counted(cli: Cli) -> None:
    outcome = cli("cost", "t-svgp", *SIZES)
    assert outcome.code == 0
    title, *rows = outcome.out.splitlines()
    assert (
        title == "t-svgp, gaussian, matern52, float64; n = 10000000, M = 100000, D = 10, b = 1000"
    )
    assert [row.split("  ")[0].strip() for row in rows] == [
        "step",
        "E-step from θ",
        "M-step",
        "prediction",
    ]
    # two Cholesky factors of 1e15/3, and 7/2 bM² = 3.5e13
    assert "702 T" in rows[1]


def test_a_likelihood_of_several_classes_has_ten_latents_or_as_many_as_are_asked_for(
    cli: Cli,
) -> None:
    ten, three = (
        cli("cost", "t-svgp", "--likelihood", "softmax", *SIZES, *more)
        for more in ((), ("--P", "3"))
    )
    assert ten.out.splitlines()[0].endswith("b = 1000, P = 10")
    two, four = (
        json.loads(cli("cost", "t-svgp", "--likelihood", "softmax", *SIZES, "--json", "--P", p).out)
        for p in ("2", "4")
    )
    more = four["e_step"]["flops"] - two["e_step"]["flops"]
    # K(Z, Z) is shared; a latent has a Cholesky of its own, 1e15/3, and 5/2 bM² = 2.5e13
    assert more == pytest.approx(2 * (1e15 / 3 + 2.5e13), rel=1e-3)
    assert three.out.splitlines()[0].endswith("P = 3")


def test_json_holds_the_counts(cli: Cli) -> None:
    content = json.loads(cli("cost", "t-svgp", "--option", "tying=untied", *SIZES, "--json").out)
    method = build_method("t-svgp", {"tying": "untied"})
    cost = count(method, build_model("gaussian", "matern52"), Size(10**7, 10**5, 10, 1000))
    assert content == {step: tally._asdict() for step, tally in cost._asdict().items()}


def test_options_sizes_likelihood_and_dtype_matter(cli: Cli) -> None:
    base = cli("cost", "q-svgp", "--json").out
    for changed in (
        ("--option", "whiten=false"),
        ("--option", "gradient=autodiff"),
        ("--n", "9999"),
        ("--M", "99"),
        ("--D", "9"),
        ("--batch", "100"),
        ("--likelihood", "bernoulli-logit"),
        ("--kernel", "se"),
        ("--dtype", "float32"),
    ):
        outcome = cli("cost", "q-svgp", *changed, "--json")
        assert outcome.code == 0, outcome.err
        assert outcome.out != base, changed


def test_times_are_those_of_arithmetic_or_of_memory(cli: Cli) -> None:
    def seconds(peak: str, bandwidth: str) -> tuple[float, dict[str, float]]:
        machine = ("--peak-flops", peak, "--bandwidth", bandwidth)
        row = json.loads(cli("cost", "t-svgp", *machine, "--json").out)["e_step"]
        return row["seconds"], row

    by_arithmetic, row = seconds("1e9", "1e30")
    assert by_arithmetic == pytest.approx(row["flops"] / 1e9)
    by_memory, row = seconds("1e30", "1e9")
    assert by_memory == pytest.approx(row["bytes"] / 1e9)
    machine = ("--peak-flops", "1e12", "--bandwidth", "1e11")
    assert "time, unfused" in cli("cost", "t-svgp", *machine).out


def test_exponents_at_the_sizes_given(cli: Cli) -> None:
    arguments = ("cost", "t-svgp", "--n", "100000000", "--M", "10000", "--exponents")
    row = json.loads(cli(*arguments, "--json").out)["e_step"]
    assert row["flops_exponents"]["n"] == pytest.approx(1.0, abs=0.01)
    assert row["flops_exponents"]["M"] == pytest.approx(2.0, abs=0.01)
    assert row["peak_bytes_exponents"]["M"] == pytest.approx(1.0, abs=0.01)
    assert "E-step from θ: FLOPs ∝ n^1.00 M^2.00, memory ∝ n^1.00 M^1.00" in cli(*arguments).out


def test_check_leaves_it_out_unless_asked() -> None:
    from svgpbench.backends import known_backends

    assert "counting" not in known_backends(None)
    assert "numpy" in known_backends(None)
