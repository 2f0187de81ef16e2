"""Rates of the E-step that change over a run, as the papers set them."""

from __future__ import annotations

from svgpbench.config import Decay, LogLinear


def rate_at(rate: float | LogLinear | Decay, iteration: int) -> float:
    """The E-step's rate in an EM iteration, counted from 1.

    `LogLinear` rises on a logarithmic scale and then stays (Salimbeni et al. 2018a, Sec. 5; Kobe 2021,
    Ch. 4); `Decay` is γ₀/(1 + 0.1√t) with t counted from 0 (Cheng and Boots 2017, Sec. 4).
    """
    t = iteration - 1
    if isinstance(rate, LogLinear):
        done = min(t / rate.steps, 1.0)
        return float(rate.start * (rate.end / rate.start) ** done)
    if isinstance(rate, Decay):
        return float(rate.start / (1.0 + rate.decay * t**0.5))
    return rate
