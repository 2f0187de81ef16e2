"""Likelihoods by name."""

from __future__ import annotations

from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UserError, unknown
from svgpbench.likelihoods.bernoulli import BernoulliLogit, BernoulliProbit
from svgpbench.likelihoods.gaussian import GaussianLikelihood
from svgpbench.likelihoods.likelihood import Likelihood

LIKELIHOODS: dict[str, type[Likelihood]] = {
    cls.name: cls for cls in (GaussianLikelihood, BernoulliProbit, BernoulliLogit)
}


def build_likelihood(config: LikelihoodConfig) -> Likelihood:
    """The likelihood that a configuration names; raises `UserError` for one that does not exist."""
    if config.name not in LIKELIHOODS:
        raise unknown("likelihood", config.name, LIKELIHOODS)
    if config.name == GaussianLikelihood.name:
        return GaussianLikelihood(noise_variance=config.noise_variance or 1.0)
    if config.name == BernoulliProbit.name:
        return BernoulliProbit(nodes=config.nodes, squash=config.squash)
    if config.squash:
        raise UserError(f"likelihood {config.name!r} has no squash; only bernoulli-probit has")
    return BernoulliLogit(nodes=config.nodes)
