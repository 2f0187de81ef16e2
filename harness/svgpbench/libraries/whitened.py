"""The exported form of a posterior: an .npz of numbers and one JSON text. Reading it needs only NumPy.

Latents share one kernel and have constant prior means. Their values at inducing inputs Z are
u = latent_mean + Lv with LLᵀ = K(Z, Z) + jitter·I and q(v) = N(mean, chol cholᵀ).
The jitter is added to K(Z, Z) only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from svgpbench.errors import UserError
from svgpbench.npz import npz_path, read_numbers, write_numbers

Floats = npt.NDArray[np.float64]

FORMAT = 1
FACTS = "whitened"
WORDS: dict[str, type] = {
    "format": int,
    "kernel": str,
    "likelihood": str,
    "parameters": dict,
    "features": list,
    "class_labels": list,
    "rows": int,
}
"""Keys of the JSON text and their types; empty `class_labels` mean regression."""

SHAPES = {
    "variance": "",
    "lengthscales": "l",
    "jitter": "",
    "Z": "MD",
    "mean": "PM",
    "chol": "PMM",
    "x_mean": "D",
    "x_scale": "D",
    "y_mean": "",
    "y_scale": "",
}
"""Arrays and their axes; l is D, or 1 for a kernel with one lengthscale."""
OPTIONAL = {"latent_mean": "P"}
"""Arrays that a file may lack; prior means are then 0."""

LIKELIHOODS: dict[str, dict[str, type]] = {
    "gaussian": {"noise_variance": float},
    "bernoulli-probit": {"squash": float},
    "softmax": {"classes": int, "samples": int},
}
"""Likelihoods that can be exchanged, and their parameters, named as in `svgpbench.api.fit`."""

POSITIVE = ("variance", "lengthscales", "x_scale", "y_scale")


class TableScaling(NamedTuple):
    """Scaling of a table: the model's inputs are (x − x_mean)/x_scale, its y is (y − y_mean)/y_scale."""

    features: tuple[str, ...]  # the D inputs, in their order
    x_mean: Floats  # [D]
    x_scale: Floats  # [D]
    y_mean: float = 0.0
    y_scale: float = 1.0
    class_labels: tuple[str, ...] = ()  # class 0 first; none for regression
    rows: int = 0  # training rows; 0 if unknown


class ExportedPosterior(NamedTuple):
    """A posterior in the exported form; Z is in the model's units."""

    kernel: str  # se, matern32 or matern52
    variance: float
    lengthscales: Floats  # [D], or [1] if the kernel has one
    likelihood: str
    parameters: dict[str, float]  # of the likelihood, as `LIKELIHOODS` names them
    jitter: float
    Z: Floats  # [M, D]
    mean: Floats  # [P, M]
    chol: Floats  # [P, M, M], lower, its diagonal positive
    table: TableScaling
    latent_mean: Floats | tuple[()] = ()  # [P]; () means 0


def plain_table(dimensions: int) -> TableScaling:
    """Return the table of inputs that were not standardised, named x1, x2 and so on."""
    names = tuple(f"x{index + 1}" for index in range(dimensions))
    return TableScaling(names, np.zeros(dimensions), np.ones(dimensions))


def whiten(K: Floats, mean: Floats, chol: Floats) -> tuple[Floats, Floats]:
    """Return (L⁻¹mean, L⁻¹chol) of u ~ N(mean [P, M], chol cholᵀ [P, M, M]), where LLᵀ = K.

    K includes the jitter. Raises `UserError` if it is not positive definite.
    """
    L = lower_factor(K, "K(Z, Z)")
    stacked = np.concatenate([mean[..., None], chol], axis=-1)
    # NumPy has no triangular solve, and reading a posterior must need NumPy alone
    solved = np.asarray(np.linalg.solve(L, stacked), dtype=np.float64)
    return solved[..., 0], solved[..., 1:]


def named_kernel(kernel: Any, kinds: Mapping[str, Any]) -> str:
    """Return svgpbench's name of a kernel of another library.

    Raises `UserError` if it is not one of `kinds` on all inputs.
    """
    for name, kind in kinds.items():
        if type(kernel) is kind and kernel.active_dims == slice(None):
            return name
    raise UserError(f"kernel {type(kernel).__name__}: only {', '.join(kinds)} on all inputs cross")


def kernel_class(
    path: str | Path, whitened: ExportedPosterior, kinds: Mapping[str, Any], library: str
) -> Any:
    """Return the entry of `kinds` for the kernel of a posterior that was read from `path`.

    Raises `UserError` if the library has no such kernel.
    """
    if whitened.kernel not in kinds:
        raise UserError(f"{path}: {library} has no kernel {whitened.kernel!r} as svgpbench has it")
    return kinds[whitened.kernel]


def missing_likelihood(path: str | Path, whitened: ExportedPosterior, library: str) -> UserError:
    """Return the error for a posterior in a file whose likelihood the library lacks."""
    return UserError(f"{path}: likelihood {whitened.likelihood!r} does not cross to {library}")


def foreign_likelihood(likelihood: Any) -> UserError:
    """Return the error for a likelihood of another library that svgpbench lacks."""
    name = type(likelihood).__name__
    return UserError(f"likelihood {name}: svgpbench has none that is the same")


def lower_factor(A: Floats, what: str) -> Floats:
    """Return the Cholesky factor of A [..., n, n].

    Raises `UserError`, which calls A `what`, if A is not positive definite.
    """
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise UserError(f"{what} is not positive definite: the posterior has no factor") from None


