"""Batches, the trainable parts of θ, and a method's blocks at θ and a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

from svgpbench.config import Learnable
from svgpbench.kernels import Model, Theta
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import AnyMethod, BatchBlocks, Method, PriorBlocks
from svgpbench.ops import Array, Ops, Tree


class Batch(NamedTuple):
    """Rows of the data and the draws that go with them; stacked batches have one more leading axis."""

    X: Array  # [b, D]
    y: Array  # [b]
    index: Array  # [b], row numbers
    noise: Any = ()  # [S, P], if the likelihood samples
    basis_points: Any = ()  # [r], the sampled basis points, if the method samples


def trainable_part(raw: Theta, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the parts of θ that an M-step moves."""
    return tuple(getattr(raw, name) for name in names)


def replace_trainable(raw: Theta, names: tuple[str, ...], parts: tuple[Any, ...]) -> Theta:
    """Return θ with these parts replaced."""
    return raw._replace(**dict(zip(names, parts, strict=True)))


def trainable_names(method: AnyMethod, names: tuple[Learnable, ...]) -> tuple[Learnable, ...]:
    """Return the names that the method can learn: a basis that is the data stays fixed."""
    return tuple(x for x in names if not (x == "inducing" and method.basis == "data"))


def prior_at(
    ops: Ops, model: Model, method: Method[PriorBlocks, Any, Any, Any], theta: Theta
) -> PriorBlocks:
    """Return the method's blocks at θ."""
    return method.prior(ops, model.covariance(ops, theta), theta.inducing)


def factor_at(
    ops: Ops,
    model: Model,
    method: Method[PriorBlocks, BatchBlocks, Any, Any],
    theta: Theta,
    p: PriorBlocks,
    X: Array,
    basis_points: Any = (),
) -> BatchBlocks:
    """Return the method's blocks at θ and inputs X [b, D]."""
    return method.factor(ops, model.covariance(ops, theta), theta.inducing, p, X, basis_points)


def marginals_at(
    ops: Ops,
    model: Model,
    method: Method[PriorBlocks, Any, Any, Any],
    theta: Theta,
    p: PriorBlocks,
    state: Tree,
    X: Array,
) -> tuple[Array, Array]:
    """Return the mean and variance of q(f), each [P, b], at θ and inputs X [b, D]."""
    f = factor_at(ops, model, method, theta, p, X)
    return method.marginals(ops, f, method.factorise(ops, f, state))


def data_term(model: Model, theta: Theta, batch: Batch, scale: Array) -> DataTerm:
    """Return the data term of a batch at θ."""
    return DataTerm(model.conditional(theta, batch.noise), batch.y, batch.index, scale)
