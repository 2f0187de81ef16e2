"""The table of accuracy against compute as a reader sees it."""

from __future__ import annotations

from hand_records import record
from test_pareto import table, timed, with_options

from svgpbench.output.number_formats import scaled


def test_each_number_of_a_row_stands_under_its_own_heading() -> None:
    """Of two methods with the same scores, one takes more FLOPs and the other more seconds."""
    options = {"tied": ({"tying": "tied-projected"}, 3.0), "untied": ({"tying": "untied"}, 2.0)}
    built = table(
        *(
            timed(record(with_options(name, of, fold), -1.0, nlpd=0.4), seconds)
            for name, (of, seconds) in options.items()
            for fold in range(5)
        )
    )
    by_flops = built.frame[built.frame["cost"] == "flops"]
    flops = [scaled(value) for value in by_flops["value"]]
    assert flops[0] != flops[1]
    (text,) = built.tables
    assert text.header == [
        *("data set", "method", "n", "NLPD (test)"),
        *("FLOPs", "seconds", "at its FLOPs", "at its seconds"),
    ]
    assert text.texts == [
        ["airfoil", "tied", "5", "0.4000±0", flops[0], "3", "front", "dominated: untied"],
        ["airfoil", "untied", "5", "0.4000±0", flops[1], "2", "dominated: tied", "front"],
    ]
