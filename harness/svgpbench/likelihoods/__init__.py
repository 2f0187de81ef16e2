"""Likelihoods p(y | f): expectations V, their derivatives α and β without autodiff, predictions."""

from svgpbench.likelihoods.bernoulli import BernoulliLogit, BernoulliProbit
from svgpbench.likelihoods.gaussian import GaussianLikelihood, GaussianParameters
from svgpbench.likelihoods.likelihood import Conditional, Likelihood, NoParameters
from svgpbench.likelihoods.registry import LIKELIHOODS, build_likelihood

__all__ = [
    "LIKELIHOODS",
    "BernoulliLogit",
    "BernoulliProbit",
    "Conditional",
    "GaussianLikelihood",
    "GaussianParameters",
    "Likelihood",
    "NoParameters",
    "build_likelihood",
]
