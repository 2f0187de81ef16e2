"""svgpbench: a benchmark and reproducibility harness for sparse variational Gaussian processes."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("svgpbench")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0+source"
