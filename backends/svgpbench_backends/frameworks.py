"""Packages, threads and environment of each framework, described without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from svgpbench.ops import Capabilities, Framework

FLOATS, DEVICES = ("float64", "float32"), ("cpu", "cuda")
JAX_OFFERS = Capabilities(("jit", "eager"), FLOATS, DEVICES)
TORCH_OFFERS = Capabilities(("eager", "compile"), FLOATS, DEVICES)
TENSORFLOW_OFFERS = Capabilities(("function", "xla", "eager"), FLOATS, DEVICES)


def _jax_environment(device: str, threads: int) -> dict[str, str]:
    # XLA takes the size of its pool from NPROC; for a GPU that pool compiles, and must not be one thread
    pool = {"NPROC": str(threads)} if device == "cpu" else {}
    return pool | {
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": device,  # "" selects the best platform
        # JAX's default for float32 products on a GPU may be TF32, with 10 bits after the point
        "JAX_DEFAULT_MATMUL_PRECISION": "highest",
        # by default JAX takes three quarters of a GPU's memory at its start
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


def _jax_cache(folder: str) -> dict[str, str]:
    if not folder:
        return {"JAX_ENABLE_COMPILATION_CACHE": "0"}
    return {
        "JAX_ENABLE_COMPILATION_CACHE": "1",
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_COMPILATION_CACHE_MAX_SIZE": str(2**28),  # bytes; programs used long ago go first
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


JAX = Framework(
    module="jax",
    install="svgpbench[jax]",
    distributions=("jax", "jaxlib"),
    environment=_jax_environment,
    cache=_jax_cache,
    device=lambda jax: str(jax.default_backend()),
    # JAX has no other count of a function's programs; an eager function has no cache
    compilations=lambda jax, functions: sum(
        f._cache_size() for f in functions if hasattr(f, "_cache_size")
    ),
    # XLA runs LAPACK calls side by side; their threads would compete
    blas_threads=lambda threads: 1,
    vmap=lambda jax: jax.vmap,
    compiles_slowly=True,
    capabilities=JAX_OFFERS,
)


def _pin_torch(torch: Any, threads: int) -> None:
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)


def _torch_compilations(torch: Any, functions: Sequence[Callable[..., Any]]) -> int:
    """Return the number of graphs in the process; parts of a function have their own names."""
    # eager work does not import the compiler, so it is not imported here either
    dynamo = sys.modules.get("torch._dynamo")
    return int(dynamo.utils.counters["stats"]["unique_graphs"]) if dynamo else 0


def _torch_forget(torch: Any) -> None:
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


TORCH = Framework(
    module="torch",
    install="svgpbench[torch]",
    distributions=("torch",),
    pin=_pin_torch,
    device=lambda torch: "cuda" if torch.cuda.is_available() else "cpu",
    compilations=_torch_compilations,
    forget=_torch_forget,
    vmap=lambda torch: torch.func.vmap,
    capabilities=TORCH_OFFERS,
)


def _pin_tensorflow(tensorflow: Any, threads: int) -> None:
    tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
    tensorflow.config.threading.set_inter_op_parallelism_threads(threads)


def _tensorflow_compilations(tensorflow: Any, functions: Sequence[Callable[..., Any]]) -> int:
    counts = (getattr(f, "experimental_get_tracing_count", None) for f in functions)
    return sum(count() for count in counts if count is not None)  # None for an eager function


TENSORFLOW = Framework(
    module="tensorflow",
    install="svgpbench[tensorflow]",
    distributions=("tensorflow", "tensorflow-cpu"),  # the same module under two names
    environment=lambda device, threads: {
        "TF_NUM_INTRAOP_THREADS": str(threads),
        "TF_NUM_INTEROP_THREADS": str(threads),
        # by default TensorFlow takes nearly all memory of a GPU at its start
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    },
    pin=_pin_tensorflow,
    device=lambda tf: "cuda" if tf.config.list_physical_devices("GPU") else "cpu",
    compilations=_tensorflow_compilations,
    capabilities=TENSORFLOW_OFFERS,
)
