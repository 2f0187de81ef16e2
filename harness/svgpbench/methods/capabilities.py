"""Which likelihoods a method takes, and why not the others: asked of the method itself."""

from __future__ import annotations

from svgpbench.config import LikelihoodConfig
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.methods.method import AnyMethod


def refusals(method: AnyMethod) -> dict[str, str]:
    """Likelihood → reason, for each that the method cannot take at its defaults."""
    reasons = {name: _refusal(method, name) for name in likelihoods()}
    return {name: why for name, why in reasons.items() if why}


def _refusal(method: AnyMethod, likelihood: str) -> str:
    try:
        return method.refuses(build_likelihood(LikelihoodConfig(name=likelihood)))
    except Exception as error:  # somebody else's code: of the others there is an answer
        return f"asked whether it can, it raises {type(error).__name__}"
