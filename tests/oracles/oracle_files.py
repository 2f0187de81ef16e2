"""Reading reference values: which kind a file is, and that it holds what its kind needs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent / "values"

DATA = ("X", "Xtest", "Z", "variance", "lengthscales", "y")


class OracleError(ValueError):
    """A file that cannot be read as reference values, with its name and what is wrong."""


@dataclass(frozen=True)
class Kind:
    """How a kind's file is told (by its name, else by a key of `expected`), and what it must hold."""

    name: str
    pattern: str
    telling: str
    inputs: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()


KINDS = (
    Kind(
        "kernel",
        r"kernel_",
        "Kzz",
        ("X", "Z", "variance", "lengthscales"),
        ("Kzz", "Kzx", "Kdiag"),
    ),
    Kind(
        "gpr",
        r"gpr_",
        "log_marginal_likelihood",
        (*DATA, "noise_variance"),
        ("log_marginal_likelihood", "mean", "var"),
    ),
    Kind(
        "sgpr",
        r"sgpr_",
        "bound",
        (*DATA, "noise_variance"),
        ("bound", "mean", "var", "q_mean", "q_cov"),
    ),
    Kind("robustmax", r"svgp_robustmax", "class_probabilities"),
    Kind(
        "svgp",
        r"svgp_",
        "variational_expectations",
        (*DATA, "q_mu", "q_sqrt"),
        (
            "elbo",
            "kl",
            "mean",
            "var",
            "elbo_first10_scaled",
            "variational_expectations",
            "grad_variance",
            "grad_lengthscales",
            "grad_Z",
            "grad_q_mu",
        ),
    ),
    Kind(
        "natgrad",
        r"natgrad_",
        "elbo_trace",
        (*DATA, "gamma"),
        ("elbo_trace", "mean", "var", "whitened_q_mu", "whitened_q_cov"),
    ),
    Kind("m_step", r"m_step_", "objectives", DATA, ("site_lambda1", "site_beta")),
    Kind("softmax", r"softmax_expectations", "softmax"),
    Kind("scalar", r"scalar_expectations", "rows"),
    Kind("vgp", r"vgp_", "elbo_at_optimum", DATA, ("elbo_at_optimum", "mean", "var")),
    Kind("decoupled", r"decoupled", "decoupled"),
    Kind(
        "em_run", r"em_run_", "trace", ("X", "y", "Xtest", "ytest", "Z", "variance", "lengthscales")
    ),
    Kind("tighter", r"tighter_", "tighter"),
    Kind("upper_bound", r"upper_bound_", "upper_bound", ("X", "y", "Z")),
)
LISTS = {
    "upper_bound": "rows",
    "m_step": "objectives",
    "scalar": "rows",
    "em_run": "trace",
}  # lists of tables, not of numbers


@dataclass(frozen=True)
class Oracle:
    """One file's content; `kind` is "" where nothing tells it."""

    name: str
    kind: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]

    def number(self, section: str, key: str) -> npt.NDArray[np.float64]:
        """A numeric entry as an array; raises `OracleError` where it is missing or not finite."""
        table: Mapping[str, Any] = getattr(self, section)
        return numbers(table, key, f"{self.name}: {section}")

    def word(self, key: str, choices: list[str]) -> str:
        """A name from `inputs`, else the longest choice that is a part of the file's name."""
        if isinstance(self.inputs.get(key), str):
            return str(self.inputs[key])
        parts = self.name.removesuffix(".json").split("_")
        found = [part for part in parts if part in choices]
        return found[0] if found else "_".join(parts[1:])

    @property
    def jitter(self) -> float:
        value = self.settings.get("jitter", 1e-6)
        if not isinstance(value, int | float):
            raise OracleError(f"{self.name}: settings.jitter is not a number: {value!r}")
        return float(value)


def numbers(table: Mapping[str, Any], key: str, where: str) -> npt.NDArray[np.float64]:
    """`table[key]` as a finite float array."""
    if table.get(key) is None:
        raise OracleError(f"{where}.{key} is missing")
    try:
        value = np.asarray(table[key], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise OracleError(f"{where}.{key} is not an array of numbers: {error}") from error
    if not np.all(np.isfinite(value)):
        raise OracleError(f"{where}.{key} is not finite")
    return value


def oracle_folder() -> Path:
    """The folder to read: `SVGPBENCH_ORACLES`, or the values that come with the tests."""
    return Path(os.environ.get("SVGPBENCH_ORACLES") or HERE)


def oracle_paths(folder: Path) -> list[Path]:
    """Every file of the folder but its README and hidden files."""
    if not folder.is_dir():
        raise OracleError(f"{folder} is not a folder; SVGPBENCH_ORACLES must name one")
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    found = [p for p in files if not p.name.startswith("README")]
    if not found:
        raise OracleError(f"{folder} holds no reference values")
    return found


def kind_of(name: str, expected: Mapping[str, Any]) -> str:
    """The kind by the file's name, else by what it expects; "" where neither tells."""
    for kind in KINDS:
        if re.match(kind.pattern, name):
            return kind.name
    rows = expected.get("rows")
    if isinstance(rows, list) and rows and isinstance(rows[0], dict) and "label" in rows[0]:
        return "softmax"
    return next((kind.name for kind in KINDS if kind.telling in expected), "")


def read_oracle(path: Path) -> Oracle:
    """One file; raises `OracleError` with its name where it is malformed."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OracleError(f"{path.name}: not readable as JSON: {error}") from error
    if not isinstance(content, dict):
        raise OracleError(f"{path.name}: not a JSON object")
    sections = {}
    for section in ("settings", "inputs", "expected"):
        sections[section] = content.get(section, {})
        if not isinstance(sections[section], dict):
            raise OracleError(f"{path.name}: {section} is not a JSON object")
    if not sections["expected"]:
        raise OracleError(f"{path.name}: expected is missing")
    oracle = Oracle(path.name, kind_of(path.name, sections["expected"]), **sections)
    _check(oracle)
    return oracle


def _check(oracle: Oracle) -> None:
    kind = next((k for k in KINDS if k.name == oracle.kind), None)
    if kind is None:
        return
    for section, keys in (("inputs", kind.inputs), ("expected", kind.expected)):
        for key in keys:
            oracle.number(section, key)
    if kind.name in LISTS:
        key = LISTS[kind.name]
        rows = oracle.expected.get(key)
        if not isinstance(rows, list) or not rows or not all(isinstance(r, dict) for r in rows):
            raise OracleError(f"{oracle.name}: expected.{key} is not a list of objects")
