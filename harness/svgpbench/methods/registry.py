"""Methods by name, built from the options of an experiment file, and the likelihoods that each refuses."""

from __future__ import annotations

import dataclasses
from typing import Any

from svgpbench.config import LikelihoodConfig
from svgpbench.errors import UserError, unknown
from svgpbench.likelihoods import build_likelihood, likelihoods
from svgpbench.methods.method import AnyMethod
from svgpbench.plugins import METHODS, load


def build_method(name: str, options: dict[str, Any]) -> AnyMethod:
    """Return a method built with its options.

    Raises `UserError` for an unknown method, for an option that it does not have, and for a value whose
    type differs from that of the option's default.
    """
    cls: type[AnyMethod] = load(METHODS, name)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key, value in options.items():
        if key not in fields:
            raise unknown(f"option of method {name}", key, fields)
        type_of_default = type(fields[key].default)
        # exact types: isinstance would take True for an int
        if type(value) is not type_of_default:
            raise UserError(
                f"option {key!r} of method {name!r} must be {type_of_default.__name__}, got {value!r}"
            )
    return cls(**options)


def build_named(title: str) -> AnyMethod:
    """Return a method from its name and its variant, as `svgpbench check` shows them: `q-svgp natgrad`.

    The name alone gives the default options. Raises `UserError` for a name or variant that does not exist.
    """
    name, _, variant = title.partition(" ")
    if not variant:
        return build_method(name, {})
    variants = load(METHODS, name).info.variants
    if variant not in variants:
        raise unknown(f"variant of method {name}", variant, variants)
    return build_method(name, dict(variants[variant]))


def refusals(method: AnyMethod) -> dict[str, str]:
    """Return the reason by name for each likelihood, at its defaults, that the method refuses."""
    reasons = {}
    for name in likelihoods():
        try:
            why = method.refuses(build_likelihood(LikelihoodConfig(name=name)))
        except Exception as error:  # third-party code failed; other likelihoods still get an answer
            why = f"asked whether it can, it raises {type(error).__name__}"
        if why:
            reasons[name] = why
    return reasons
