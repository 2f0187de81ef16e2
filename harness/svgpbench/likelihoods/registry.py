"""Likelihoods by name, built from the keys of a configuration."""

from __future__ import annotations

import dataclasses

from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UserError, unknown
from svgpbench.likelihoods.bernoulli import BernoulliLogit, BernoulliProbit
from svgpbench.likelihoods.gaussian import GaussianLikelihood
from svgpbench.likelihoods.likelihood import Likelihood
from svgpbench.likelihoods.poisson import Poisson
from svgpbench.likelihoods.robust_max import RobustMax
from svgpbench.likelihoods.softmax import Softmax
from svgpbench.likelihoods.student_t import StudentT

LIKELIHOODS: dict[str, type[Likelihood]] = {
    cls.name: cls
    for cls in (
        GaussianLikelihood,
        BernoulliProbit,
        BernoulliLogit,
        Softmax,
        RobustMax,
        StudentT,
        Poisson,
    )
}


def build_likelihood(config: LikelihoodConfig) -> Likelihood:
    """The likelihood that a configuration names, at its own default where a key is not given.

    Raises `UserError` for a name that does not exist, and for a key that the likelihood does not have.
    """
    if config.name not in LIKELIHOODS:
        raise unknown("likelihood", config.name, LIKELIHOODS)
    cls = LIKELIHOODS[config.name]
    fields = {field.name for field in dataclasses.fields(cls)}
    given = config.model_dump(exclude={"name"}, exclude_none=True)
    for key in given:
        if key not in fields:
            others = ", ".join(n for n, c in LIKELIHOODS.items() if key in c.__dataclass_fields__)
            raise UserError(
                f"likelihood {config.name!r} has no {key} (who has: {others}); remove the key"
            )
    built = cls(**given)
    if "negative_beta" in given and built.log_concave:
        raise UserError(
            f"likelihood {config.name!r} is log-concave, its β is never negative; "
            "remove the key negative_beta"
        )
    return built
