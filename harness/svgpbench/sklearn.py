"""scikit-learn estimators over `svgpbench.api.fit`: `SVGPRegressor` and `SVGPClassifier`.

They need the extra `svgpbench[sklearn]`. Their parameters are arguments of `fit`: all but `dtype`, `timeout`
and `progress`, with `random_state` for `seed`. Pipelines, `cross_val_score` and `GridSearchCV` work on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from svgpbench.posterior import Posterior, fit
from svgpbench.posterior.defaults import AUTO
from svgpbench.posterior.fit import Named
from svgpbench.posterior.inputs import frame_of, refuse_masked

Floats = npt.NDArray[np.float64]


class _SVGP(BaseEstimator):
    """Parameters and training that the regressor and the classifier share."""

    posterior_: Posterior

    def __init__(
        self,
        *,
        method: Named = AUTO,
        likelihood: Named | None = None,
        kernel: Named = "matern52",
        inducing: int | Mapping[str, Any] = 50,
        training: Mapping[str, Any] | None = None,
        backend: str = "numpy",
        device: str = "cpu",
        threads: int = 1,
        jitter: float = 1e-6,
        random_state: int = 0,
    ) -> None:
        # kept as given and unchecked: `clone` of scikit-learn compares them by identity
        self.method = method
        self.likelihood = likelihood
        self.kernel = kernel
        self.inducing = inducing
        self.training = training
        self.backend = backend
        self.device = device
        self.threads = threads
        self.jitter = jitter
        self.random_state = random_state

    def _train(self, X: npt.ArrayLike, rows: Floats, y: Any, likelihood: Named) -> None:
        """Train on validated rows, whose columns have the names of X if it is a frame."""
        frame = frame_of(X)
        self.posterior_ = fit(
            rows if frame is None else pd.DataFrame(rows, columns=frame.columns),
            y,
            method=self.method,
            likelihood=self.likelihood or likelihood,
            kernel=self.kernel,
            inducing=self.inducing,
            training=self.training,
            backend=self.backend,
            device=self.device,
            threads=self.threads,
            jitter=self.jitter,
            seed=self.random_state,
        )

    def _inputs(self, X: npt.ArrayLike) -> Floats:
        check_is_fitted(self)
        refuse_masked(X, "X")
        rows: Floats = validate_data(self, X, reset=False, dtype=np.float64)
        return rows


class SVGPRegressor(RegressorMixin, _SVGP):
    """A sparse variational Gaussian process for regression, with Gaussian noise by default.

    Args:
        method: name, or `{"name": …, "options": {…}}`; "auto" is that of `fit`.
        likelihood: name, or the table of an experiment file; None chooses one for the targets.
        kernel: name, or the table of an experiment file.
        inducing: number of inducing inputs, at most one per distinct row; or the table of an experiment file.
        training: table of an experiment file, such as `{"em_iterations": 50}`.
        backend: `numpy`, `jax`, `torch:compile`, …
        device: cpu or cuda.
        threads: number of threads of the training.
        jitter: added to the diagonal of K(Z, Z).
        random_state: seed of the initial values and the minibatches.

    Attributes:
        posterior_: the `Posterior` of the last fit; its inputs are named as the columns of a frame.
        n_features_in_: number D of inputs.
        feature_names_in_: names of the inputs, if X was a frame whose columns are named by text.

    Examples:
        >>> import numpy as np
        >>> from svgpbench.sklearn import SVGPRegressor
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> y = np.sin(6.0 * X[:, 0])
        >>> model = SVGPRegressor(inducing=10).fit(X, y)
        >>> bool(model.score(X, y) > 0.99)
        True
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train on all rows of X [n, D] and y [n].

        Raises `ValueError` (`UserError`) if the model cannot be trained or the training fails.
        """
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        rows, targets = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        self._train(X, rows, np.asarray(targets, dtype=np.float64), "gaussian")
        return self

    def predict(self, X: npt.ArrayLike, return_std: bool = False) -> Floats | tuple[Floats, Floats]:
        """Return the mean of p(y) at X [t, D], and its standard deviation if `return_std`; each [t].

        The standard deviation is infinite for Student-t noise with df ≤ 2. The mean alone takes O(M) per row
        for Gaussian and Student-t noise, O(M²) otherwise.
        """
        rows = self._inputs(X)  # raises if there is no posterior
        posterior, facts = self.posterior_, self.posterior_.facts
        mean: Floats
        if not return_std and posterior.model.likelihood.mean_is_f:
            mean = facts.y_mean + facts.y_scale * posterior.latent_mean(rows)[0]
            return mean
        predicted = posterior.predict(rows, std=return_std)
        mean = predicted["mean"].to_numpy()
        return (mean, predicted["std"].to_numpy()) if return_std else mean


class SVGPClassifier(ClassifierMixin, _SVGP):
    """A sparse variational Gaussian process for classification.

    Two classes have the likelihood `bernoulli-probit` by default, more have `softmax`. The
    parameters are those of `SVGPRegressor`.

    Attributes:
        posterior_: the `Posterior` of the last fit; its inputs are named as the columns of a frame.
        classes_: the labels, sorted.
        n_features_in_: number D of inputs.
        feature_names_in_: names of the inputs, if X was a frame whose columns are named by text.

    Examples:
        >>> import numpy as np
        >>> from svgpbench.sklearn import SVGPClassifier
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> model = SVGPClassifier(inducing=10).fit(X, np.where(X[:, 0] < 0.5, "low", "high"))
        >>> [str(label) for label in model.predict([[0.1], [0.9]])]
        ['low', 'high']
    """

    classes_: npt.NDArray[Any]

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train on all rows of X [n, D] and labels y [n].

        Raises `ValueError` (`UserError`) for fewer than two classes, if the model cannot be trained, or if
        the training fails.
        """
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        rows, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds 1 class, {self.classes_[0]!r}; give two classes or more")
        # `validate_data` would drop the order of a categorical's classes
        given = y if isinstance(y, pd.Series | pd.api.extensions.ExtensionArray) else labels
        two = len(self.classes_) == 2
        self._train(X, rows, given, "bernoulli-probit" if two else "softmax")
        return self

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Return the probability of each class at X [t, D], as [t, number of classes]."""
        rows = self._inputs(X)
        predicted = self.posterior_.predict(rows)
        # the posterior's classes may be in another order, such as that of a categorical's
        numbers = self.posterior_.classes.numbers(self.classes_, len(self.classes_)).astype(int)
        p: Floats = predicted.iloc[:, 1 + numbers].to_numpy()
        return p

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the most probable class at X [t, D], as [t]."""
        p = self.predict_proba(X)
        labels: npt.NDArray[Any] = self.classes_[np.argmax(p, axis=1)]
        return labels
