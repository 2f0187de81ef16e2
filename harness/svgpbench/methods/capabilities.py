"""The likelihoods that a method refuses, with the reasons that the method gives."""

from __future__ import annotations

from svgpbench.config import LikelihoodConfig
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.methods.method import AnyMethod


def refusals(method: AnyMethod) -> dict[str, str]:
    """Return the reason by name for each likelihood, at its defaults, that the method refuses."""
    reasons = {name: _refusal(method, name) for name in likelihoods()}
    return {name: why for name, why in reasons.items() if why}


def _refusal(method: AnyMethod, likelihood: str) -> str:
    try:
        return method.refuses(build_likelihood(LikelihoodConfig(name=likelihood)))
    except Exception as error:  # third-party code failed; other likelihoods still get an answer
        return f"asked whether it can, it raises {type(error).__name__}"
