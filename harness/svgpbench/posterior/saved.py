"""Posteriors in files: an .npz of numbers and one JSON text; reading them executes no code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from svgpbench.backends import load_backend
from svgpbench.config import KernelConfig
from svgpbench.errors import UserError
from svgpbench.experiments.error_messages import one_line
from svgpbench.kernels import Theta
from svgpbench.kernels.bases import Decoupled, Features
from svgpbench.kernels.kernels import KernelParameters
from svgpbench.methods import build_method
from svgpbench.npz import npz_path, read_numbers, write_numbers
from svgpbench.posterior.posterior import Floats, Posterior, TrainingFacts
from svgpbench.training.blocks import prior_at
from svgpbench.tree import named_leaves, rebuild

FACTS, X_MEAN, X_SCALE, MEAN = "facts", "x_mean", "x_scale", "theta.mean"
Arrays = dict[str, npt.NDArray[Any]]


def save_posterior(posterior: Posterior, path: str | Path) -> Path:
    """Write a posterior to an .npz file, whole or not at all.

    The file has arrays of float64 and one JSON text. `load_posterior` reads it without executing anything.

    Args:
        posterior: what `fit` returned.
        path: the file; it is replaced if it is there.

    Returns:
        The path.

    Raises:
        UserError: for another suffix than .npz, or if the file cannot be written.

    Examples:
        >>> import numpy as np, tempfile
        >>> from svgpbench.api import fit, load_posterior, save_posterior
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> posterior = fit(X, np.sin(6.0 * X[:, 0]), inducing=10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kept = load_posterior(save_posterior(posterior, f"{folder}/sine.npz"))
        >>> bool((kept.predict(X) == posterior.predict(X)).all(axis=None))
        True
    """
    file = npz_path(path)
    text = posterior.facts.model_dump_json().encode()
    leaves = named_leaves(posterior.theta, "theta") + named_leaves(posterior.state, "state")
    arrays = {name: np.asarray(x, dtype=np.float64) for name, x in leaves}
    scales = {X_MEAN: posterior.x_mean, X_SCALE: posterior.x_scale}
    write_numbers(file, FACTS, text, scales | arrays)
    return file


def load_posterior(path: str | Path) -> Posterior:
    """Read a posterior from a file that `save_posterior` wrote.

    Args:
        path: the .npz file.

    Raises:
        UserError: if the file is not a posterior, or if its arrays do not fit its method.

    Examples:
        See `save_posterior`.
    """
    file = Path(path)
    text, arrays = read_numbers(file, FACTS, "posterior")
    try:
        facts = TrainingFacts.model_validate_json(text)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise UserError(f"{file} holds no posterior: its {FACTS!r} are no JSON") from None
        raise UserError(f"{file}: {one_line(error, TrainingFacts, json.loads(text))}") from None
    count = len(facts.features)
    scales = _kernel(file, arrays, facts.kernel, count, "theta.kernel")
    theta = Theta(scales, (), _basis(file, arrays, facts))
    blank = Posterior(
        facts,
        theta,
        (),
        _array(file, arrays, X_MEAN, (count,)),
        _array(file, arrays, X_SCALE, (count,)),
    )
    latents = blank.model.latents
    if MEAN in arrays:  # files without it have a prior mean of 0
        theta = theta._replace(mean=_array(file, arrays, MEAN, (latents,)))
    parameters = blank.model.likelihood.initial_parameters()
    named = named_leaves(parameters, "theta.likelihood")
    values = iter([_array(file, arrays, name, ()) for name, _ in named])
    theta = theta._replace(likelihood=rebuild(parameters, values))
    ops = load_backend("numpy")
    prior = prior_at(ops, blank.model, blank.method, theta)
    # the method, not the file, says which arrays a state has and what their shapes are
    like = blank.method.initial_state(ops, prior, latents, facts.n)
    shapes = [(name, np.shape(x)) for name, x in named_leaves(like, "state")]
    state = rebuild(like, iter([_array(file, arrays, name, shape) for name, shape in shapes]))
    return Posterior(facts, theta, state, blank.x_mean, blank.x_scale)


def _kernel(file: Path, arrays: Arrays, kernel: KernelConfig, count: int, name: str) -> Any:
    """Return the parameters of a kernel; for a compound kernel, a tuple with those of its parts."""
    if kernel.parts:
        parts = enumerate(kernel.parts)
        return tuple(_kernel(file, arrays, part, count, f"{name}.{i}") for i, part in parts)
    return KernelParameters(
        _array(file, arrays, f"{name}.variance", (1,)),
        _array(file, arrays, f"{name}.lengthscales", (1, count if kernel.ard else 1)),
    )


def _basis(file: Path, arrays: Arrays, facts: TrainingFacts) -> Any:
    """Return the basis or bases of the method, read from the file."""

    def basis(name: str) -> Any:
        def points(array: str) -> Floats:
            return _array(file, arrays, array, (-1, len(facts.features)))

        if facts.functions == "features":
            return Features(points(f"{name}.centres"), points(f"{name}.widths"))
        return points(name)

    name = "theta.inducing"
    if build_method(facts.method.name, facts.method.options).basis == "decoupled":
        return Decoupled(basis(f"{name}.gamma"), basis(f"{name}.beta"))
    return basis(name)


def _array(file: Path, arrays: Arrays, name: str, shape: tuple[int, ...]) -> Floats:
    """Return the array of a name; −1 in the shape is any size of at least 1.

    Raises `UserError` if it is missing or has another shape or dtype.
    """
    if name not in arrays:
        raise UserError(f"{file} holds no posterior of its method: it has no {name!r}")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        size == expected or (expected == -1 and size > 0)
        for size, expected in zip(array.shape, shape, strict=True)
    )
    if not fits or array.dtype != np.float64:
        raise UserError(f"{file}: {name!r} is {array.dtype} of shape {array.shape}, not {shape}")
    return array
