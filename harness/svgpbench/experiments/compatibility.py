"""Compatibility rules for the method, likelihood, basis and training of a cell; no other module has any."""

from __future__ import annotations

from collections.abc import Iterator

from svgpbench.config import CellConfig
from svgpbench.errors import UserError
from svgpbench.likelihoods import Likelihood
from svgpbench.methods import AnyMethod


def refuse_incompatible(config: CellConfig, method: AnyMethod, likelihood: Likelihood) -> None:
    """Raise `UserError` with the first reason why the parts of a cell are incompatible."""
    for reason in _reasons(config, method, likelihood):
        raise UserError(reason)


def _reasons(config: CellConfig, method: AnyMethod, likelihood: Likelihood) -> Iterator[str]:
    if why := method.refuses(likelihood):
        yield f"method {method.name!r} cannot take likelihood {likelihood.name!r}: {why}"
    if method.basis == "decoupled" and config.inducing.gamma is None:
        yield (
            f"method {method.name!r} has two bases: set inducing.gamma, the points of its mean "
            "(inducing.count are those of its covariance)"
        )
    if method.basis != "decoupled" and config.inducing.gamma is not None:
        yield (
            f"method {method.name!r} has one basis: remove inducing.gamma, or give it in the "
            "`inducing` of the methods that have two"
        )
    size = config.training.batch_size
    # its log-determinant is no sum over rows, so a minibatch would estimate the bound with a bias
    if size is not None and method.collapsed:
        yield f"method {method.name!r} takes all data in every step; remove training.batch_size"
    # curvature comes from differences of gradients, which between two batches are mostly noise
    if size is not None and config.training.optimiser == "l-bfgs":
        yield (
            "training.optimiser 'l-bfgs' takes all data in every step; "
            "remove training.batch_size or use 'adam'"
        )
    if config.training.joint:
        yield from _reasons_of_joint_step(config, method)
    if config.training.kind == "online":
        if why := method.refuses_growth():
            yield f'training.kind = "online" needs a basis that grows: {why}'
        if config.kernel.parts:
            yield (
                'training.kind = "online" tells new inputs apart by one set of lengthscales, and a '
                f"{config.kernel.name} has several; name one kernel"
            )
        increment = config.training.online.increment
        if size is not None and increment > size:
            yield f"training.online.increment {increment} exceeds the batch of {size} rows"
    # it stops at relative changes of 1e-13 in the value, and float32 resolves 6e-8
    if config.training.optimiser == "l-bfgs" and config.backend.dtype != "float64":
        yield (
            f"training.optimiser 'l-bfgs' runs in float64, not {config.backend.dtype}; "
            "use 'adam' or float64"
        )


def _reasons_of_joint_step(config: CellConfig, method: AnyMethod) -> Iterator[str]:
    training = config.training
    if (training.kind, training.optimiser) != ("em", "adam"):
        yield 'training.joint is one step of Adam: it needs kind = "em" and optimiser = "adam"'
    if (training.e_steps, training.m_steps) != (1, 1):
        yield "training.joint is one step: it needs e_steps = 1 and m_steps = 1"
    if not training.learn:
        yield "training.joint moves θ too: name parts of it in training.learn"
    if not method.first_order:
        yield (
            f"training.joint moves q by Adam, and method {method.name!r} with these options does not; "
            "remove it or take an option that does"
        )
