"""The interface of a method: a parameterization of q(u), its E-step, and the invariant of its M-step.

A method is a frozen value object of pure functions over `Ops`. It asks a `Covariance` for the blocks it
needs, and sees the likelihood bound to its parameters, never θ. Its state is a NamedTuple of arrays with
a leading latent axis P. An override has the shapes of what it implements. The arguments have the same names
everywhere:

* `p`: the blocks that θ and the bases determine, reused while θ is fixed.
* `f`: the blocks in `p` that a batch needs, and those of the batch itself.
* `blocks`: either `p` or `f`.
* `q`: the state, factorised at these blocks.
* `data`: a batch's part of the bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from jaxtyping import Float, Int

from svgpbench.errors import UserError
from svgpbench.kernels.covariance import Covariance
from svgpbench.kernels.pullback import DifferentiableCovariance
from svgpbench.likelihoods import Conditional, Likelihood
from svgpbench.methods.adjoint import (
    BoundGradient,
    Cross,
    GramGradient,
    pull_back,
)
from svgpbench.methods.data_term import DataTerm
from svgpbench.numerics import gaussian
from svgpbench.numerics.gaussian import Factor, Prior
from svgpbench.ops import Array, Ops, Tree

PriorBlocks = TypeVar("PriorBlocks")  # type of `p`
BatchBlocks = TypeVar("BatchBlocks")  # type of `f`
State = TypeVar("State")  # by default also the invariant of an M-step
Factorised = TypeVar("Factorised")  # type of `q`


@dataclass(frozen=True)
class MethodInfo:
    """Names, size and cost of a method, in the symbols n, b, M, D, P (M_γ and M_β if decoupled).

    The listing, `check`, `speed` and the skips of tests read it.
    """

    aliases: Mapping[str, str]  # paper → its name for the method
    parameters: str  # variational parameters of one latent, as a formula
    e_step: str  # leading cost of one E-step
    memory: str  # leading memory of one E-step
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    """Options that change the numbers, by the name that `check` shows after the method's name."""
    timed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options that `speed` times by default, by the name shown after the method's name. An E-step from q = p
    must be a natural-gradient step on q(u), because everything timed together must give the same number."""


class MeanTerm(NamedTuple):
    """A part Σ_j k(x, z_j) a_j of the mean of q(f)."""

    basis: Tree  # the z_j: inputs [M, D], or `Features`
    weights: Float[Array, "P M"]  # a


@dataclass(frozen=True)
class Method(ABC, Generic[PriorBlocks, BatchBlocks, State, Factorised]):
    """A parameterization of q(f), its E-step, and the invariant of its M-step.

    The four type parameters are NamedTuples that only the functions of one family read. The bases are not
    among them: only θ and the kernel know whether a basis is an array or `Features`.
    """

    name: ClassVar[str]
    version: ClassVar[int]  # incremented whenever the results change
    info: ClassVar[MethodInfo]
    basis: ClassVar[str] = "inducing"
    """The bases in θ: "inducing" has Z, "data" has X, "decoupled" has γ and β."""
    needs_all_data: ClassVar[bool] = False  # True if an M-step needs all data
    collapsed: ClassVar[bool] = False
    """True if the bound is a function of θ and all data alone, with the optimal q: one E-step finds that q,
    `bound` ignores the state, and no step uses a minibatch."""

    @property
    def first_order(self) -> bool:
        """Return True if the E-step is a gradient step; the rate of a natural gradient is of order one."""
        return False

    @property
    def starts_at_prior(self) -> bool:
        """Return True if the initial state is q = p."""
        return True

    @property
    def exact_with_gaussian_noise(self) -> bool:
        """Return True if, with Gaussian noise, one E-step at rate 1 finds the best q."""
        return False

    @property
    def stationary(self) -> bool:
        """Return True if E-steps end where the bound's gradient in the state is 0, for log-concave p(y | f).

        It is False by design if a step is projected, for example onto diagonal precisions.
        """
        return True

    @property
    def sampled_points(self) -> int:
        """Number of basis points that a batch samples for a quadratic form; 0 means all of them."""
        return 0

    def sampled_basis(self, inducing: Tree) -> Tree:
        """Return the basis whose points a batch samples, if any."""
        return inducing

    def refuses(self, likelihood: Likelihood) -> str:
        """Return the reason why the method cannot use a likelihood; empty if it can."""
        return ""

    @abstractmethod
    def prior(self, ops: Ops, cov: Covariance, inducing: Tree) -> PriorBlocks:
        """Return the blocks that θ and the bases determine."""

    @abstractmethod
    def factor(
        self,
        ops: Ops,
        cov: Covariance,
        inducing: Tree,
        p: PriorBlocks,
        X: Float[Array, "b D"],
        basis_points: Int[Array, "r"] | tuple[()],
    ) -> BatchBlocks:
        """Return the blocks at a batch X.

        `basis_points` are the sampled basis points; () means all of them.
        """

    @abstractmethod
    def initial_state(self, ops: Ops, p: PriorBlocks, latents: int, n: int) -> State:
        """Return the initial state for n data: q(u) = p(u) unless `starts_at_prior` is False."""

    @abstractmethod
    def e_step(
        self, ops: Ops, f: BatchBlocks, data: DataTerm, state: State, rate: Float[Array, ""]
    ) -> State:
        """Return the state after one step on q at fixed θ."""

    @abstractmethod
    def factorise(self, ops: Ops, blocks: PriorBlocks | BatchBlocks, state: State) -> Factorised:
        """Return the factorised state, which marginals, KL and posterior share."""

    @abstractmethod
    def marginals(
        self, ops: Ops, f: BatchBlocks, q: Factorised
    ) -> tuple[Float[Array, "P b"], Float[Array, "P b"]]:
        """Return the mean and variance of q(f_i) from a factorised state."""

    @abstractmethod
    def kl(self, ops: Ops, f: BatchBlocks, q: Factorised) -> Float[Array, ""]:
        """Return KL[q ‖ p], summed over latents, from a factorised state.

        If basis points are sampled, it is an unbiased estimate, which may be negative.
        """

    @abstractmethod
    def posterior(
        self, ops: Ops, blocks: PriorBlocks | BatchBlocks, q: Factorised
    ) -> tuple[Float[Array, "P M"], Float[Array, "P M M"]]:
        """Return the mean and covariance of q at the covariance's inducing inputs."""

    def mean_terms(
        self, ops: Ops, inducing: Tree, p: PriorBlocks, q: Factorised
    ) -> tuple[MeanTerm, ...]:
        """Return the terms whose sum is the mean of q(f) at any x, from a state factorised at `p`.

        A mean alone then takes O(M) per row. The empty tuple, the default, means that only `marginals` has
        the mean.
        """
        return ()

    def bound(self, ops: Ops, f: BatchBlocks, data: DataTerm, state: State) -> Float[Array, ""]:
        """Return the bound that the method maximises: by default s Σ_i V_i − KL[q ‖ p].

        Source: Hensman et al. 2013, Eq. 3; Adam et al. 2021, Eq. 8.
        """
        data = self.data_for_bound(ops, f, data, state)
        q = self.factorise(ops, f, state)
        mu, v = self.marginals(ops, f, q)
        V = data.likelihood.variational_expectations(ops, data.y, mu, v)
        return data.scale * ops.sum(V) - self.kl(ops, f, q)

    def data_for_bound(self, ops: Ops, f: BatchBlocks, data: DataTerm, state: State) -> DataTerm:
        """Return the data term that the bound uses; by default `data`, at the marginals of q itself."""
        return data

    def refuses_growth(self) -> str:
        """Return the reason why the method cannot continue on a larger basis; empty if it can."""
        return f"method {self.name!r} does not say what its state is on a larger basis"

    def grow(self, ops: Ops, p: PriorBlocks, state: State) -> State:
        """Return a state on the basis of `p` with the same q(f) and KL.

        The basis of `p` begins with the basis of `state`. Raises `UserError` if the method refuses growth.
        """
        raise UserError(self.refuses_growth())

    def invariant(self, ops: Ops, p: PriorBlocks, likelihood: Conditional, state: State) -> Any:
        """Return the quantity that an M-step fixes while θ moves; by default the state itself."""
        return state

    def state_at(
        self, ops: Ops, blocks: PriorBlocks | BatchBlocks, likelihood: Conditional, invariant: Any
    ) -> State:
        """Return the state at another θ from the invariant of the M-step.

        If the method needs all data, `blocks` are the blocks `f` of all data.
        """
        state: State = invariant
        return state

    @property
    def has_adjoint(self) -> bool:
        """Return True if `bound_gradient` is implemented; otherwise M-steps use autodiff of the bound."""
        return False

    def bound_gradient(
        self,
        ops: Ops,
        cov: DifferentiableCovariance,
        inducing: Tree,
        X: Float[Array, "b D"],
        p: PriorBlocks,
        data: DataTerm,
        state: State,
    ) -> BoundGradient:
        """Return the bound's gradient at X, where `state` moves with θ as `state_at` defines."""
        raise NotImplementedError(f"method {self.name!r} has no adjoint")


