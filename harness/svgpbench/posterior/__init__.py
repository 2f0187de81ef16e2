"""A fit of one model to one table in a separate process, and the posterior that it returns."""

from svgpbench.posterior.evidence_bounds import evidence_bounds
from svgpbench.posterior.exchanged import export_posterior, import_posterior
from svgpbench.posterior.fit import fit
from svgpbench.posterior.inducing_counts import compare_inducing_counts
from svgpbench.posterior.posterior import Posterior
from svgpbench.posterior.saved import load_posterior, save_posterior

__all__ = [
    "Posterior",
    "compare_inducing_counts",
    "evidence_bounds",
    "export_posterior",
    "fit",
    "import_posterior",
    "load_posterior",
    "save_posterior",
]
