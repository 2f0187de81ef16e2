"""The backend `single`: NumPy in float32 alone, as an accelerator without float64 has it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from svgpbench.ops import Capabilities
from svgpbench_backends.numpy_backend import NumpyOps


class SingleOps(NumpyOps):
    """NumPy's arrays in float32."""

    capabilities: ClassVar[Capabilities] = Capabilities(("eager",), ("float32",), ("cpu",))
    name = "single"

    def zeros(self, shape: Any) -> Any:
        return np.zeros(shape, self.dtype)

    def eye(self, n: int) -> Any:
        return np.eye(n, dtype=self.dtype)

    def solve_triangular(
        self, a: Any, b: Any, *, lower: bool = True, transpose: bool = False
    ) -> Any:
        return super().solve_triangular(a, b, lower=lower, transpose=transpose).astype(self.dtype)
