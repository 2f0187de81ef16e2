"""Complete configurations of cells, and the ids that follow from them.

A record holds the complete configuration, so that its cell can be run again from the record alone. The id
is a hash of the values that differ from their defaults. A field that is added later has its default in
every older cell, so it changes no id. A default is never changed afterwards: a new default needs a new name
or a new version.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from svgpbench import plugins
from svgpbench.config import CellConfig, InducingConfig, KernelConfig, LikelihoodConfig
from svgpbench.initialization.inducing_inputs import initialisation
from svgpbench.kernels.kernels import kernel
from svgpbench.likelihoods import build_likelihood
from svgpbench.likelihoods.multiclass import MulticlassLikelihood
from svgpbench.methods import build_method
from svgpbench.options import options_of
from svgpbench.plugins import BACKENDS, GROUPS, INDUCING, KERNELS, LIKELIHOODS, METHODS
from svgpbench_datasets import Dataset

SHOWN_ONLY: dict[str, set[str]] = {"method": {"label"}, "data": {"path", "factors"}}
"""Fields that change no result: names in tables, and the path of a data file, whose content is hashed."""


class CellIdentity(NamedTuple):
    """Id, data fingerprint, complete configuration and method version of a cell."""

    cell_id: str
    fingerprint: str  # of the data
    config: CellConfig  # complete
    method_version: int


class DataFacts(NamedTuple):
    """Properties of a data set that the identity of a cell needs; a `Dataset` has them too."""

    fingerprint: str
    class_labels: tuple[str, ...] | None  # None for regression


def identity_of(config: CellConfig, dataset: Dataset | DataFacts) -> CellIdentity:
    """Return the complete configuration and the id of a cell.

    Raises `UserError` if the method or the likelihood cannot be built.
    """
    complete, version = completed(config, dataset), version_of(config)
    return CellIdentity(
        cell_id(complete, dataset.fingerprint, version), dataset.fingerprint, complete, version
    )


def cell_code(config: CellConfig) -> dict[str, str]:
    """Return the digest of the source code of a cell's method, likelihood, kernels, start and backend.

    Keys are such as `method t-svgp`; values are those of `svgpbench.plugins.code_of`. A name that is not
    installed has no digest.
    """
    return digests_of(
        [
            (METHODS, config.method.name),
            (LIKELIHOODS, config.likelihood.name),
            *((KERNELS, name) for name in kernel_names(config.kernel)),
            (INDUCING, config.inducing.init),
            (BACKENDS, config.backend.name),
        ]
    )


def digests_of(used: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the digest of each plugin, given by group and name, with keys as in `cell_code`."""
    return {
        f"{GROUPS[group]} {name}": plugins.code_of(group, name)
        for group, name in used
        if name in plugins.plugins(group)
    }


def digests_now(names: Iterable[str]) -> dict[str, str]:
    """Return the digests of what the keys of an earlier `digests_of` name, as far as it is installed."""
    groups = {word: group for group, word in GROUPS.items()}
    parted = (name.rpartition(" ") for name in names)
    return digests_of((groups[word], name) for word, _, name in parted if word in groups)


def kernel_names(config: KernelConfig) -> list[str]:
    """Return the name of a kernel, or those of all its parts."""
    if not config.parts:
        return [config.name]
    return [name for part in config.parts for name in kernel_names(part)]


class OtherCode(NamedTuple):
    """Names of what two results of `cell_code` have in different forms; empty texts if they agree.

    What only one of them has is not compared.
    """

    plugins: str  # of other packages: the numbers of the one are not those of the other
    ours: str  # of svgpbench: the commits of the records say more

    @classmethod
    def between(cls, first: Mapping[str, str], second: Mapping[str, str]) -> OtherCode:
        """Compare two results of `cell_code`."""
        names: dict[bool, list[str]] = {True: [], False: []}
        for key in sorted(first.keys() & second.keys()):
            if first[key] != second[key]:
                packages = {code.rpartition(":")[0] for code in (first[key], second[key])}
                is_ours = packages == {"svgpbench"}
                of_package = f" of package {' and '.join(sorted(packages))}" * (not is_ours)
                names[is_ours].append(key + of_package)
        return cls(", ".join(names[False]), ", ".join(names[True]))


def version_of(config: CellConfig) -> int:
    """Return the current version of the configuration's method."""
    return build_method(config.method.name, config.method.options).version


