"""Options of `svgpbench run` that select this machine, a Dask cluster, or jobs of a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import typer

from svgpbench.errors import UserError

if TYPE_CHECKING:
    from svgpbench.runs.slots import Executor

CONNECT_S = 20.0
WORKERS_START_S = 60.0


class ClusterOptions(NamedTuple):
    """Options `--dask`, `--slurm`, `--pbs` and `--cluster` of the command line."""

    dask: str | None
    slurm: bool
    pbs: bool
    cluster: Sequence[str]

    @property
    def queue(self) -> Literal["slurm", "pbs"] | None:
        """Job queue that is requested, or None."""
        return "slurm" if self.slurm else "pbs" if self.pbs else None

    def check(self, jobs: int | None) -> None:
        """Raise `UserError` for options that exclude each other, or if Dask is needed but missing."""
        clusters = [self.dask is not None, self.slurm, self.pbs]
        if sum(clusters) > 1:
            raise UserError("give one of --dask, --slurm and --pbs")
        if self.cluster and self.queue is None:
            raise UserError("--cluster says what jobs ask for; give --slurm or --pbs with it")
        if any(clusters) and jobs is not None:
            raise UserError(
                "--jobs is of this machine; Dask's workers say how many cells they take "
                "(--cluster jobs=N of a queue)"
            )
        if any(clusters):
            try:
                import dask_jobqueue  # noqa: F401
                import distributed  # noqa: F401
            except ImportError as error:
                raise UserError(
                    f"{error.name} is not installed: pip install 'svgpbench[dask]'"
                ) from None


@contextmanager
def cluster_executor(
    options: ClusterOptions,
    timeout: float | None,
    memory: float | None,
    on_notice: Callable[[str], None],
) -> Iterator[Executor | None]:
    """Yield the executor of the cells, or None for this machine. Jobs of a queue end on exit."""
    if options.dask is not None:
        with dask_client(options.dask) as client:
            yield _executor(client, timeout, memory, WORKERS_START_S, on_notice)
    elif options.queue is not None:
        from distributed import Client

        from svgpbench.runs.job_queues import JobOptions, job_cluster

        job_options = JobOptions.parse(options.cluster)
        with job_cluster(options.queue, job_options) as cluster:
            cluster.scale(jobs=job_options.jobs)
            with Client(cluster, set_as_default=False) as client:
                # no limit: the waiting time in a queue is unknown
                yield _executor(client, timeout, memory, None, on_notice)
    else:
        yield None


def _executor(
    client: Any,
    timeout: float | None,
    memory: float | None,
    patience_s: float | None,
    on_notice: Callable[[str], None],
) -> Executor:
    from svgpbench.runs.dask_slots import DaskExecutor

    return DaskExecutor(
        client, timeout=timeout, memory=memory, patience_s=patience_s, on_notice=on_notice
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
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"--dask {address}: no Dask scheduler answers ({reason})") from None
    with client:
        yield client


def print_job_script(options: ClusterOptions) -> None:
    """Print the job that `--slurm` or `--pbs` would submit. Raises `UserError` without either."""
    from svgpbench.runs.job_queues import JobOptions, job_cluster

    if options.queue is None:
        raise UserError("--job-script prints the job of a queue; give --slurm or --pbs with it")
    with job_cluster(options.queue, JobOptions.parse(options.cluster)) as cluster:
        typer.echo(cluster.job_script().rstrip())
