"""A posterior in a notebook: one line of text, an HTML summary, and its hyperparameters."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from svgpbench.config import KernelConfig
from svgpbench.results.unsettled import AT_THE_END
from svgpbench.stats.convergence import BoundTrace, bound_trace

if TYPE_CHECKING:
    from svgpbench.posterior.posterior import Floats, Posterior, TrainingFacts

SHOWN = 12
"""Most hyperparameters in an HTML summary."""

SPARKLINE = (160.0, 28.0)
"""Width and height of the bound's curve in an HTML summary, in pixels."""


def summary(posterior: Posterior) -> str:
    """Return the model, the data and the bound of a posterior in one line."""
    facts = posterior.facts
    parts = [
        f"{_method_name(facts)}, {facts.likelihood.name}, {_kernel_name(facts.kernel)}",
        *([f"n={facts.n}"] if facts.n else []),  # 0 of another library's, which does not say it
        f"D={len(facts.features)}",
        *([] if (count := _inducing_count(posterior)) is None else [f"M={count}"]),
        *([f"ELBO {posterior.elbo:.6g}"] if facts.trace else []),
        *([ended] if (ended := _ended(facts)) else []),
        *([moving] if (moving := unsettled(posterior)) else []),
    ]
    return f"<Posterior {', '.join(parts)}>"


def end_of_bound(posterior: Posterior) -> BoundTrace:
    """Return the bound of the training, with the region within which that of a fit has settled."""
    facts = posterior.facts
    trace = facts.trace
    bound = bound_trace(trace.get("iteration", ()), trace.get("elbo", ()), facts.minibatches)
    return bound.with_fit_region(facts.n, posterior.model.likelihood.discrete)


def unsettled(posterior: Posterior) -> str:
    """Return how the bound still moved in the last quarter of the training; empty if it had settled.

    It had settled if it rose and fell by at most the region of a fit.
    """
    move = end_of_bound(posterior).unsettled
    return move and f"the bound {move} {AT_THE_END}"


def hyperparameters(posterior: Posterior) -> pd.DataFrame:
    """Return one row per hyperparameter: `parameter`, `input` and `value`, in the units of the table.

    A lengthscale has the unit of its input. In regression, variances have the squared unit of y. A
    lengthscale that all inputs share has an empty `input`; its unit is one standard deviation of each input.
    In a product of kernels the first variance has the unit, and the others have none.
    """
    facts, theta = posterior.facts, posterior.theta
    unit = facts.y_scale**2
    rows = _kernel_rows(facts, posterior.x_scale, facts.kernel, theta.kernel, unit, "")
    for name, value in getattr(theta.likelihood, "_asdict", dict)().items():
        power = {"noise_variance": 2, "scale": 1}.get(name, 0)
        rows.append((name, "", float(value) * facts.y_scale**power))
    return pd.DataFrame(rows, columns=["parameter", "input", "value"])


def _kernel_rows(
    facts: TrainingFacts,
    x_scale: Floats,
    kernel: KernelConfig,
    parameters: Any,
    unit: float,
    name: str,
) -> list[tuple[str, str, float]]:
    """Return the rows of a kernel; `unit` is that of its variance, and `name` the kernel's place."""
    if kernel.parts:
        rows = []
        for index, part in enumerate(kernel.parts):
            part_unit = unit if index == 0 or kernel.name == "sum" else 1.0
            part_name = f"{name}{part.name} {index + 1} "
            rows += _kernel_rows(facts, x_scale, part, parameters[index], part_unit, part_name)
        return rows
    variance = (f"{name}variance", "", float(np.ravel(parameters.variance)[0]) * unit)
    lengthscales = np.ravel(parameters.lengthscales)
    if not kernel.ard:
        return [variance, (f"{name}lengthscale", "", float(lengthscales[0]))]
    in_units = zip(facts.features, lengthscales * x_scale, strict=True)
    return [variance, *((f"{name}lengthscale", x, float(value)) for x, value in in_units)]


def html_summary(posterior: Posterior) -> str:
    """Return an HTML table of the model, the data, the bound with its curve, and the hyperparameters."""
    facts = posterior.facts
    count, inputs = _inducing_count(posterior), f"{len(facts.features)} inputs"
    lines = {
        "method": _method_name(facts),
        "likelihood": facts.likelihood.name,
        "kernel": _kernel_name(facts.kernel),
        "data": f"{facts.n} rows, {inputs}" if facts.n else inputs,
    }
    if count is not None:
        lines["inducing inputs"] = str(count)
    rows = {name: html.escape(value) for name, value in lines.items()}
    if facts.trace:
        rows["ELBO"] = f"{posterior.elbo:.6g} {_sparkline(posterior.trace['elbo'])}"
        if ended := _ended(facts):
            rows["training"] = ended
        if moving := unsettled(posterior):
            rows["warning"] = f"<b>{html.escape(moving)}</b>"
    table = hyperparameters(posterior)
    for parameter, name, value in table.head(SHOWN).itertuples(index=False):
        rows[html.escape(f"{parameter} {name}".strip())] = f"{value:.4g}"
    if (more := len(table) - SHOWN) > 0:
        rows["…"] = f"{more} more in <code>hyperparameters()</code>"
    body = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{value}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table><caption>Posterior</caption><tbody>{body}</tbody></table>"


def _sparkline(values: pd.Series[float]) -> str:
    """Return an inline SVG of a curve, from the median of its first half upwards to show its end."""
    finite = values[np.isfinite(values)].to_numpy()
    if len(finite) < 2:
        return ""
    width, height = SPARKLINE
    low = float(np.median(finite[: (len(finite) + 1) // 2]))
    high = float(finite.max())
    shares = np.clip((finite - low) / ((high - low) or 1.0), 0.0, 1.0)
    points = " ".join(
        f"{1 + i * (width - 2) / (len(shares) - 1):.1f},{1 + (1 - share) * (height - 2):.1f}"
        for i, share in enumerate(shares)
    )
    return (
        f'<svg width="{width:g}" height="{height:g}" role="img" aria-label="bound against iteration">'
        f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="1.5"/></svg>'
    )


def _method_name(facts: TrainingFacts) -> str:
    return f"{facts.method.name} (auto)" if facts.method_is_automatic else facts.method.name


def _ended(facts: TrainingFacts) -> str:
    """Return what ended the training; empty if it could only end at its limit."""
    if not facts.ended:
        return ""
    why = "settled" if facts.ended == "settled" else "the limit"
    return f"{facts.trace['iteration'][-1]} iterations ({why})"


def _kernel_name(kernel: KernelConfig) -> str:
    if kernel.parts:
        return f"{kernel.name}({', '.join(map(_kernel_name, kernel.parts))})"
    return kernel.name


def _inducing_count(posterior: Posterior) -> int | None:
    """Return M, or None if the method has two bases."""
    if posterior.method.basis == "decoupled":
        return None
    basis = posterior.theta.inducing
    return len(basis[0] if isinstance(basis, tuple) else basis)
