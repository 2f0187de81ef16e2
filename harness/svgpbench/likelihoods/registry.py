"""Likelihoods by name, including third-party ones, built from a configuration."""

from __future__ import annotations

from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UserError
from svgpbench.likelihoods.likelihood import Likelihood
from svgpbench.options import with_options
from svgpbench.plugins import LIKELIHOODS, load, load_all


def likelihoods() -> dict[str, type[Likelihood]]:
    """Return every likelihood that is installed and can be loaded, by name."""
    return load_all(LIKELIHOODS)


def build_likelihood(config: LikelihoodConfig) -> Likelihood:
    """Return the likelihood of a configuration; options that are left out have its defaults.

    Raises `UserError` for an unknown name, for an option that the likelihood does not have, for an invalid
    value, and for `negative_beta` of a log-concave likelihood.
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
