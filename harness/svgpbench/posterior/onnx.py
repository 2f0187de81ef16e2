"""A posterior as an ONNX graph, which predicts without Python: X in the units of the table, in float64.

The graph has the products of `methods.prediction_weights`, as ONNX has no triangular solve. Products with
their weights cancel where K(Z, Z) is ill-conditioned. So before the file is written, the graph is compared
with `Posterior.latent`, which solves. At a condition of 1e10 the factorisation of K(Z, Z) lost more than the
products did (`tests/posterior/test_onnx.py`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from svgpbench.atomic import refuse_absent_folder, write_whole
from svgpbench.backends import load_backend
from svgpbench.config import KernelConfig
from svgpbench.errors import UserError
from svgpbench.kernels.bases import common_centre
from svgpbench.likelihoods import GaussianLikelihood
from svgpbench.methods.prediction_weights import PredictionWeights, prediction_weights

if TYPE_CHECKING:
    from svgpbench.posterior.posterior import Floats, Posterior

MOST_ERROR = 1e-8
"""Largest error of a mean, in prior standard deviations, and of a variance, in prior variances."""

OPSET, IR_VERSION = 17, 8
"""Versions of the operators and the format: those of 2022, which any runtime of today reads."""


class Graph:
    """Nodes and constants of a graph in the order in which they are made; values go by their names."""

    def __init__(self, onnx: ModuleType) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """Add an array of float64, or of whole numbers, and return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, operator: str, *inputs: Any, output: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output; inputs that are no names become constants."""
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return output


def _se(g: Graph, d2: str) -> str:
    return g.add("Exp", g.add("Mul", d2, -0.5))


def _matern32(g: Graph, d2: str) -> str:
    r = g.add("Sqrt", g.add("Mul", d2, 3.0))
    return g.add("Mul", g.add("Add", r, 1.0), g.add("Exp", g.add("Neg", r)))


def _matern52(g: Graph, d2: str) -> str:
    r = g.add("Sqrt", g.add("Mul", d2, 5.0))
    linear = g.add("Add", g.add("Add", r, 1.0), g.add("Mul", d2, 5.0 / 3.0))
    return g.add("Mul", linear, g.add("Exp", g.add("Neg", r)))


SHAPES: dict[str, Callable[[Graph, str], str]] = {
    "se": _se,
    "matern32": _matern32,
    "matern52": _matern52,
}
"""The correlation at squared scaled distances, by kernel."""


def write_onnx(posterior: Posterior, path: str | Path) -> Path:
    """Write the graph of a posterior; see `Posterior.to_onnx`."""
    file = Path(path)
    if file.suffix != ".onnx":
        raise UserError(f"{file}: a graph is kept in a file that ends in .onnx")
    refuse_absent_folder(file)
    try:
        import onnx
        import onnx.reference
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'svgpbench[onnx]'") from None
    model = _model(onnx, posterior, weights(posterior))
    _check_digits(onnx, model, posterior)
    write_whole(file, model.SerializeToString())
    return file


def weights(posterior: Posterior) -> PredictionWeights:
    """Return α, G and a; raises `UserError` if q(f) does not come from one q(u) of function values."""
    (prior, q), method = posterior.factors, posterior.method
    ops, inducing = load_backend("numpy"), posterior.theta.inducing
    found = prediction_weights(ops, method, inducing, prior, q)
    if found is None or posterior.facts.functions == "features":
        raise UserError(
            f"method {method.name!r} on {posterior.facts.functions} has no q(u) of function values at one "
            "set of inducing inputs, and so no graph"
        )
    return found


def _model(onnx: ModuleType, posterior: Posterior, w: PredictionWeights) -> Any:
    """Return the model: X [t, D] to `latent_mean`, `latent_variance` [t, P], and of Gaussian y both [t]."""
    facts, theta, g = posterior.facts, posterior.theta, Graph(onnx)
    x = g.add("Div", g.add("Sub", "X", posterior.x_mean), posterior.x_scale)
    K = _kernel(g, facts.kernel, theta.kernel, x, np.asarray(theta.inducing))
    # m₀ [P]
    zero = np.zeros((posterior.model.latents, 1))
    offset = np.asarray(posterior.model.conditional(theta).of_f(zero))[:, 0]
    mean = g.add("Add", g.add("MatMul", K, w.alpha.T), offset, output="latent_mean")
    KG = g.add("MatMul", K, w.G)  # [P, t, M]
    explained = g.add("MatMul", g.add("Mul", KG, KG), w.a[..., None])
    by_row = g.add("Transpose", g.add("Squeeze", explained, np.array([2])), perm=[1, 0])
    variance = g.add("Sub", _prior_variance(posterior), by_row, output="latent_variance")
    outputs: dict[str, list[str | int]] = {
        "latent_mean": ["t", posterior.model.latents],
        "latent_variance": ["t", posterior.model.latents],
    }
    if isinstance(posterior.model.likelihood, GaussianLikelihood):
        scale, column = facts.y_scale, np.array([1])
        flat = g.add("Mul", g.add("Squeeze", mean, column), scale)
        g.add("Add", flat, facts.y_mean, output="mean")
        noisy = g.add("Add", g.add("Squeeze", variance, column), theta.likelihood.noise_variance)
        g.add("Mul", noisy, scale**2, output="variance")
        outputs["mean"] = outputs["variance"] = ["t"]
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    graph = helper.make_graph(
        g.nodes,
        "posterior",
        [helper.make_tensor_value_info("X", double, ["t", len(facts.features)])],
        [helper.make_tensor_value_info(x, double, shape) for x, shape in outputs.items()],
        g.constants,
    )
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(
        graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="svgpbench"
    )
    properties = {
        "inputs": json.dumps(facts.features),
        "likelihood": facts.likelihood.name,
        "classes": json.dumps(facts.class_labels or ()),
        "y_mean": repr(facts.y_mean),
        "y_scale": repr(facts.y_scale),
    }
    helper.set_model_props(model, properties)
    onnx.checker.check_model(model, full_check=True)
    return model


def _kernel(g: Graph, kernel: KernelConfig, parameters: Any, x: str, Z: Floats) -> str:
    """Add the nodes of K(X, Z) [t, M] at standardised inputs x [t, D], as `Kernel.cross` computes it."""
    if kernel.parts:
        pairs = zip(kernel.parts, parameters, strict=True)
        blocks = [_kernel(g, part, p, x, Z) for part, p in pairs]
        operator = {"sum": "Add", "product": "Mul"}[kernel.name]
        return functools.reduce(lambda one, other: g.add(operator, one, other), blocks)
    if kernel.name not in SHAPES:
        raise UserError(f"kernel {kernel.name!r} has no ONNX graph; {', '.join(SHAPES)} have")
    centre, scale = np.asarray(common_centre(load_backend("numpy"), Z)), parameters.lengthscales[0]
    z = (Z - centre) / scale
    rows = g.add("Div", g.add("Sub", x, centre), scale)
    squares = g.add("ReduceSum", g.add("Mul", rows, rows), np.array([1]))
    cross = g.add("MatMul", g.add("Mul", rows, -2.0), z.T)
    d2 = g.add("Add", g.add("Add", cross, squares), np.sum(z * z, axis=-1))
    # rounding may leave −1e-16 where points coincide
    correlation = SHAPES[kernel.name](g, g.add("Max", d2, 0.0))
    return g.add("Mul", correlation, parameters.variance[0])


def _prior_variance(posterior: Posterior) -> float:
    """Return κ, the same at every input."""
    k = posterior.model.covariance(load_backend("numpy"), posterior.theta)
    return float(k.diagonal(np.zeros((1, len(posterior.facts.features))))[0, 0])


def _check_digits(onnx: ModuleType, model: Any, posterior: Posterior) -> None:
    """Raise `UserError` if the graph misses `latent` at Z, or between inducing inputs, by `MOST_ERROR`."""
    Z = np.asarray(posterior.theta.inducing)
    X = posterior.x_mean + posterior.x_scale * np.concatenate([Z, 0.5 * (Z[1:] + Z[:-1])])
    evaluator = onnx.reference.ReferenceEvaluator(model)
    found = evaluator.run(["latent_mean", "latent_variance"], {"X": X})
    prior = _prior_variance(posterior)
    units = (np.sqrt(prior), prior)
    pairs = zip(found, posterior.latent(X), units, strict=True)
    of_mean, of_variance = (float(np.abs(x.T - y).max() / unit) for x, y, unit in pairs)
    if not max(of_mean, of_variance) <= MOST_ERROR:  # also if it is NaN
        raise UserError(
            f"a graph would miss means by {of_mean:.1g} prior standard deviations and variances by "
            f"{of_variance:.1g} of the prior's, more than {MOST_ERROR:g}: K(Z, Z) is too ill-conditioned "
            "for products; fit with fewer inducing inputs or a larger jitter"
        )
