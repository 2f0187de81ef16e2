"""The model of rounding by which `check` and `verify` judge chaotic trajectories.

Rounding moves such a trajectory as a tiny perturbation of its inputs does. What perturbed replicas of one
run differ by, rounding alone may cause.
"""

from __future__ import annotations

from typing import Final

# at 1e-16, more than half of the factors 1 + 1e-16·ε would round to 1; here 7 % do
PERTURBATION: Final = 1e-15
"""Relative size of the noise on the inputs of a replica."""
REPLICAS: Final = 4
"""Number of perturbed replicas."""
MARGIN: Final = 10.0
"""Factor on the spread of replicas. Growth is exponential, so that a lead of a few steps is a factor."""
