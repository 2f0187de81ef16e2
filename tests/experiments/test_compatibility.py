"""What does not go together is one line, before anything runs and in a worker alike."""

from __future__ import annotations

from typing import Any

import pytest
from small_cell import config

from svgpbench.config import (
    BackendConfig,
    InducingConfig,
    KernelConfig,
    LikelihoodConfig,
    MethodConfig,
    TrainingConfig,
)
from svgpbench.errors import UserError
from svgpbench.experiments.cell import run_cell
from svgpbench.experiments.validation import check_cells

ADAM = MethodConfig(name="q-svgp", options={"optimiser": "adam"})
ONE = {"joint": True, "e_steps": 1}
UNTIED = MethodConfig(name="t-svgp", options={"tying": "untied"})
ORTH = MethodConfig(name="orth")
CLIPPED = LikelihoodConfig(name="student-t", negative_beta="clip")
SUM = KernelConfig(name="sum", parts=(KernelConfig(), KernelConfig(name="se")))
SINGLE = BackendConfig(name="torch", dtype="float32")


def test_every_kernel_of_a_table_is_checked() -> None:
    training = TrainingConfig(kind="online", batch_size=200)
    cells = [config(training=training, kernel=kernel) for kernel in (KernelConfig(), SUM)]
    with pytest.raises(UserError, match="one set of lengthscales"):
        check_cells(cells)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"method": UNTIED, "training": {"optimiser": "l-bfgs", "batch_size": 8}},
            "training.optimiser 'l-bfgs' takes all data in every step",
        ),
        (
            {"kernel": SUM, "training": {"kind": "online", "batch_size": 8}},
            'training.kind = "online" tells new inputs apart by one set of lengthscales',
        ),
        (
            {"method": MethodConfig(name="sgpr"), "training": {"batch_size": 8}},
            "method 'sgpr' takes all data in every step; remove training.batch_size",
        ),
        (
            {"method": MethodConfig(name="gpr"), "training": {"batch_size": 8}},
            "method 'gpr' takes all data in every step; remove training.batch_size",
        ),
        (
            {"backend": SINGLE, "training": {"optimiser": "l-bfgs"}},
            "training.optimiser 'l-bfgs' runs in float64, not float32",
        ),
        (
            {
                "method": MethodConfig(name="sgpr"),
                "likelihood": LikelihoodConfig(name="student-t"),
            },
            "method 'sgpr' cannot take likelihood 'student-t'",
        ),
        (
            {
                "method": MethodConfig(name="t-svgp", options={"residual_variance": "diagonal"}),
                "likelihood": LikelihoodConfig(name="student-t"),
            },
            "cannot take likelihood 'student-t': residual_variance = \"diagonal\" has Gaussian noise",
        ),
        (
            {"inducing": InducingConfig(count=5, functions="features")},
            "kernel 'matern52' has no inducing functions",
        ),
        (
            {"method": ADAM, "training": ONE | {"optimiser": "l-bfgs"}},
            'training.joint is one step of Adam: it needs kind = "em" and optimiser = "adam"',
        ),
        (
            {"method": ADAM, "likelihood": CLIPPED},
            "method 'q-svgp' cannot take likelihood 'student-t': negative β is clipped",
        ),
        ({"method": ORTH}, "method 'orth' has two bases: set inducing.gamma"),
        (
            {"inducing": InducingConfig(count=6, gamma=9)},
            "method 't-svgp' has one basis: remove inducing.gamma",
        ),
        ({"method": ADAM, "training": ONE}, "training.joint is one step: it needs e_steps = 1"),
        (
            {"method": ADAM, "training": ONE | {"m_steps": 1, "learn": ()}},
            "training.joint moves θ too: name parts of it in training.learn",
        ),
        (
            {"method": MethodConfig(name="q-svgp"), "training": ONE | {"m_steps": 1}},
            "training.joint moves q by Adam, and method 'q-svgp' with these options does not",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(changes: dict[str, Any], message: str) -> None:
    settings = {"em_iterations": 2, "m_steps": 2} | changes.pop("training", {})
    training = TrainingConfig(**settings)
    cell = config(training=training, **changes)
    for refused in (check_cells, lambda cells: run_cell(cells[0])):
        with pytest.raises(UserError, match=message) as caught:
            refused([cell])
        assert "\n" not in str(caught.value)
