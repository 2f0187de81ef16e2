"""`svgpbench sharded`: E-steps of t-SVGP on a table that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from svgpbench.cli.clusters import ClusterOptions, dask_client
from svgpbench.cli.options import AsJson, DaskAddress, KernelName, LikelihoodName
from svgpbench.cli.printing import print_json
from svgpbench.errors import UserError
from svgpbench.output.number_formats import in_bytes

if TYPE_CHECKING:
    from svgpbench.runs.sharded.climb import ShardedStep
    from svgpbench.runs.sharded.workers import Workers


def sharded_command(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Parquet file with the rows.")],
    target: Annotated[str, typer.Option("--target", metavar="COLUMN", help="Column to predict.")],
    *,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature", help="Input column; repeat for several. Every other column by default."
        ),
    ] = None,
    inducing: Annotated[
        int, typer.Option("--inducing", min=1, metavar="M", help="Number of inducing points.")
    ] = 256,
    kernel: KernelName = "matern52",
    lengthscale: Annotated[
        float, typer.Option("--lengthscale", help="Lengthscale of the kernel, above 0.")
    ] = 1.0,
    likelihood: LikelihoodName = "gaussian",
    iterations: Annotated[int, typer.Option("--iterations", min=1, help="Number of E-steps.")] = 1,
    rate: Annotated[float, typer.Option("--rate", help="Step size of the E-steps, above 0.")] = 1.0,
    backend: Annotated[
        str, typer.Option("--backend", metavar="NAME[:MODE]", help="Backend that computes.")
    ] = "numpy",
    shard_rows: Annotated[
        int,
        typer.Option(
            "--shard-rows",
            min=1,
            help="Least number of rows per shard; shards are whole row groups.",
        ),
    ] = 100_000,
    dask: DaskAddress = None,
    devices: Annotated[
        int,
        typer.Option(
            "--devices",
            min=1,
            help="Number of devices of this machine to use in parallel; jax only.",
        ),
    ] = 1,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Random seed of the inducing points.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Take E-steps of t-SVGP on all rows of a table, a shard at a time, and say the bound after each."""
    from svgpbench.config import BackendConfig, InducingConfig, KernelConfig, LikelihoodConfig
    from svgpbench.kernels import Model
    from svgpbench.kernels.kernels import kernel as find_kernel
    from svgpbench.likelihoods import build_likelihood
    from svgpbench.plugins import check_backend
    from svgpbench.runs.sharded import climb, shards_of
    from svgpbench.runs.sharded.shards import columns_of

    if not lengthscale > 0 or not rate > 0:
        raise UserError("--lengthscale and --rate: give numbers above 0")
    check_backend(backend.partition(":")[0])
    model = Model(find_kernel(kernel), build_likelihood(LikelihoodConfig(name=likelihood)))
    columns = columns_of(table, target, feature or ())
    shards = shards_of(table, shard_rows)

    def print_step(step: ShardedStep) -> None:
        memory = in_bytes(step.peak_memory_bytes)
        typer.echo(f"ELBO {step.bound:.10g}, {step.seconds:.3g} s, a worker held at most {memory}")

    with _workers(dask, devices) as workers:
        run = climb(
            workers,
            shards,
            columns,
            model,
            KernelConfig(name=kernel, ard=False, lengthscale=lengthscale),
            InducingConfig(count=inducing, init="random"),
            BackendConfig.parse(backend),
            iterations=iterations,
            rate=rate,
            seed=seed,
            on_step=(lambda step: None) if as_json else print_step,
        )
    if as_json:
        print_json({"rows": run.rows, "shards": len(shards), "steps": run.steps})
    else:
        typer.echo(f"{run.rows} rows in {len(shards)} shards; the last pass evaluates")


@contextmanager
def _workers(dask: str | None, devices: int) -> Iterator[Workers]:
    from svgpbench.runs.sharded import workers

    if dask is None:
        yield workers.OnDevices(devices) if devices > 1 else workers.Workers()
        return
    if devices > 1:
        raise UserError("--devices are this machine's, --dask another's: give one of them")
    ClusterOptions(dask, slurm=False, pbs=False, cluster=()).check(None)
    with dask_client(dask) as client:
        yield workers.OnDask(client)
