"""Schedules of the E-step's rate, as the papers define them."""

from __future__ import annotations

from svgpbench.config import Decay, Linear, LogLinear


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
