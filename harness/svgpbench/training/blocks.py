"""A batch, the parts of θ that are learned, and the blocks that a method has at θ and a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

from svgpbench.config import Learnable
from svgpbench.kernels import Model, Theta
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.method import AnyMethod, BatchBlocks, Method, PriorBlocks
from svgpbench.ops import Array, Ops


class Batch(NamedTuple):
    """Rows of the data and the draws that go with them; stacked batches have one more leading axis."""

    X: Array  # [b, D]
    y: Array  # [b]
    index: Array  # [b], row numbers
    noise: Any = ()  # [S, P], where the likelihood samples
    basis_points: Any = ()  # [r], those that are sampled, where the method samples them


def learned(raw: Theta, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The parts of θ that an M-step moves."""
    return tuple(getattr(raw, name) for name in names)


def with_learned(raw: Theta, names: tuple[str, ...], parts: tuple[Any, ...]) -> Theta:
    """θ with those parts replaced."""
    return raw._replace(**dict(zip(names, parts, strict=True)))


def learnable(method: AnyMethod, names: tuple[Learnable, ...]) -> tuple[Learnable, ...]:
    """The parts that may be learned: where the basis is the data, it stays where the data are."""
    return tuple(x for x in names if not (x == "inducing" and method.basis == "data"))


def prior_at(
    ops: Ops, model: Model, method: Method[PriorBlocks, Any, Any, Any], theta: Theta
) -> PriorBlocks:
    """The method's blocks at θ."""
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
    """The method's blocks at θ and inputs X [b, D]."""
    return method.factor(ops, model.covariance(ops, theta), theta.inducing, p, X, basis_points)


def data_term(model: Model, theta: Theta, batch: Batch, scale: Array) -> DataTerm:
    """What the method sees of a batch at θ."""
    return DataTerm(model.conditional(theta, batch.noise), batch.y, batch.index, scale)
