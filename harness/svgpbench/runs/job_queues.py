"""Dask workers as jobs of Slurm or PBS: their options and the cluster that submits them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt, ValidationError

from svgpbench.config import Strict
from svgpbench.errors import UserError, unknown
from svgpbench.runs.dask_slots import GPU

Queue = Literal["slurm", "pbs"]
REPEATABLE = frozenset({"directive", "prologue"})
"""Keys that may be given more than once. Each value adds a line to the script."""

Plain = Annotated[str, Field(pattern=r"^[^\n\r]+$")]


def _matching(pattern: str, example: str) -> AfterValidator:
    """Return a validator that accepts texts of a pattern, and names an example otherwise."""

    def fits(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} is none; give such as {example}")
        return text

    return AfterValidator(fits)


class JobOptions(Strict):
    """Options of a job, which runs one Dask worker that computes `cores` cells at a time."""

    jobs: PositiveInt = 1
    cores: PositiveInt = 1
    memory: Annotated[str, _matching(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", "16GiB")] = "4GiB"
    walltime: Annotated[str, _matching(r"([0-9]+-)?[0-9]+:[0-9]{2}:[0-9]{2}", "1-12:00:00")] = (
        "01:00:00"
    )
    queue: Plain | None = None
    account: Plain | None = None
    gpus: Annotated[int, Field(ge=0)] = 0
    interface: Plain | None = None  # network, such as ib0
    directive: tuple[Plain, ...] = ()
    prologue: tuple[Plain, ...] = ()

    @classmethod
    def parse(cls, words: Sequence[str]) -> JobOptions:
        """Parse words of the form `KEY=VALUE`. Raises `UserError`."""
        values: dict[str, Any] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not equals:
                raise UserError(f"--cluster {word}: give KEY=VALUE, such as cores=8")
            if key not in cls.model_fields:
                raise unknown("key of --cluster", key, cls.model_fields)
            if key in REPEATABLE:
                values[key] = (*values.get(key, ()), value)
            elif key in values:
                raise UserError(f"--cluster {key} is given twice")
            else:
                values[key] = value
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            message = first["msg"].removeprefix("Value error, ")
            raise UserError(f"--cluster {first['loc'][0]}: {message}") from None


def job_cluster(queue: Queue, options: JobOptions) -> Any:
    """Return a dask-jobqueue cluster without jobs, whose scheduler runs in this process.

    Raises `UserError` for options that it refuses, such as a network interface that does not exist.
    """
    from dask_jobqueue import PBSCluster, SLURMCluster

    directives = list(options.directive)
    kind = SLURMCluster if queue == "slurm" else PBSCluster
    if options.gpus and queue == "slurm":
        directives.insert(0, f"--gres=gpu:{options.gpus}")
    if options.gpus and queue == "pbs":
        raise UserError(
            "--cluster gpus is for --slurm; with --pbs name them in directive='-l select=...'"
        )
    resources = ["--resources", f"{GPU}={options.gpus}"] if options.gpus else []
    try:
        return kind(
            cores=options.cores,
            processes=1,
            memory=options.memory,
            walltime=options.walltime,
            queue=options.queue,
            account=options.account,
            interface=options.interface,
            job_extra_directives=directives,
            job_script_prologue=list(options.prologue),
            worker_extra_args=resources,
        )
    except (ValueError, RuntimeError, OSError) as error:
        raise UserError(f"--{queue}: {str(error).splitlines()[0]}") from error
