"""What a method states: a parameterization of q(u), its E-step, and what its M-step holds fixed.

A method is a frozen value object of pure functions over `Ops`. It asks a `Covariance` for the blocks it
needs and sees the likelihood bound to its parameters, never θ; it keeps its state in NamedTuples of
arrays with a leading latent axis P. Three values carry the blocks: `p` what θ and the bases determine
(held while θ stands still), `f` that and what a batch adds, `at` either of them. `q` is what a state
factorises to at them, `data` a batch's part of the bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from svgpbench.errors import UserError
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.pullback import DifferentiableCovariance
from svgpbench.likelihoods import Conditional, Likelihood
from svgpbench.methods.adjoint import (
    BoundGradient,
    Cross,
    GramGradient,
    pulled_back,
)
from svgpbench.methods.data_term import DataTerm
from svgpbench.methods.facts import Facts
from svgpbench.numerics import gaussian
from svgpbench.numerics.gaussian import Factor, Prior
from svgpbench.ops import Array, Ops, Tree

PriorBlocks = TypeVar("PriorBlocks")  # of `p`
BatchBlocks = TypeVar("BatchBlocks")  # of `f`
State = TypeVar("State")  # also what an M-step holds of one
Factorised = TypeVar("Factorised")  # of `q`


@dataclass(frozen=True)
class Method(ABC, Generic[PriorBlocks, BatchBlocks, State, Factorised]):
    """A parameterization of q(f), how its E-step moves, and what its M-step holds fixed.

    Its four types are the NamedTuples that only a family's own functions look into. The bases are not
    among them: whether they are arrays or `Features` is between θ and the kernel.
    """

    name: ClassVar[str]
    version: ClassVar[int]  # raised whenever the numbers change
    facts: ClassVar[Facts]
    basis: ClassVar[str] = (
        "inducing"  # which bases θ holds: "inducing" Z, "data" X, "decoupled" both
    )
    needs_all_data: ClassVar[bool] = False  # whether an M-step does
    collapsed: ClassVar[bool] = False
    """Whether the bound is a function of θ and all data alone, with q the best there is: the E-step
    finds it in one go, `bound` asks for no state, and no step takes a part of the data."""

    @property
    def first_order(self) -> bool:
        """Whether the E-step's rate is a gradient step's, not a natural gradient's (of order one)."""
        return False

    @property
    def starts_at_prior(self) -> bool:
        """Whether the initial state is q = p."""
        return True

    @property
    def sampled_points(self) -> int:
        """How many basis points a batch samples for a quadratic form, 0 for all of them."""
        return 0

    def sampled_basis(self, inducing: Tree) -> Tree:
        """The basis whose points a batch samples, if any."""
        return inducing

    def refuses(self, likelihood: Likelihood) -> str:
        """Why the method cannot take a likelihood; empty where it can."""
        return ""

    @abstractmethod
    def prior(self, ops: Ops, cov: Covariance, inducing: Tree) -> PriorBlocks:
        """The blocks that θ and the bases determine."""

    @abstractmethod
    def factor(
        self,
        ops: Ops,
        cov: Covariance,
        inducing: Tree,
        p: PriorBlocks,
        X: Array,
        basis_points: Array | tuple[()],
    ) -> BatchBlocks:
        """The blocks at a batch X [b, D]; `basis_points` [r] are those sampled, () for all."""

    @abstractmethod
    def initial_state(self, ops: Ops, p: PriorBlocks, latents: int, n: int) -> State:
        """The state of q(u) = p(u), for n data, unless the method says that it starts elsewhere."""

    @abstractmethod
    def e_step(self, ops: Ops, f: BatchBlocks, data: DataTerm, state: State, rate: Array) -> State:
        """One step on q at fixed θ; `rate` is []."""

    @abstractmethod
    def factorise(self, ops: Ops, at: PriorBlocks | BatchBlocks, state: State) -> Factorised:
        """What marginals, KL and q(u) share: computed once a state."""

    @abstractmethod
    def marginals(self, ops: Ops, f: BatchBlocks, q: Factorised) -> tuple[Array, Array]:
        """Mean and variance of q(f_i), each [P, b], from a factorised state."""

    @abstractmethod
    def kl(self, ops: Ops, f: BatchBlocks, q: Factorised) -> Array:
        """KL[q ‖ p] [], summed over latents, from a factorised state.

        An unbiased estimate, which may be negative, where basis points are sampled.
        """

    @abstractmethod
    def posterior(
        self, ops: Ops, at: PriorBlocks | BatchBlocks, q: Factorised
    ) -> tuple[Array, Array]:
        """Mean [P, M] and covariance [P, M, M] of q at the inducing inputs of the covariance."""

    def bound(self, ops: Ops, f: BatchBlocks, data: DataTerm, state: State) -> Array:
        """What the method maximises []: s Σ_i V_i − KL[q ‖ p] unless it says more.

        Source: Hensman et al. 2013, Eq. 3; Adam et al. 2021, Eq. 8.
        """
        data = self.seen(ops, f, data, state)
        q = self.factorise(ops, f, state)
        mu, v = self.marginals(ops, f, q)
        V = data.likelihood.variational_expectations(ops, data.y, mu, v)
        return data.scale * ops.sum(V) - self.kl(ops, f, q)

    def seen(self, ops: Ops, f: BatchBlocks, data: DataTerm, state: State) -> DataTerm:
        """The data as the bound sees them: at the marginals themselves unless a method says more."""
        return data

    def refuses_growth(self) -> str:
        """Why the method cannot go on with a larger basis; empty where it can."""
        return f"method {self.name!r} does not say what its state is on a larger basis"

    def grow(self, ops: Ops, p: PriorBlocks, state: State) -> State:
        """The state on the basis of `p`, which begins with the state's own: the same q(f) and KL.

        Raises `UserError` where the method refuses growth.
        """
        raise UserError(self.refuses_growth())

    def hold(self, ops: Ops, p: PriorBlocks, likelihood: Conditional, state: State) -> Any:
        """What the M-step keeps fixed while θ moves; the state itself unless a method says more."""
        return state

    def tie(
        self, ops: Ops, at: PriorBlocks | BatchBlocks, likelihood: Conditional, held: Any
    ) -> State:
        """The state at another θ from what is held fixed; `at` are the batch's where all data are needed."""
        state: State = held
        return state

    @property
    def has_adjoint(self) -> bool:
        """Whether `bound_gradient` is there; without it M-steps differentiate the bound itself."""
        return False

    def bound_gradient(
        self,
        ops: Ops,
        cov: DifferentiableCovariance,
        inducing: Tree,
        X: Array,
        p: PriorBlocks,
        data: DataTerm,
        state: State,
    ) -> BoundGradient:
        """The bound's gradient at X [b, D], where `state` moves with θ as `tie` says."""
        raise NotImplementedError(f"method {self.name!r} has no adjoint")


