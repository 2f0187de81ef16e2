"""What a cell is: its configuration with nothing left unsaid, and the id that follows from it.

A record holds the complete configuration, so that its cell can be run again from it alone. The id hashes
what differs from the defaults, so that a field added later, which is at its default in every older cell,
moves no id. A default is never changed afterwards: another one is another name or another version.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any, NamedTuple

from svgpbench.config import CellConfig, InducingConfig, KernelConfig, LikelihoodConfig
from svgpbench.initialization.inducing_inputs import initialisation
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.methods import build_method
from svgpbench.options import options_of
from svgpbench_datasets import Dataset

SHOWN_ONLY: dict[str, set[str]] = {"method": {"label"}, "data": {"path", "factors"}}
"""What determines no number: names in tables, and the folder of a file whose content counts."""


class Identity(NamedTuple):
    """A cell, whole."""

    cell_id: str
    fingerprint: str  # of the data
    config: CellConfig  # complete
    method_version: int


class DataFacts(NamedTuple):
    """What of a data set an identity takes; a `Dataset` has them too."""

    fingerprint: str
    class_labels: tuple[str, ...] | None  # None for regression


def identity_of(config: CellConfig, dataset: Dataset | DataFacts) -> Identity:
    """What a configuration says, spelled out, and the id of its cell.

    Raises `UserError` for a method or a likelihood that cannot be built.
    """
    whole, version = completed(config, dataset), version_of(config)
    return Identity(
        cell_id(whole, dataset.fingerprint, version), dataset.fingerprint, whole, version
    )


def version_of(config: CellConfig) -> int:
    """The version of the configuration's method as it is now."""
    return build_method(config.method.name, config.method.options).version


def cell_id(whole: CellConfig, data_fingerprint: str, method_version: int) -> str:
    """Identity of a cell from its complete configuration: a hash of what determines its numbers."""
    return digest(
        {
            "config": essential(whole),
            "data": data_fingerprint,
            "method_version": method_version,
        }
    )


def completed(config: CellConfig, dataset: Dataset | DataFacts) -> CellConfig:
    """The configuration with every key that its method, likelihood and data leave to a default."""
    method = config.method
    options = method_options(method.name) | method.options
    likelihood = likelihood_keys(config.likelihood)
    multiclass = isinstance(build_likelihood(config.likelihood), MulticlassLikelihood)
    if multiclass and "classes" not in likelihood.options and dataset.class_labels:
        likelihood = likelihood.model_copy(update={"classes": len(dataset.class_labels)})
    return config.model_copy(
        update={
            "method": method.model_copy(update={"options": options}),
            "likelihood": likelihood,
            "kernel": completed_kernel(config.kernel),
            "inducing": config.inducing.model_copy(update=inducing_options(config.inducing)),
        }
    )


def method_options(name: str) -> dict[str, Any]:
    """The options of a method at their defaults."""
    fields = dataclasses.fields(build_method(name, {}))
    return {field.name: field.default for field in fields if field.init}


def likelihood_keys(config: LikelihoodConfig) -> LikelihoodConfig:
    """All keys that the likelihood has; the number of classes only where it is said."""
    likelihood = build_likelihood(config)
    keys = options_of(likelihood)
    if likelihood.log_concave:
        del keys["negative_beta"]  # β is never negative there
    if isinstance(likelihood, MulticlassLikelihood) and "classes" not in config.options:
        del keys["classes"]
    return LikelihoodConfig.model_validate(keys | {"name": config.name})


def completed_kernel(config: KernelConfig) -> KernelConfig:
    """A kernel with every option of its own, or of its parts."""
    if config.parts:
        return config.model_copy(update={"parts": tuple(map(completed_kernel, config.parts))})
    return config.model_copy(update=kernel_options(config))


def kernel_options(config: KernelConfig) -> dict[str, Any]:
    """Every option of a kernel of its own."""
    return options_of(kernel(config.name, config.options))


def inducing_options(config: InducingConfig) -> dict[str, Any]:
    """Every option of how inducing inputs are chosen."""
    return options_of(initialisation(config.init, config.options))


def essential(whole: CellConfig) -> dict[str, Any]:
    """What of a complete configuration differs from the defaults and determines numbers."""
    found = whole.model_dump(mode="json", exclude=SHOWN_ONLY, exclude_defaults=True)
    _leave_out_of_kernel(found["kernel"], whole.kernel)
    _leave_out(found["inducing"], inducing_options(InducingConfig(init=whole.inducing.init)))
    bare = likelihood_keys(LikelihoodConfig(name=whole.likelihood.name))
    usual = method_options(whole.method.name)
    found["method"]["options"] = _unusual(whole.method.options, usual)
    keys = _unusual(whole.likelihood.model_dump(mode="json"), bare.model_dump(mode="json"))
    found["likelihood"] = {"name": whole.likelihood.name} | keys
    return found


def _leave_out_of_kernel(table: dict[str, Any], config: KernelConfig) -> None:
    if not config.parts:
        return _leave_out(table, kernel_options(KernelConfig(name=config.name)))
    for inner, part in zip(table["parts"], config.parts, strict=True):
        _leave_out_of_kernel(inner, part)


def _leave_out(table: dict[str, Any], usual: dict[str, Any]) -> None:
    """Remove the options that are at their defaults."""
    for key, default in usual.items():
        if key in table and table[key] == default:
            del table[key]


def _unusual(values: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    return {key: x for key, x in values.items() if key not in usual or x != usual[key]}


def same_cell(one: CellConfig, other: CellConfig) -> bool:
    """Whether two complete configurations of one id say the same of everything that determines numbers.

    An option of the method that one of them lacks came later than it, and is at its default in the other,
    as their id is one.
    """
    ours, theirs = (config.model_dump(exclude=SHOWN_ONLY) for config in (one, other))
    options, others = (config["method"].pop("options") for config in (ours, theirs))
    shared = options.keys() & others.keys()
    return ours == theirs and all(options[name] == others[name] for name in shared)


def digest(value: Any) -> str:
    """A short stable hash of JSON-able data."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