AnyMethod: TypeAlias = Method[Any, Any, Any, Any]
"""Any method, for code that passes its blocks and states on without reading them."""


@dataclass(frozen=True)
class CoupledMethod(Method[Prior, Factor, State, Factorised], Generic[State, Factorised]):
    """A method whose q(f) has mean and covariance from the same M inducing variables u ~ N(0, K)."""

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

    def whitened_mean(self, ops: Ops, blocks: Prior | Factor, q: Factorised) -> Float[Array, "P M"]:
        """Return L⁻¹m, the marginal means with the identity as W."""
        L = blocks.L
        identity = ops.broadcast_to(ops.eye(L.shape[-1]), L.shape)
        return self.marginals(ops, Factor(L, identity, 0.0 * L[..., 0]), q)[0]

    def mean_terms(self, ops: Ops, inducing: Tree, p: Prior, q: Factorised) -> tuple[MeanTerm, ...]:
        """Return the weights K⁻¹m = L⁻ᵀ(L⁻¹m) of k_xu."""
        half = self.whitened_mean(ops, p, q)[..., None]
        return (MeanTerm(inducing, ops.solve_triangular(p.L, half, transpose=True)[..., 0]),)

    @property
    def has_adjoint(self) -> bool:
        """Return True if the method implements `adjoint`."""
        return type(self).adjoint is not CoupledMethod.adjoint

    def with_residual_scale(self, data: DataTerm, state: State) -> DataTerm:
        """Return the data term with the width of q(f|u); by default q(f|u) = p(f|u)."""
        return data

    def adjoint(
        self, ops: Ops, f: Cross, data: DataTerm, q: Factorised, state: State
    ) -> GramGradient:
        """Return the bound's gradient in K(Z, X) and K(Z, Z), given how q(v) moves with L."""
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
        bar = self.adjoint(ops, f, self.with_residual_scale(data, state), q, state)
        return pull_back(ops, cov, inducing, X, bar)
