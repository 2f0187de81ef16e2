"""What a trace point says: scores of predictions at test inputs, and θ in a few numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from svgpbench.model import Theta

Floats = npt.NDArray[np.float64]


def scores(
    task: str, density: Floats, guess: Floats, y: Floats, y_scale: float
) -> dict[str, float]:
    """Test NLPD and error: RMSE for regression, error rate for classification.

    Args:
        task: of the likelihood.
        density: log p(y | data) of each test point, [t].
        guess: the predicted mean [t], or probability [t] or [K, t].
        y: test targets, [t], in units of `y_scale`.
        y_scale: what the targets were divided by.
    """
    nlpd = -float(np.mean(density))
    if task == "classification":
        label = np.argmax(guess, axis=0) if guess.ndim == 2 else guess > 0.5
        return {"nlpd": nlpd, "error_rate": float(np.mean(label != y))}
    rmse = float(np.sqrt(np.mean((guess - y) ** 2)))
    return {
        "nlpd": nlpd,
        "nlpd_original": nlpd + float(np.log(y_scale)),
        "rmse": rmse,
        "rmse_original": rmse * y_scale,
    }


def hyperparameters(theta: Theta) -> dict[str, float]:
    """Kernel and likelihood parameters of a θ on the host.

    Of the lengthscales there are the least, the geometric mean, and the greatest.
    """
    lengthscales = np.asarray(theta.kernel.lengthscales, dtype=np.float64)
    rows = {
        "variance": float(np.ravel(theta.kernel.variance)[0]),
        "lengthscale_min": float(lengthscales.min()),
        "lengthscale_mean": float(np.exp(np.mean(np.log(lengthscales)))),
        "lengthscale_max": float(lengthscales.max()),
    }
    names = getattr(theta.likelihood, "_fields", ())
    return rows | {k: float(x) for k, x in zip(names, theta.likelihood, strict=True)}
