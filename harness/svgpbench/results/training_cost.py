"""FLOPs of the whole training of a cell, counted from the shapes that its configuration gives."""

from __future__ import annotations

from typing import NamedTuple

from svgpbench.config import CellConfig
from svgpbench.cost import Size, count_phases
from svgpbench.kernels import Model
from svgpbench.kernels.compound import build_kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.methods import build_method
from svgpbench.results.records import Record


class Flops(NamedTuple):
    """FLOPs of training without evaluations of the trace, and a note for the reader."""

    flops: float  # NaN if they cannot be counted
    note: str = ""


UNCOUNTED = float("nan")
ONE_EACH = "evaluations of L-BFGS are not in these records: one an iteration is counted"
"""Note on records that were made before the number of evaluations was stored."""


def flops_of_training(record: Record) -> Flops:
    """Return the FLOPs of all training steps of a cell, as if it had run to the end.

    Each step counts as in `svgpbench cost`. A step that is halved counts once, and a loop that ends by a
    tolerance counts as zero iterations.
    """
    n, dimensions = record.data.get("n_train"), record.data.get("dimensions")
    if not isinstance(n, int) or not isinstance(dimensions, int):
        return Flops(UNCOUNTED, "the numbers of rows and inputs are not in these records")
    evaluations = record.timing.get("evaluations")
    return flops_of(record.config, n, dimensions, None if evaluations is None else int(evaluations))


def flops_of(config: CellConfig, n: int, dimensions: int, evaluations: int | None) -> Flops:
    """Return the FLOPs of training on n rows.

    `evaluations` is the number of evaluations by L-BFGS, or None if it was not recorded.
    """
    training = config.training
    if training.kind == "online":
        return Flops(UNCOUNTED, "FLOPs of online training, whose basis grows, are not counted")
    if config.inducing.functions == "features":
        return Flops(UNCOUNTED, "FLOPs of inducing features are not counted")
    method = build_method(config.method.name, config.method.options)
    likelihood = build_likelihood(config.likelihood)
    model = Model(build_kernel(config.kernel), likelihood, config.jitter)
    inducing, rows = config.inducing, training.rows or n
    size = Size(rows, inducing.count, dimensions, training.batch_size, inducing.gamma)
    phases = count_phases(
        method, model, size, training.e_steps, max(training.m_steps, 1),
        dtype=config.backend.dtype, learn=training.learn,
    )  # fmt: skip
    e_phases = training.em_iterations
    total = phases.start + e_phases * phases.e_phase
    if not (training.m_steps and training.learn):
        return Flops(total)
    # M-phases lie between E-phases, of which there are as many as iterations
    m_phases = e_phases - 1
    if training.optimiser == "adam":
        return Flops(total + m_phases * phases.m_phase)
    m_evaluations = m_phases * training.m_steps if evaluations is None else evaluations
    # L-BFGS ascends a collapsed bound once for all phases, and each trace point needs blocks at its θ
    others = e_phases * phases.start if method.collapsed else m_phases * phases.ascent
    note = ONE_EACH if evaluations is None else ""
    return Flops(total + others + m_evaluations * phases.evaluation, note)
