"""Likelihoods p(y | f): expectations V, their derivatives α and β without autodiff, and predictions."""

from svgpbench.likelihoods.bernoulli import BernoulliLogit, BernoulliProbit
from svgpbench.likelihoods.gaussian import GaussianLikelihood, GaussianParameters
from svgpbench.likelihoods.heteroskedastic import HeteroskedasticGaussian
from svgpbench.likelihoods.likelihood import Conditional, Expectations, Likelihood, NoParameters
from svgpbench.likelihoods.poisson import Poisson
from svgpbench.likelihoods.registry import build_likelihood, likelihoods
from svgpbench.likelihoods.robust_max import RobustMax
from svgpbench.likelihoods.softmax import Softmax, WeightedNoise
from svgpbench.likelihoods.student_t import StudentT, StudentTParameters

__all__ = [
    "BernoulliLogit",
    "BernoulliProbit",
    "Conditional",
    "Expectations",
    "GaussianLikelihood",
    "GaussianParameters",
    "HeteroskedasticGaussian",
    "Likelihood",
    "NoParameters",
    "Poisson",
    "RobustMax",
    "Softmax",
    "StudentT",
    "StudentTParameters",
    "WeightedNoise",
    "build_likelihood",
    "likelihoods",
]
