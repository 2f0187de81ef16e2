"""Schedules of learning rates: those of the E-step that papers define, and the common cool-down."""

from __future__ import annotations

from typing import Final

from svgpbench.config import Decay, Linear, LogLinear, TrainingConfig


def rate_at(rate: float | LogLinear | Linear | Decay, iteration: int) -> float:
    """Return the E-step's rate in an EM iteration, counted from 1.

    `LogLinear` rises on a logarithmic scale and is then constant (Salimbeni et al. 2018a,
    Sec. 5; Kobe 2021, Ch. 4). `Linear` grows by equal amounts and is then constant (the code of Salimbeni
    et al. 2018b). `Decay` is γ₀/(1 + 0.1√t) with t counted from 0 (Cheng and Boots 2017, Sec. 4).
    """
    t = iteration - 1
    if isinstance(rate, LogLinear):
        progress = min(t / rate.steps, 1.0)
        return float(rate.start * (rate.end / rate.start) ** progress)
    if isinstance(rate, Linear):
        return min(rate.start + rate.increment * t, rate.end)
    if isinstance(rate, Decay):
        return float(rate.start / (1.0 + rate.decay * t**0.5))
    return rate


COOLED: Final = 0.1
"""Factor of all rates at the end of a cool-down."""


def cool_down_factor(settings: TrainingConfig, iteration: int) -> float:
    """Return the factor of all rates in an EM iteration, counted from 1: 1 without a cool-down.

    At a constant rate, a run on minibatches ends at the noise of its steps, not at the optimum of its
    method. So a benchmark that compares where methods end lets the rates of all methods fall.
    """
    if settings.cool_down is None:
        return 1.0
    start = (1.0 - settings.cool_down) * settings.em_iterations
    progress = (iteration - start) / (settings.em_iterations - start)
    # geometric, so the rate falls by the same factor in every iteration of the cool-down
    return float(COOLED ** max(progress, 0.0))