AnyMethod: TypeAlias = Method[Any, Any, Any, Any]
"""A method to those who pass its blocks and states on and look into none."""


@dataclass(frozen=True)
class CoupledMethod(Method[Prior, Factor, State, Factorised], Generic[State, Factorised]):
    """A method on M inducing variables u ~ N(0, K), of which mean and covariance of q(f) are made."""

    def prior(self, ops: Ops, cov: Covariance, inducing: Tree) -> Prior:
        return gaussian.prior(ops, cov.square(inducing))

    def factor(
        self,
        ops: Ops,
        cov: Covariance,
        inducing: Tree,
        p: Prior,
        X: Array,
        basis_points: Array | tuple[()],
    ) -> Factor:
        return gaussian.factor(ops, p, cov.cross(inducing, X), cov.diagonal(X))

    @property
    def has_adjoint(self) -> bool:
        """Whether a method says what its q(v) is, and how that moves with L."""
        return type(self).adjoint is not CoupledMethod.adjoint

    def bounded(self, data: DataTerm, state: State) -> DataTerm:
        """The data and how wide q(f|u) is, which is as wide as p(f|u) unless a method says more."""
        return data

    def adjoint(
        self, ops: Ops, f: Cross, data: DataTerm, q: Factorised, state: State
    ) -> GramGradient:
        """The bound's gradient in K(Z, X) and K(Z, Z), from how q(v) moves with L."""
        raise NotImplementedError

    def bound_gradient(
        self,
        ops: Ops,
        cov: DifferentiableCovariance,
        inducing: Tree,
        X: Array,
        p: Prior,
        data: DataTerm,
        state: State,
    ) -> BoundGradient:
        q = self.factorise(ops, p, state)
        f = Cross(p.L, cov.cross(inducing, X), cov.diagonal(X))
        bar = self.adjoint(ops, f, self.bounded(data, state), q, state)
        return pulled_back(ops, cov, inducing, X, bar)
