"""The conformance kit's arrays, functions and linear algebra, on every backend and dtype of this package."""

from svgpbench.checks.kit.test_arrays import *  # noqa: F403
from svgpbench.checks.kit.test_functions import *  # noqa: F403
from svgpbench.checks.kit.test_linear_algebra import *  # noqa: F403
