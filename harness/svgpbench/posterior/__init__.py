"""One model on one table: a fit in a process of its own, and the posterior that it leaves."""

from svgpbench.posterior.exchanged import export_posterior, import_posterior
from svgpbench.posterior.fit import fit
from svgpbench.posterior.kept import load_posterior, save_posterior
from svgpbench.posterior.posterior import Posterior

__all__ = [
    "Posterior",
    "export_posterior",
    "fit",
    "import_posterior",
    "load_posterior",
    "save_posterior",
]
