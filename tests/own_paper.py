"""A fifth paper in a package of its own: an experiment that runs in seconds, printed figures, four claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np

PAPER = """
title = "Tides by Few Points"
authors = ["A. Writer", "B. Writer"]
year = 2030
venue = "Journal of Tides"
says = "Five points are better than two."

[[artefacts]]
id = "fig1"
what = "NLPD against iterations"
settings = "three folds"
evidence = { kind = "experiment", experiment = "fig1.toml", preset = "paper" }
smaller = "three folds in place of ten"
printed = "fig1.csv"

[[artefacts]]
id = "inset"
what = "a corner of Figure 1"
settings = "one fold"
evidence = { kind = "experiment", experiment = "fig1.toml", preset = "quick" }

[[artefacts]]
id = "fig2"
what = "a photograph"
settings = "none"
missing = "the sea"

[[artefacts]]
id = "algebra"
what = "identities"
settings = "none"
printed = "algebra.csv"

[artefacts.evidence]
kind = "computed"

[[artefacts.evidence.figures]]
name = "sums"
kind = "lines"
x = "n"
y = "total"
curve = "of"
x_label = "n"
y_label = "sum"
shows = "sums of the first n numbers."

[[artefacts.evidence.figures]]
name = "products"
kind = "lines"
x = "n"
y = "total"
x_label = "n"
y_label = "product"
shows = "nothing."

[[artefacts]]
id = "proof"
what = "a proof"
settings = "none"
evidence = { kind = "computed" }
"""

CLAIMS = """
[[claims]]
id = "tides2030-01"
title = "five points beat two"
where = "Figure 1"
kind = "compare"
fidelity = "as printed"
claim = "five points have a lower NLPD than two"
predicate = "lower on more than half of the data sets"
finding = "The NLPD is lower on {nlpd.held} of {nlpd.cases} data sets."
depends_on = "the data"
artefacts = ["fig1"]
[[claims.parts]]
core = true
key = "nlpd"
predicate = "ordering"
says = "lower NLPD"
artefact = "fig1"
metric = "nlpd"
methods = ["five", "two"]

[[claims]]
id = "tides2030-02"
title = "the NLPD as printed"
where = "Figure 1"
kind = "number"
fidelity = "as printed"
claim = "NLPD 9.5"
predicate = "the print lies in the interval"
finding = "The NLPD is {nlpd.value}."
depends_on = "the split"
artefacts = ["fig1"]
[[claims.parts]]
core = true
key = "nlpd"
predicate = "number"
says = "NLPD"
artefact = "fig1"
metric = "nlpd"
method = "five"
printed = 9.5
spread = 0.01
gap = 1e3

[[claims]]
id = "tides2030-03"
title = "one and one are two"
where = "Appendix"
kind = "exact"
fidelity = "algebra"
claim = "one and one are two"
predicate = "a residual of rounding"
finding = "The sum is right to {sum.value}."
depends_on = "nothing"
artefacts = ["algebra"]
parts = [{ core = true, key = "sum", predicate = "identity", says = "the sum", artefact = "algebra" }]

[[claims]]
id = "tides2030-04"
title = "the sea is blue"
where = "Figure 2"
kind = "picture"
fidelity = "as printed"
claim = "the sea is blue"
predicate = "by eye"
finding = "Nobody looked."
depends_on = "the weather"
artefacts = ["fig2"]
"""

PRINTED = """artefact,setting,metric,value,spread
fig1,five,nlpd,9.5,0.01
fig1,"two, tides",nmse,<1,
fig1,ten,nlpd,0.2,
"""

SUMS = """artefact,setting,metric,value,spread
algebra,three ones,sum,2,
algebra,three threes,sum,9,
"""

EXPERIMENT = """
name = "tides2030-fig1"
backends = ["numpy"]
split = { kind = "k-fold", folds = 3 }
training = { em_iterations = 3, m_steps = 2 }
inducing = { count = 5 }
methods = [
  { label = "five", name = "t-svgp" },
  { label = "two", name = "t-svgp", inducing = { count = 2 } },
]
figures = [
  { name = "progress", metrics = ["nlpd"] },
  { name = "errors", metrics = ["error_rate"] },
]
tables = [{ name = "scores", metrics = ["nlpd", "nmse"] }]

[presets.paper]
[presets.quick]
run_folds = [0]

[[problems]]
data = [{ name = "tides", path = "tides.csv", target = "height", task = "regression" }]
likelihood = { name = "gaussian", noise_variance = 0.1 }
"""

COMPUTED = """
import pandas as pd

def sums():
    return pd.DataFrame(
        {"of": ["ones"] * 3 + ["twos"] * 3, "n": [1, 2, 3] * 2, "total": [1, 2, 3, 2, 4, 6]}
    )

def printed():
    row = {"setting": "three ones", "metric": "sum", "value": float(sums()["total"][2])}
    return pd.DataFrame([{**row, "note": "counted"}, {**row, "note": "added"}])

CLAIMS = {
    "tides2030-03": lambda: pd.DataFrame({"check": ["sum"], "residual": [0.0]}),
    "algebra/sums": sums,
    "algebra/printed": printed,
}
"""

POINTS = """
[svgpbench.papers]
tides = tides_papers
[svgpbench.computed]
tides2030 = tides_papers:CLAIMS
"""


def write_package(site: Path) -> None:
    """The package `tides_papers`, as pip would install it into a folder of `sys.path`."""
    rng = np.random.default_rng(0)
    time = rng.uniform(-1.0, 1.0, 45)
    rows = [
        f"{t:.6f},{np.sin(6 * t) + 0.3 * e:.6f}"
        for t, e in zip(time, rng.normal(size=45), strict=True)
    ]
    files = {
        "tides_papers-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: tides-papers\nVersion: 1\n",
        "tides_papers-1.dist-info/entry_points.txt": POINTS,
        "tides_papers/__init__.py": COMPUTED,
        "tides_papers/tides2030/paper.toml": PAPER,
        "tides_papers/tides2030/claims.toml": CLAIMS,
        "tides_papers/tides2030/fig1.csv": PRINTED,
        "tides_papers/tides2030/algebra.csv": SUMS,
        "tides_papers/tides2030/fig1.toml": EXPERIMENT,
        "tides_papers/tides2030/tides.csv": "\n".join(["time,height", *rows, ""]),
    }
    for name, text in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
