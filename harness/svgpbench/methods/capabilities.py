"""The likelihoods that a method refuses, with the reasons that the method gives."""

from __future__ import annotations

from svgpbench.config import LikelihoodConfig
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.methods.method import AnyMethod


def refusals(method: AnyMethod) -> dict[str, str]:
    """Return the reason by name for each likelihood, at its defaults, that the method refuses."""
    reasons = {}
    for name in likelihoods():
        try:
            why = method.refuses(build_likelihood(LikelihoodConfig(name=name)))
        except Exception as error:  # third-party code failed; other likelihoods still get an answer
            why = f"asked whether it can, it raises {type(error).__name__}"
        if why:
            reasons[name] = why
    return reasons
