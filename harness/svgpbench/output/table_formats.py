"""Tables as Markdown and LaTeX."""

from __future__ import annotations

import re
import unicodedata

from svgpbench.output.table import Table

LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"±": r"$\pm$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$"},
    **{"∞": r"$\infty$", "·": r"$\cdot$", "†": r"$\dagger$", "−": "$-$", "–": "--"},
    # as text in LaTeX's default encoding, OT1, these print as ¡, ¿ and an em dash
    **{char: f"${char}$" for char in "<>|"},
}


def markdown(table: Table) -> str:
    """Return a pipe table with right-aligned numbers."""
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    rows = [list(map(_markdown_text, row)) for row in (table.header, *table.texts)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


def _markdown_text(text: str) -> str:
    """Escape what would end a cell or begin a tag of HTML."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text.replace("|", r"\|"))


def latex(table: Table, caption: str) -> str:
    r"""Return a `table` with its caption, for a document that has `\usepackage{booktabs}`."""
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    header, *rows = (
        " & ".join(map(latex_text, row)) + r" \\" for row in (table.header, *table.texts)
    )
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        *(r"\toprule", header, r"\midrule", *rows, r"\bottomrule"),
        *(r"\end{tabular}", r"\end{table}"),
    ]
    return "\n".join(lines)


def latex_text(text: str) -> str:
    """Return LaTeX that prints the text: special signs escaped, and Greek, indices and minus as math."""
    signs = re.sub(r"(?<!\w)-(?=[\d.])", "−", text)  # not in names or exponents
    return "".join(map(_latex_character, signs))


def _latex_character(char: str) -> str:
    """Return LaTeX that prints one character."""
    if char in LATEX or char.isascii():
        return LATEX.get(char, char)
    if greek := re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(char, "")):
        name = greek[2].lower().replace("lamda", "lambda")  # as Unicode spells it
        return f"$\\{name if greek[1] == 'SMALL' else name.capitalize()}$"
    kind, _, codes = unicodedata.decomposition(char).partition(" ")
    if kind in ("<sub>", "<super>"):
        letters = "".join(chr(int(code, 16)) for code in codes.split())  # two for ™
        index = letters if len(letters) == 1 else rf"{{\mathrm{{{letters}}}}}"
        return f"${'_' if kind == '<sub>' else '^'}{index}$"
    return char