def cell_id(complete: CellConfig, data_fingerprint: str, method_version: int) -> str:
    """Return the id of a cell: a hash of its essential configuration, data and method version."""
    return digest(
        {
            "config": essential(complete),
            "data": data_fingerprint,
            "method_version": method_version,
        }
    )


def completed(config: CellConfig, dataset: Dataset | DataFacts) -> CellConfig:
    """Return the configuration with every option filled in.

    Options come from the defaults of the method, likelihood, kernel and initialisation; the number of
    classes comes from the data.
    """
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
    """Return the default options of a method."""
    fields = dataclasses.fields(build_method(name, {}))
    return {field.name: field.default for field in fields if field.init}


def likelihood_keys(config: LikelihoodConfig) -> LikelihoodConfig:
    """Return the likelihood's configuration with all its options.

    The number of classes is included only if `config` gives it. `negative_beta` is left out for a
    log-concave likelihood. A likelihood of real values has a latent mean of zero.
    """
    likelihood = build_likelihood(config)
    keys = options_of(likelihood)
    if likelihood.log_concave:
        del keys["negative_beta"]  # β is never negative there
    if likelihood.closed_form or likelihood.integrals == "fixed":
        del keys["integrals"]  # older records do not have it
    if isinstance(likelihood, MulticlassLikelihood) and "classes" not in config.options:
        del keys["classes"]
    latent_mean = "zero" if likelihood.support == "real" else config.latent_mean
    return LikelihoodConfig.model_validate(keys | {"name": config.name, "latent_mean": latent_mean})


def completed_kernel(config: KernelConfig) -> KernelConfig:
    """Return a kernel's configuration with every option, or with every option of each part."""
    if config.parts:
        return config.model_copy(update={"parts": tuple(map(completed_kernel, config.parts))})
    return config.model_copy(update=kernel_options(config))


def kernel_options(config: KernelConfig) -> dict[str, Any]:
    """Return every option that the kernel itself has."""
    return options_of(kernel(config.name, config.options))


def inducing_options(config: InducingConfig) -> dict[str, Any]:
    """Return every option of the initialisation of inducing inputs."""
    return options_of(initialisation(config.init, config.options))


def essential(complete: CellConfig) -> dict[str, Any]:
    """Return the values of a complete configuration that affect results and differ from their defaults."""
    fields = complete.model_dump(mode="json", exclude=SHOWN_ONLY, exclude_defaults=True)
    # options are extra keys, of which Pydantic knows no default: `exclude_defaults` keeps them all
    fields["kernel"] = _unusual_of_kernel(fields["kernel"], complete.kernel)
    usual_start = inducing_options(InducingConfig(init=complete.inducing.init))
    fields["inducing"] = _unusual(fields["inducing"], usual_start)
    bare = likelihood_keys(LikelihoodConfig(name=complete.likelihood.name))
    usual = method_options(complete.method.name)
    fields["method"]["options"] = _unusual(complete.method.options, usual)
    keys = _unusual(complete.likelihood.model_dump(mode="json"), bare.model_dump(mode="json"))
    fields["likelihood"] = {"name": complete.likelihood.name} | keys
    return fields


def _unusual_of_kernel(table: dict[str, Any], config: KernelConfig) -> dict[str, Any]:
    if not config.parts:
        return _unusual(table, kernel_options(KernelConfig(name=config.name)))
    pairs = zip(table["parts"], config.parts, strict=True)
    return table | {"parts": [_unusual_of_kernel(inner, part) for inner, part in pairs]}


def _unusual(values: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """Return the values that have no default or differ from it."""
    return {key: x for key, x in values.items() if key not in usual or x != usual[key]}


def same_cell(first: CellConfig, second: CellConfig) -> bool:
    """Return True if two complete configurations with the same id agree in all values that affect results.

    A method option that only one of them has is ignored. It was added after the other configuration was
    made, and it has its default value because the ids are equal.
    """
    a, b = (config.model_dump(exclude=SHOWN_ONLY) for config in (first, second))
    a_options, b_options = (fields["method"].pop("options") for fields in (a, b))
    shared = a_options.keys() & b_options.keys()
    return a == b and all(a_options[name] == b_options[name] for name in shared)


def digest(value: Any) -> str:
    """Return a stable hash of data that JSON can hold, as 16 hexadecimal digits."""
    # sorted, so that no id depends on the order in which a class declares its fields; 64 bits,
    # so that among a million cells two share an id with probability n²/2⁶⁵ = 3e-8
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
