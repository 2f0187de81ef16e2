"""The bases that θ may hold beside plain inducing inputs Z [M, D]."""

from __future__ import annotations

from typing import NamedTuple

from svgpbench.ops import Array


class Decoupled(NamedTuple):
    """One basis for the mean and one for the covariance (Cheng and Boots 2017; Salimbeni et al. 2018b)."""

    gamma: Array  # [M_γ, D], of the mean (α in Cheng and Boots)
    beta: Array  # [M_β, D], of the covariance
