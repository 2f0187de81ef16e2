"""Cells to run, and checks of all before any runs: names, options, settings that must fit the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from svgpbench.backends import check_backend, declared_capabilities, refuse_not_offered
from svgpbench.config import CellConfig, KernelConfig
from svgpbench.errors import UserError
from svgpbench.experiments.cell import build_model, load_data, prepare_data
from svgpbench.experiments.compatibility import refuse_incompatible
from svgpbench.experiments.loading import is_file_name, load_experiment
from svgpbench.experiments.plan import Plan
from svgpbench.experiments.resolve import Selection
from svgpbench.initialization.inducing_inputs import initialisation
from svgpbench.kernels.kernels import lengthscale_count
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import build_method


def checked_plan(name: str, preset: str | None, selection: Selection | None = None) -> Plan:
    """Return the cells of an experiment to run, all checked.

    Raises `UserError`, with the file's name if it is the user's own.
    """
    experiment = load_experiment(name)
    try:
        plan = Plan.of(experiment, preset, selection)
        check_cells(plan.configs)
    except UserError as error:
        raise UserError(f"{name}: {error}" if is_file_name(name) else str(error)) from None
    return plan


def check_cells(cells: Sequence[CellConfig]) -> None:
    """Raise `UserError` for the first cell that cannot run. Imports no framework.

    Mode, dtype and device are checked if they are known without importing a framework. Other backends
    check them when their worker starts; the cell then ends as `skipped`, with the reason.
    """
    for backend in dict.fromkeys(cell.backend for cell in cells):
        check_backend(backend.name)
        if (offers := declared_capabilities(backend.name)) is not None:
            refuse_not_offered(backend.name, offers, backend.mode, backend.dtype, backend.device)
    combinations = {
        (
            *(cell.method.title, cell.kernel, cell.likelihood),
            *(cell.inducing, cell.training, cell.backend.dtype),
        ): cell
        for cell in cells
    }
    for cell in combinations.values():
        method = build_method(cell.method.name, cell.method.options)
        refuse_incompatible(cell, method, build_likelihood(cell.likelihood))
    for cell in _first_of_each_problem(cells):
        _check_problem(cell)


def _first_of_each_problem(cells: Iterable[CellConfig]) -> list[CellConfig]:
    """Return the first cell of each combination of the settings that `_check_problem` uses."""
    return list(
        {
            (
                *(cell.data, cell.split, cell.kernel, cell.likelihood, cell.inducing),
                *(_inducing_inputs(cell), cell.training.rows, cell.training.batch_size),
            ): cell
            # backwards, because a dictionary keeps the last value of a key: this is the first cell
            for cell in reversed(list(cells))
        }.values()
    )[::-1]


def _inducing_inputs(cell: CellConfig) -> int:
    """Return the number of inducing inputs chosen from the rows; 0 if the data are the basis."""
    basis = build_method(cell.method.name, cell.method.options).basis
    return 0 if basis == "data" else cell.inducing.count


def _check_problem(cell: CellConfig) -> None:
    data, name = load_data(cell.data), cell.data.name
    build_model(cell, data)
    initialisation(cell.inducing.init, cell.inducing.options)
    ready = prepare_data(cell, data)
    n, dimensions = ready.X_train.shape
    drawn = cell.training.rows or n
    for what, count, rows in (
        ("training.rows", drawn, n),
        ("inducing.count", _inducing_inputs(cell), drawn),
        # γ and β are disjoint, so both are chosen from the rows together
        (
            "inducing.count + inducing.gamma",
            _inducing_inputs(cell) + (cell.inducing.gamma or 0),
            drawn,
        ),
        ("training.batch_size", cell.training.batch_size or 0, drawn),
    ):
        if count > rows:
            raise UserError(
                f"{what} = {count} is more than the {rows} training rows of data set {name!r}; "
                f"use at most {rows}"
            )
    _check_lengthscales(cell.kernel, name, dimensions)


def _check_lengthscales(kernel: KernelConfig, name: str, dimensions: int) -> None:
    for part in kernel.parts:
        _check_lengthscales(part, name, dimensions)
    scales, count = kernel.lengthscale, lengthscale_count(kernel.ard, dimensions)
    if isinstance(scales, tuple) and len(scales) != count:
        raise UserError(
            f"kernel.lengthscale has {len(scales)} values where data set {name!r} needs {count}; "
            "one number stands for all"
        )
