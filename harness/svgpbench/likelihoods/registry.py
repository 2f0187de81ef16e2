"""Likelihoods by name, ours and third parties', built from a configuration."""

from __future__ import annotations

from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UserError
from svgpbench.likelihoods.likelihood import Likelihood
from svgpbench.options import with_options
from svgpbench.plugins import LIKELIHOODS, load, whole


def likelihoods() -> dict[str, type[Likelihood]]:
    """Every likelihood that is installed and can be loaded."""
    return whole(LIKELIHOODS)


def build_likelihood(config: LikelihoodConfig) -> Likelihood:
    """The likelihood that a configuration names, at its own default where an option is left out.

    Raises `UserError` for a name that does not exist, an option that the likelihood does not have, and a
    value that is not one of the option's.
    """
    cls: type[Likelihood] = load(LIKELIHOODS, config.name)
    built = with_options(
        cls, f"likelihood {config.name!r}", config.options, LikelihoodConfig.model_fields
    )
    if "negative_beta" in config.options and built.log_concave:
        raise UserError(
            f"likelihood {config.name!r} is log-concave, its β is never negative; "
            "remove the key negative_beta"
        )
    return built
