"""A table of texts in Markdown and LaTeX: no sign of a cell is taken for one of the format."""

from __future__ import annotations

import pytest

from svgpbench.output.table import Table, columns
from svgpbench.output.table_formats import latex, latex_text, markdown

TABLE = Table(
    columns(["method"], ("n", "ELBO")), [("|γ| = 5", "3", "-1.5±0.2"), ("a_b", "2", None)]
)


def test_markdown_keeps_bars_within_their_cells() -> None:
    assert markdown(TABLE).splitlines() == [
        "| method | n | ELBO |",
        "| --- | ---: | ---: |",
        r"| \|γ\| = 5 | 3 | -1.5±0.2 |",
        "| a_b | 2 | – |",
    ]


def test_latex_has_the_rules_of_booktabs_between_header_and_rows() -> None:
    assert latex(TABLE, "5 % of it.").splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{5 \% of it.}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"method & n & ELBO \\",
        r"\midrule",
        r"$|$$\gamma$$|$ = 5 & 3 & $-$1.5$\pm$0.2 \\",
        r"a\_b & 2 & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (r"50 % & #1 {a_b} $x", r"50 \% \& \#1 \{a\_b\} \$x"),
        (r"\y ~^", r"\textbackslash{}y \textasciitilde{}\textasciicircum{}"),
        ("t-SVGP, -1 and 3e-04", "t-SVGP, $-$1 and 3e-04"),
        ("Λ λ Δ", r"$\Lambda$ $\lambda$ $\Delta$"),
        ("KUKA₁, 10²", "KUKA$_1$, 10$^2$"),
        ("mine™", r"mine$^{\mathrm{TM}}$"),
        ("M ≤ 8 × 2", r"M $\leq$ 8 $\times$ 2"),
        ("Zürich", "Zürich"),
    ],
)  # fmt: skip
def test_signs_are_printed_as_they_stand(text: str, printed: str) -> None:
    assert latex_text(text) == printed
