"""Bounds whose q(f|u) is narrower than p(f|u): at the best q, by E-steps and collapsed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from oracle_agreement import agree
from oracle_files import Oracle
from oracle_problem import Problem, problem

from svgpbench.methods import AnyMethod
from svgpbench.methods.collapsed import SGPR
from svgpbench.methods.dual import DualSVGP
from svgpbench.methods.mean_covariance import MeanCholeskySVGP
from svgpbench.methods.residual_variance import RESIDUAL_VARIANCES
from svgpbench.ops import Array, Ops, Tree

METHODS: dict[str, type[DualSVGP] | type[MeanCholeskySVGP]] = {
    "t-svgp": DualSVGP,
    "q-svgp": MeanCholeskySVGP,
}
FOUND_BY_SEARCH = 1e-7
"""The Bernoulli file's optimum is where a search stopped; its bound, flat there, has twice the digits."""


def _at(oracle: Oracle, row: Mapping[str, Any]) -> Oracle:
    """A file of one θ, under the keys that other kinds have."""
    inputs = {
        **oracle.inputs,
        "kernel": oracle.settings["kernel"],
        "variance": row["variance"],
        "lengthscales": [row["lengthscale"]] * len(oracle.inputs["X"][0]),
        "noise_variance": row.get("noise_variance"),
        "Xtest": oracle.inputs["X"],
    }
    return dataclasses.replace(oracle, inputs=inputs, expected=row)


def _rows(oracle: Oracle) -> Iterator[Oracle]:
    return (_at(oracle, row) for row in oracle.expected["rows"])


def check_collapsed(ops: Ops, oracle: Oracle) -> None:
    """The collapsed bound of every residual variance, at every θ of the file."""
    for row in _rows(oracle):
        x = problem(ops, row)
        for residual in RESIDUAL_VARIANCES:
            method = SGPR(residual_variance=residual)
            value = x.elbo(method, x.start(method))
            agree(value, row.number("expected", residual), residual)


def check_upper_bound(ops: Ops, oracle: Oracle) -> None:
    """Both of Titsias's bounds at every θ of the file, with log p(y) of the exact GP between them."""
    for row in _rows(oracle):
        x, method = problem(ops, row), SGPR()
        sums = method.sums(ops, x.f, x.likelihood, x.y)
        bounds = {
            "elbo": method.collapsed_bound(ops, x.likelihood, sums),
            "log_marginal_likelihood": row.number("expected", "log_marginal_likelihood"),
            "upper_bound": method.upper_bound(ops, x.likelihood, sums),
        }
        values = {name: float(ops.to_numpy(ops.asarray(bound))) for name, bound in bounds.items()}
        assert sorted(values.values()) == list(values.values())
        for name, value in values.items():
            agree(value, row.number("expected", name), name)


def check_one_step(name: str, ops: Ops, oracle: Oracle) -> None:
    """One E-step of rate 1 reaches the best q and v. The data come twice with scale ½."""
    for row in _rows(oracle):
        x = problem(ops, row, copies=2)
        for residual in RESIDUAL_VARIANCES:
            method = METHODS[name](residual_variance=residual)
            state = x.stepper(method, 0.5)(x.start(method), x.scalar(1.0))
            value = x.elbo(method, state, 0.5)
            agree(value, row.number("expected", residual), residual)
            if residual == "scalar":
                v = 1.0 / ops.to_numpy(state.residual)[0]
                agree(v, row.number("expected", "v"), "v")


def check_fixed_point(name: str, ops: Ops, oracle: Oracle) -> None:
    """E-steps end at the best q and v of the file, of p(f|u) and of one v."""
    row = _at(oracle, {**oracle.inputs, **oracle.expected})
    x = problem(ops, row)
    for residual in ("prior", "scalar"):
        method = METHODS[name](residual_variance=residual)
        state = _settled(x, method)
        agree(x.elbo(method, state), row.number("expected", residual), residual)
    mean, covariance = x.whitened(method, state)
    for what, found in (
        ("v", 1.0 / ops.to_numpy(state.residual)[0]),
        ("m", mean[0]),
        ("log_sd", 0.5 * np.log(covariance[0, 0])),
    ):
        agree(found, row.number("expected", what), what, FOUND_BY_SEARCH)


def _settled(x: Problem, method: AnyMethod) -> Tree:
    def run(state: Tree, rate: Array) -> Tree:
        def step(s: Tree, _: Tree) -> Tree:
            return method.e_step(x.ops, x.f, x.data(), s, rate)

        return x.ops.scan(step, state, (), length=200)

    return x.ops.jit(run)(x.start(method), x.scalar(0.5))
