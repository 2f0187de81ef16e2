"""A trained posterior and its predictions, computed with NumPy whatever framework trained it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, model_validator

from svgpbench.backends import load_backend
from svgpbench.config import KernelConfig, LikelihoodConfig, MethodConfig, Strict
from svgpbench.errors import UserError
from svgpbench.experiments.outcome import Number
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.compound import build_kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.likelihoods.likelihood import Conditional
from svgpbench.methods import AnyMethod, build_method
from svgpbench.methods.method import MeanTerm
from svgpbench.methods.prediction_weights import whitened_moments
from svgpbench.numerics.gaussian import Prior, vecmat
from svgpbench.numerics.streams import Stream
from svgpbench.ops import Tree
from svgpbench.posterior import display
from svgpbench.posterior.inputs import columns, finite, frame_of, refuse_far_rows, vector
from svgpbench.posterior.labels import Classes
from svgpbench.posterior.pseudo_data import PseudoData, pseudo_data
from svgpbench.posterior.update import updated
from svgpbench.training.batches import EVALUATION_ROWS
from svgpbench.training.blocks import factor_at, prior_at
from svgpbench.training.state import Ended
from svgpbench.training.trace_point import scores
from svgpbench.tree import tree_map

if TYPE_CHECKING:  # Matplotlib would take a third of the time of `import svgpbench.api`
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]


class TrainingFacts(Strict):
    """Facts of a posterior that are not arrays: the model, the method, and how the table was read."""

    format: Literal[1] = 1
    kernel: KernelConfig
    likelihood: LikelihoodConfig
    method: MethodConfig
    functions: Literal["points", "features"] = "points"
    jitter: float
    seed: int  # of the draws, if the likelihood samples
    n: int  # training rows
    features: tuple[str, ...]  # the D inputs, in their order
    class_labels: tuple[str, ...] | None = None  # their names, class 0 first; None for regression
    classes: Classes | None = None  # the labels as they were given, if `fit` was given them
    y_mean: float = 0.0
    y_scale: float = 1.0
    minibatches: bool = False  # whether the training took them
    method_is_automatic: bool = False  # whether `fit` chose the method
    ended: Ended = ""  # what ended the training
    trace: dict[str, list[Number]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.classes is not None and self.classes.names != self.class_labels:
            raise ValueError("classes and class_labels do not agree")
        return self


class Inducing(NamedTuple):
    """Gaussian q(u) = N(mean, covariance) of the latent functions' values at inputs Z."""

    Z: Floats  # [M, D], standardised
    mean: Floats  # [P, M]
    covariance: Floats  # [P, M, M]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(x.shape)}" for name, x in self._asdict().items())
        return f"<Inducing {shapes}>"


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """A posterior q(f) after a fit, with predictions in the units of its training table.

    NumPy computes the predictions, whatever framework trained it. The first prediction factorises K(Z, Z) and
    the state, at O(M³); later ones take O(M²) per row.

    Examples:
        >>> import numpy as np
        >>> from svgpbench.api import fit
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> y = np.sin(6.0 * X[:, 0])
        >>> posterior = fit(X, y, inducing=10)
        >>> list(posterior.predict(X, quantiles=(0.05, 0.95), std=True))
        ['mean', 'variance', 'std', '0.05', '0.95']
        >>> posterior.score(X, y)["rmse"] < 0.05
        True
        >>> posterior.inducing()
        <Inducing Z [10, 1], mean [1, 10], covariance [1, 10, 10]>
    """

    facts: TrainingFacts
    theta: Theta  # constrained, float64
    state: Tree  # the method's own
    x_mean: Floats  # [D]
    x_scale: Floats  # [D]

    @cached_property
    def model(self) -> Model:
        """Kernel, likelihood and jitter."""
        facts = self.facts
        return Model(build_kernel(facts.kernel), build_likelihood(facts.likelihood), facts.jitter)

    @cached_property
    def method(self) -> AnyMethod:
        """Method of the state."""
        return build_method(self.facts.method.name, self.facts.method.options)

    @property
    def classes(self) -> Classes:
        """Labels of the classes; those of another library or an old file are their names."""
        return self.facts.classes or Classes(labels=self.facts.class_labels or (), dtype="str")

    @property
    def trace(self) -> pd.DataFrame:
        """One row per evaluated iteration of the training: bound, hyperparameters, seconds."""
        return pd.DataFrame(self.facts.trace)

    @property
    def elbo(self) -> float:
        """Bound on all training rows at the end of the training.

        Raises `UserError` if another library trained the posterior, or if it comes from `update`.
        """
        if not self.facts.trace:
            raise UserError(
                "this posterior has no bound of a training: another library trained it, "
                "or `update` added rows after it"
            )
        return float(self.trace["elbo"].iloc[-1])

    @property
    def unsettled(self) -> str:
        """Text on the bound's move at the end of the training; empty if it had settled."""
        return display.unsettled(self)

    @property
    def move(self) -> float:
        """The rise or, negative, the fall of the bound at the end of the training; 0 if it had settled."""
        return display.end_of_bound(self).move

    def hyperparameters(self) -> pd.DataFrame:
        """Return one row per hyperparameter, in the units of the table: `parameter`, `input`, `value`."""
        return display.hyperparameters(self)

    def plot_trace(self) -> Figure:
        """Draw the bound against the iteration; raises `UserError` as `elbo`."""
        from svgpbench.posterior import plots

        return plots.plot_trace(self)

    def plot(
        self, X: npt.ArrayLike | pd.DataFrame | None = None, *, along: str | None = None
    ) -> Figure:
        """Draw predictions along one input, the first one by default, at X [t, D] or a range of it.

        Raises `UserError` for an unknown input, and as `predict`.
        """
        from svgpbench.posterior import plots

        return plots.plot(self, X, along=along)

    def __repr__(self) -> str:
        return display.summary(self)

    def _repr_html_(self) -> str:
        return display.html_summary(self)

    def latent(self, X: npt.ArrayLike | pd.DataFrame) -> tuple[Floats, Floats]:
        """Return mean and variance of the latent functions at inputs X, each [P, t].

        The mean includes the prior mean. Both are in standardised units of y.

        Args:
            X: inputs [t, D]; the columns of a frame are found by name.

        Raises:
            UserError: if X does not have the training's inputs, or if a row is too far from the training's
                rows for float64.
        """
        mu, v = self._marginals(X)
        return self.model.conditional(self.theta).of_f(mu), v

    def latent_mean(self, X: npt.ArrayLike | pd.DataFrame) -> Floats:
        """Return the mean of the latent functions at inputs X, [P, t], without their variances.

        It is the mean of `latent`, in O(M) per row in place of O(M²), but for rounding: the weights
        K(Z, Z)⁻¹m multiply K(Z, X) itself.

        Args:
            X: inputs [t, D].

        Raises:
            UserError: as `latent`.

        Examples:
            >>> import numpy as np
            >>> from svgpbench.api import fit
            >>> X = np.linspace(0.0, 1.0, 40)[:, None]
            >>> posterior = fit(X, np.sin(6.0 * X[:, 0]), inducing=10)
            >>> bool(np.allclose(posterior.latent_mean(X), posterior.latent(X)[0], atol=1e-9))
            True
        """
        terms = self.mean_terms
        if not terms:  # another package's method, whose mean only its `marginals` has
            return self.latent(X)[0]
        k = self.model.covariance(load_backend("numpy"), self.theta)
        # far rows overflow in a squared distance; they are named below instead
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [
                sum(vecmat(term.weights, k.cross(term.basis, rows)) for term in terms)
                for rows in self.standardised_inputs(X)
            ]
        mu = np.concatenate(parts, axis=-1)
        refuse_far_rows(np.isfinite(mu).all(axis=0))
        return np.asarray(self.model.conditional(self.theta).of_f(mu))

    def _marginals(self, X: npt.ArrayLike | pd.DataFrame) -> tuple[Floats, Floats]:
        """Return mean and variance of g = f less its prior mean, each [P, t]; raises as `latent`."""
        ops, (prior, q) = load_backend("numpy"), self.factors
        # far rows overflow in a squared distance; they are named below instead
        with np.errstate(over="ignore", invalid="ignore"):
            parts = []
            for rows in self.standardised_inputs(X):
                f = factor_at(ops, self.model, self.method, self.theta, prior, rows)
                parts.append(self.method.marginals(ops, f, q))
        mu, v = (np.concatenate(chunks, axis=-1) for chunks in zip(*parts, strict=True))
        refuse_far_rows(np.isfinite(mu).all(axis=0) & np.isfinite(v).all(axis=0))
        return mu, v

    def latent_covariance(self, X: npt.ArrayLike | pd.DataFrame) -> Floats:
        """Return the covariance of each latent function between inputs X, [P, t, t].

        It is in standardised units of y, as the variance of `latent`, which is its diagonal. It takes O(t²)
        memory and O(t²M) time.

        Args:
            X: inputs [t, D].

        Returns:
            K(X, X) − Wᵀ(I − L⁻¹SL⁻ᵀ)W with W = L⁻¹K(Z, X), K(Z, Z) = LLᵀ and q(u) = N(m, S).

        Raises:
            UserError: as `latent`, and if the method has no q(u) of one set of inducing inputs.

        Examples:
            >>> import numpy as np
            >>> from svgpbench.api import fit
            >>> X = np.linspace(0.0, 1.0, 40)[:, None]
            >>> posterior = fit(X, np.sin(6.0 * X[:, 0]), inducing=10)
            >>> posterior.latent_covariance(X[:3]).shape
            (1, 3, 3)
        """
        _, white = self.whitened_moments()  # L⁻¹SL⁻ᵀ
        ops, (prior, _), rows = load_backend("numpy"), self.factors, self.standardised_inputs(X)
        x, k = np.concatenate(rows), self.model.covariance(ops, self.theta)
        # far rows overflow in a squared distance; they are named below instead
        with np.errstate(over="ignore", invalid="ignore"):
            W = ops.solve_triangular(prior.L, k.cross(self.theta.inducing, x))
            # before K(X, X), in which a row that is infinite takes the others with it
            refuse_far_rows(np.isfinite(W).all(axis=(0, 1)))
            covariance = k.cross(x, x) + ops.matrix_transpose(W) @ (white @ W - W)
        refuse_far_rows(np.isfinite(np.diagonal(covariance, axis1=-2, axis2=-1)).all(axis=0))
        return np.asarray(covariance)

    def samples(self, X: npt.ArrayLike | pd.DataFrame, count: int = 1, *, seed: int = 0) -> Floats:
        """Draw the latent functions at inputs X jointly, [count, P, t].

        They are in standardised units of y, as the mean of `latent`: y_mean + y_scale · f of `facts` has the
        units of y. Draws by the variances of `latent` alone would ignore the covariance between rows.

        Args:
            X: inputs [t, D].
            count: number of draws.
            seed: seed of the draws; the same seed gives the same functions.

        Raises:
            UserError: as `latent_covariance`.

        Examples:
            >>> import numpy as np
            >>> from svgpbench.api import fit
            >>> X = np.linspace(0.0, 1.0, 40)[:, None]
            >>> posterior = fit(X, np.sin(6.0 * X[:, 0]), inducing=10)
            >>> posterior.samples(X, 5).shape
            (5, 1, 40)
        """
        (mean, _), covariance = self.latent(X), self.latent_covariance(X)
        rng = np.random.default_rng(seed)
        # eigh: close inputs make a covariance that Cholesky refuses
        draws = [
            rng.multivariate_normal(m, C, count, method="eigh")
            for m, C in zip(mean, covariance, strict=True)
        ]
        return np.stack(draws, axis=1)

    def predict(
        self,
        X: npt.ArrayLike | pd.DataFrame,
        *,
        quantiles: Sequence[float] = (),
        std: bool = False,
    ) -> pd.DataFrame:
        """Return predictions of y at inputs X [t, D], one row per input, in the units of y.

        Args:
            X: inputs [t, D].
            quantiles: levels in (0, 1), such as (0.05, 0.95); regression returns a column for each.
            std: whether regression also returns the standard deviation of y.

        Returns:
            Regression: `mean`; `variance`, if p(y) is Gaussian; `std`, if asked for, which is infinite for a
            Student-t with df ≤ 2; one quantile of y per level, named by it, such as `0.05`. Classification:
            the predicted `label`, as `fit` was given it, and one probability per class, `p(LABEL)`.

        Raises:
            UserError: as `latent`, for a level outside (0, 1), and for quantiles or `std` of labels.
        """
        targets, (mu, v), conditional = self._bound(X, None)
        ops, facts, frame = load_backend("numpy"), self.facts, frame_of(X)
        rows = None if frame is None else frame.index
        _, guess, variance = tree_map(np.asarray, conditional.predicted(ops, targets, mu, v))
        if facts.class_labels is None:
            columns = {"mean": facts.y_mean + facts.y_scale * guess}
            if not isinstance(variance, tuple):
                columns["variance"] = facts.y_scale**2 * variance
            if std:
                columns["std"] = facts.y_scale * np.asarray(conditional.predictive_sd(ops, mu, v))
            try:
                levels = [float(level) for level in quantiles]
            except (TypeError, ValueError):
                raise UserError(f"quantiles is {quantiles!r}; give a list of levels") from None
            if levels:
                y = np.asarray(conditional.predictive_quantiles(ops, levels, mu, v))
                for level, values in zip(levels, facts.y_mean + facts.y_scale * y, strict=True):
                    columns[f"{level:.12g}"] = values  # 0.3 is 0.30000000000000004 of a range
            return pd.DataFrame(columns, index=rows)
        if std or len(quantiles):
            raise UserError("labels have no quantiles and no standard deviation; leave these out")
        p = guess if guess.ndim == 2 else np.stack([1.0 - guess, guess])
        label = self.classes.column(np.argmax(p, axis=0), rows)
        shown = {f"p({name})": row for name, row in zip(facts.class_labels, p, strict=True)}
        return pd.DataFrame({"label": label} | shown, index=rows)

    def score(self, X: npt.ArrayLike | pd.DataFrame, y: npt.ArrayLike) -> dict[str, float]:
        """Return the metrics of predictions at X against y, by their names in tables.

        Args:
            X: inputs [t, D].
            y: targets [t], in the units that `fit` was given; labels as it was given them.

        Returns:
            Such as `nlpd` in nats per row, `rmse` and `crps` in standard deviations of the training targets,
            and `rmse_original` in the units of y; of labels `error_rate`, `brier` and `ece`.

        Raises:
            UserError: as `latent`, for a y of another length, and for an unknown label.
        """
        numbers, marginals, conditional = self._bound(X, y)
        predicted = conditional.predicted(load_backend("numpy"), numbers, *marginals)
        predicted = tree_map(np.asarray, predicted)
        return scores(self.model.likelihood.task, predicted, numbers, self.facts.y_scale)

    def inducing(self) -> Inducing:
        """Return q(u) at the inducing inputs.

        Raises `UserError` if the method has two bases, or if its basis is functions.
        """
        if self.method.basis == "decoupled" or self.facts.functions == "features":
            raise UserError(
                f"method {self.method.name!r} has no q(u) of one set of inducing inputs: "
                "its bases are two, or functions"
            )
        ops, (prior, q) = load_backend("numpy"), self.factors
        mean, covariance = self.method.posterior(ops, prior, q)
        mean = self.model.conditional(self.theta).of_f(np.asarray(mean))
        return Inducing(np.asarray(self.theta.inducing), mean, np.asarray(covariance))

    def whitened_moments(self) -> tuple[Floats, Floats]:
        """Return mean [P, M] and covariance [P, M, M] of v = L⁻¹u, with LLᵀ = K(Z, Z) and prior mean 0 of u.

        Raises `UserError` if the method has no q(u) of one set of inducing inputs.
        """
        prior, q = self.factors
        if not isinstance(prior, Prior):
            raise UserError(
                f"method {self.method.name!r} has no q(u) of one set of inducing inputs"
            )
        mean, covariance = whitened_moments(load_backend("numpy"), self.method, prior, q)
        return np.asarray(mean), np.asarray(covariance)

    def to_onnx(self, path: str | Path) -> Path:
        """Write the predictions of f, and of Gaussian y, to an ONNX file, for use without Python.

        It takes the input `X` [t, D] in float64, in the units of the training table and with its columns in
        the order of `facts.features`, which the file's metadata has. It returns `latent_mean` and
        `latent_variance` [t, P] in the units of `latent` and, with Gaussian noise, `mean` and `variance` of
        y [t] in the units of y. Rows too far for float64 give NaN. It needs the extra `svgpbench[onnx]`.

        Args:
            path: the .onnx file; it is replaced if it is there.

        Returns:
            The path.

        Raises:
            UserError: if the package `onnx` is missing, the path is not .onnx, the method has no q(u) of
                function values at one set of inducing inputs, the kernel is not se, matern32, matern52 or a
                sum or product of them, or if the graph would lose digits: by more than 1e-8 of the prior's
                standard deviation or variance, at the inducing inputs or between them.
        """
        from svgpbench.posterior.onnx import write_onnx

        return write_onnx(self, path)

    def pseudo_data(self) -> PseudoData:
        """Return M Gaussian pseudo-observations at Z that stand for all training rows.

        Exact GP regression on them, with the model's kernel and prior mean, has q(u) as its posterior at Z
        and q(f) everywhere. With K = K(Z, Z) + jitter·I, noise precision T and targets ỹ, both less the prior
        mean, S = (K⁻¹ + T)⁻¹ and m = STỹ; where T is positive definite, S = K − K(K + T⁻¹)⁻¹K.

        Raises:
            UserError: if the method has no dual parameters at inducing inputs, as t-SVGP and SGPR have; or if
                the mean of q(u) is that of no such data.

        Examples:
            >>> import numpy as np
            >>> from svgpbench.api import fit
            >>> X = np.linspace(0.0, 1.0, 40)[:, None]
            >>> fit(X, np.sin(6.0 * X[:, 0]), inducing=10).pseudo_data()
            <PseudoData Z [10, 1], targets [1, 10], precision [1, 10, 10]>
        """
        return pseudo_data(self)

    def update(self, X: npt.ArrayLike | pd.DataFrame, y: npt.ArrayLike) -> Posterior:
        """Return the posterior with new rows absorbed, at the same hyperparameters and inducing inputs.

        The dual parameters are sums over rows, and those of the new rows are added. With Gaussian noise this
        is exact: q(u) is the best one for all rows if it was for the old ones. With other likelihoods the
        sites of the old rows stay as they are, and those of the new rows take `E_STEPS` guarded E-steps.

        Args:
            X: new inputs [t, D], in the units of the training table.
            y: their targets [t], in the units that `fit` was given; labels as it was given them.

        Returns:
            A new posterior, whose `facts.n` counts all rows. It has no trace, and no bound. Predictions keep
            the standardisation of the training rows.

        Raises:
            UserError: if the method has no dual parameters, for rows as in `score`, for a target that the
                likelihood does not take, for one residual variance without Gaussian noise, and if the E-steps
                do not settle.

        Examples:
            >>> import numpy as np
            >>> from svgpbench.api import fit
            >>> X = np.linspace(0.0, 1.0, 40)[:, None]
            >>> posterior = fit(X, np.sin(6.0 * X[:, 0]), inducing=10)
            >>> posterior.update([[1.1], [1.2]], np.sin([6.6, 7.2])).facts.n
            42
        """
        return updated(self, X, y)

    @cached_property
    def factors(self) -> tuple[Any, Any]:
        """Blocks of the prior and the factorised state.

        They cost O(M³) and are the same at all inputs, so they are computed once and serve every prediction.
        """
        ops = load_backend("numpy")
        prior = prior_at(ops, self.model, self.method, self.theta)
        return prior, self.method.factorise(ops, prior, self.state)

    @cached_property
    def mean_terms(self) -> tuple[MeanTerm, ...]:
        """Bases and weights of the mean, computed once; empty if the method has none."""
        ops, (prior, q) = load_backend("numpy"), self.factors
        return self.method.mean_terms(ops, self.theta.inducing, prior, q)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone, so that a pickle has none of the factors."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _bound(
        self, X: npt.ArrayLike | pd.DataFrame, y: npt.ArrayLike | None
    ) -> tuple[Floats, tuple[Floats, Floats], Conditional]:
        """Return targets in standardised units, or zeros if y is None, q(g) at X, and p(y | f)."""
        mu, v = self._marginals(X)
        rows = mu.shape[-1]
        targets = np.zeros(rows) if y is None else self.standardised_targets(y, rows)
        return targets, (mu, v), self.model.conditional(self.theta, self.noise())

    def noise(self) -> Floats | tuple[()]:
        """Return the noise [S, P] of evaluations in training, or () if the likelihood does not sample."""
        likelihood = self.model.likelihood
        if not likelihood.samples:
            return ()
        generator = Stream.EVALUATION_NOISE.generator(self.facts.seed)
        return generator.standard_normal((likelihood.samples, likelihood.latents))

    def inputs(self, X: npt.ArrayLike | pd.DataFrame) -> Floats:
        """Return inputs X as [t, D], with the columns of a frame chosen by name.

        Raises `UserError` for a missing column, another shape, or a value that is not finite.
        """
        features = self.facts.features
        if (frame := frame_of(X)) is not None:
            by_name = columns(frame)
            for name in features:
                if name not in by_name:
                    raise UserError(f"X has no column {name!r}, which the posterior was trained on")
            rows = np.stack([finite(by_name[name], f"X[{name!r}]") for name in features], axis=-1)
        else:
            rows = finite(X, "X")
        if rows.ndim != 2 or rows.shape[1] != len(features) or not len(rows):
            raise UserError(f"X has shape {rows.shape}; give some rows of {len(features)} inputs")
        return rows

    def standardised_inputs(self, X: npt.ArrayLike | pd.DataFrame) -> list[Floats]:
        """Return inputs X [t, D] in the units of the model, in chunks of rows; raises `UserError`."""
        # far rows are infinite then, which all that reads them refuses
        with np.errstate(over="ignore"):
            rows = (self.inputs(X) - self.x_mean) / self.x_scale
        # L⁻¹K(Z, X) of all rows at once may not fit in memory
        return [rows[i : i + EVALUATION_ROWS] for i in range(0, len(rows), EVALUATION_ROWS)]

    def standardised_targets(self, y: npt.ArrayLike, n: int) -> Floats:
        """Return targets y [n] in the units of the model, or class numbers; raises `UserError`."""
        if self.facts.class_labels is not None:
            return self.classes.numbers(y, n)
        return (finite(vector(y, n), "y") - self.facts.y_mean) / self.facts.y_scale
