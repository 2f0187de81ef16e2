"""Facts about a method beside its numbers, read by the listing, `check`, `speed` and test skips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class MethodInfo:
    """Names, size and cost of a method, in the symbols n, b, M, D, P (M_γ and M_β if decoupled)."""

    aliases: Mapping[str, str]  # paper → its name for the method
    parameters: str  # variational parameters of one latent, as a formula
    e_step: str  # leading cost of one E-step
    memory: str  # leading memory of one E-step
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    """Options that change the numbers, by the name that `check` shows after the method's name."""
    timed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options that `speed` times by default, by the name shown after the method's name. An E-step from q = p
    must be a natural-gradient step on q(u), because everything timed together must give the same number."""
