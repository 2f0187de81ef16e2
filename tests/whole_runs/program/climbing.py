"""L-BFGS (SciPy's L-BFGS-B without bounds) up a function of named arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from autograd import value_and_grad
from scipy.optimize import minimize

from program.parameters import Floats, Table


def climbed(
    function: Callable[[Table], Any],
    start: Table,
    iterations: int,
    visit: Callable[[Table], None] = lambda _: None,
) -> Table:
    """Return the arrays after at most so many iterations of at most 21 evaluations; `visit` sees each."""
    names, shapes = list(start), [np.shape(x) for x in start.values()]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def arrays(numbers: Floats) -> Table:
        parts = np.split(np.array(numbers), ends)
        return {n: x.reshape(s) for n, x, s in zip(names, parts, shapes, strict=True)}

    def down(numbers: Floats) -> tuple[float, Floats]:
        value, gradient = value_and_grad(function)(arrays(numbers))
        return -float(value), -np.concatenate([np.ravel(gradient[name]) for name in names])

    first = np.concatenate([np.ravel(x) for x in start.values()])
    options = {"maxiter": iterations, "maxfun": 21 * iterations, "ftol": 1e-13, "gtol": 1e-9}
    found = minimize(
        down,
        first,
        jac=True,
        method="L-BFGS-B",
        options=options,
        callback=lambda x: visit(arrays(x)),
    )
    return arrays(found.x)
