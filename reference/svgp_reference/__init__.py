"""Reference numbers for sparse variational Gaussian processes (SVGP).

A problem is one model at one q(u), with its data. Its answers are the bound, predictions, gradients and
natural-gradient steps, computed with 80 digits by one program and again in float64 by another.

>>> import svgp_reference
>>> problem = svgp_reference.load("gaussian-se-whitened")
>>> problem.X.shape, problem.Z.shape, problem.likelihood
((12, 2), (5, 2), 'gaussian')
>>> round(float(problem.answers["bound"]), 6)
-44.961196

`pytest --pyargs svgp_reference --adapter FILE` compares a library with all of them.
"""

from svgp_reference.problem import Problem, load, names

__all__ = ["Problem", "load", "names"]
__version__ = "0.1.0"