def with_positive_diagonal(chol: Floats) -> Floats:
    """Return the lower factor [P, M, M] of chol cholᵀ that has a positive diagonal."""
    # a solve with pivoting may leave rounding above the diagonal, which `_check` refuses
    lower = np.tril(chol)
    # a column's sign does not change the product, and GPflow's q_sqrt may have either
    signs = np.where(np.diagonal(lower, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)
    return np.asarray(lower * signs[..., None, :], dtype=np.float64)


def save_whitened(whitened: ExportedPosterior, path: str | Path) -> Path:
    """Write a posterior atomically; raises `UserError` if its values are not valid."""
    file = npz_path(path)
    values = {"format": FORMAT, **whitened.table._asdict(), **whitened._asdict()}
    facts = {x: list(values[x]) if kind is list else values[x] for x, kind in WORDS.items()}
    arrays = {x: np.asarray(values[x], dtype=np.float64) for x in SHAPES}
    if np.any(whitened.latent_mean):
        arrays["latent_mean"] = np.asarray(whitened.latent_mean, dtype=np.float64)
    _check(file, facts, arrays)
    write_numbers(file, FACTS, json.dumps(facts).encode(), arrays)
    return file


def load_whitened(path: str | Path) -> ExportedPosterior:
    """Return a posterior that `save_whitened` wrote; raises `UserError` for any other file."""
    file = Path(path)
    text, arrays = read_numbers(file, FACTS, "exported posterior")
    try:
        facts = json.loads(text)
    except ValueError:
        raise UserError(f"{file} holds no exported posterior: its {FACTS!r} are no JSON") from None
    _check(file, facts, arrays)
    values: dict[str, Any] = {x: facts[x] for x in WORDS}
    values |= {x: tuple(facts[x]) for x, kind in WORDS.items() if kind is list}
    values |= {x: arrays[x] if axes else float(arrays[x]) for x, axes in SHAPES.items()}
    values["latent_mean"] = arrays.get("latent_mean", ())
    values["table"] = TableScaling(**{x: values[x] for x in TableScaling._fields})
    return ExportedPosterior(**{x: values[x] for x in ExportedPosterior._fields})


def _check(file: Path, facts: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise `UserError` if the JSON text and the arrays are not those of one posterior."""
    _check_words(file, facts)
    if odd := sorted((arrays.keys() - OPTIONAL.keys()) ^ SHAPES.keys()):
        raise UserError(f"{file}: {odd[0]!r} is missing from a posterior, or no part of one")
    sizes = {"D": len(facts["features"])}
    for name, axes in (SHAPES | OPTIONAL).items():
        if name in OPTIONAL and name not in arrays:
            continue
        array = arrays[name]
        # the first array with an axis sets its size; where zip stops early, `ndim` is wrong
        expected = [sizes.setdefault(axis, size) for axis, size in zip(axes, array.shape)]  # noqa: B905
        if array.dtype != np.float64 or array.shape != tuple(expected) or array.ndim != len(axes):
            raise UserError(f"{file}: {name!r} is {array.dtype} of shape {array.shape}")
        if not np.isfinite(array).all() or (name in POSITIVE and not (array > 0.0).all()):
            raise UserError(f"{file}: {name!r} holds NaN, infinity or a scale that is not above 0")
    if not all(sizes.values()) or sizes["l"] not in (1, sizes["D"]):
        raise UserError(f"{file}: {sizes['l']} lengthscales, sizes {sizes}: no model has these")
    # a Bernoulli likelihood has one latent function and two labels, a softmax C of both
    latents = facts["parameters"].get("classes", 1)
    if sizes["P"] != latents or len(facts["class_labels"]) not in (0, max(latents, 2)):
        raise UserError(f"{file}: {sizes['P']} latents for labels {facts['class_labels']}")
    if arrays["jitter"] < 0.0:
        raise UserError(f"{file}: the jitter is below 0")
    chol = arrays["chol"]
    if np.triu(chol, 1).any() or not (np.diagonal(chol, axis1=-2, axis2=-1) > 0.0).all():
        raise UserError(f"{file}: 'chol' is no lower factor with a positive diagonal")


def _check_words(file: Path, facts: Any) -> None:
    if not isinstance(facts, dict) or facts.keys() != WORDS.keys():
        raise UserError(f"{file}: {FACTS!r} has not the keys {', '.join(WORDS)}")
    for key, kind in WORDS.items():
        # not isinstance, for which JSON's true is an int
        if type(facts[key]) is not kind:
            raise UserError(f"{file}: {key} is {facts[key]!r}, no {kind.__name__}")
    if facts["format"] != FORMAT:
        raise UserError(f"{file}: format {facts['format']}; this version reads {FORMAT}")
    if not all(isinstance(x, str) for x in facts["features"] + facts["class_labels"]):
        raise UserError(f"{file}: features and class_labels are no names")
    if facts["rows"] < 0:
        raise UserError(f"{file}: rows is {facts['rows']}")
    name, parameters = facts["likelihood"], facts["parameters"]
    if name not in LIKELIHOODS:
        raise UserError(f"{file}: likelihood {name!r} is none of {', '.join(LIKELIHOODS)}")
    if {key: type(x) for key, x in parameters.items()} != LIKELIHOODS[name]:
        raise UserError(f"{file}: parameters of {name} are {parameters}")
