"""The option `--dask`, which computes cells on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from svgpbench.errors import UserError

if TYPE_CHECKING:
    from svgpbench.runs.slots import Executor

CONNECT_S = 20.0
WORKERS_START_S = 60.0


def check_dask(address: str | None, jobs: int | None) -> None:
    """Raise `UserError` if `--jobs` is given beside an address, or if Dask is needed but missing."""
    if address is None:
        return
    if jobs is not None:
        raise UserError("--jobs is of this machine; Dask's workers say how many cells they take")
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'svgpbench[dask]'") from None


@contextmanager
def cluster_executor(
    address: str | None,
    timeout: float | None,
    memory: float | None,
    on_notice: Callable[[str], None],
) -> Iterator[Executor | None]:
    """Yield the executor of the cells on the cluster of a scheduler, or None for this machine."""
    if address is None:
        yield None
        return
    from svgpbench.runs.dask_slots import DaskExecutor

    with dask_client(address) as client:
        yield DaskExecutor(
            client,
            timeout=timeout,
            memory=memory,
            patience_s=WORKERS_START_S,
            on_notice=on_notice,
        )


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """Yield a client of a Dask scheduler.

    Raises `UserError` if the address is invalid or no scheduler answers.
    """
    from distributed import Client
    from distributed.comm import parse_host_port

    try:  # check first: a client with an invalid address blocks when it is deleted
        parse_host_port(address.rpartition("://")[2])
    except ValueError:
        raise UserError(f"--dask {address}: give HOST:PORT, such as 10.0.0.7:8786") from None
    try:
        # not the default, which would send the caller's own work with Dask to this cluster
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"--dask {address}: no Dask scheduler answers ({reason})") from None
    with client:
        yield client
