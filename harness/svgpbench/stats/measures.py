"""Measures that claims compare, with the difference that matters, declared before any record exists."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

from pydantic import AfterValidator

from svgpbench.errors import refuse_unknown
from svgpbench.metrics import METRICS, Better


@dataclass(frozen=True)
class Measure:
    """A number that each cell has, with its region of practical equivalence."""

    title: str
    better: Better
    rows: Literal["training", "test"]  # the part of the data that it is computed on
    region: float = 0.0  # absolute, in the unit of the measure
    relative: float = 0.0  # as a share of the second method's value
    per_datum: float = 0.0  # multiplied by the number of training data
    of_trace: bool = False  # a number of the whole trace, which has no last quarter
    gain: float = 0.0  # over a constant prediction, where `region` is a share of it; else 0

    def unit_at(self, reference: float, n_train: float) -> float:
        """Return the unit of differences that data sets share: the reference, a gain, a datum or 1."""
        if self.gain:
            return self.gain
        return abs(reference) if self.relative else n_train if self.per_datum else 1.0

    @property
    def smallest(self) -> float:
        """The region in the unit that data sets share."""
        return (self.region + self.relative + self.per_datum) / (self.gain or 1.0)

    def with_smallest(self, effect: float | None) -> Measure:
        """Return the measure with another region, in the unit that data sets share; None leaves it."""
        if effect is None:
            return self
        if self.relative:
            return replace(self, relative=effect)
        return replace(self, per_datum=effect) if self.per_datum else replace(self, region=effect)

    def in_words(self, *differences: float) -> str:
        """Return a difference, or the ends of a range, in the unit that data sets share: `0.34 %`."""
        factor, unit = (100.0, " %") if self.relative else (1.0, "")
        if self.per_datum:
            unit = " nats per datum"
        numbers = dict.fromkeys(f"{factor * difference:.2g}" for difference in differences)
        return f"{' to '.join(numbers)}{unit}"

    def region_at(self, reference: float, n_train: float) -> float:
        """Return half the width of the region if the second method has `reference` on `n_train` data."""
        return self.region + self.relative * abs(reference) + self.per_datum * n_train


CONSTANT: Final = {"rmse": 1.0, "nlpd": 0.5 * math.log(2.0 * math.pi * math.e)}
"""Expected scores of the constant prediction N(0, 1) of standardised targets."""


@dataclass(frozen=True)
class ShareOfGain:
    """A smallest difference that matters: a share of what a method gains over a constant prediction."""

    share: float
    method: str

    def applied_to(self, measure: Measure, name: str, mean: float) -> Measure:
        """Return the measure `name` with the region that follows from the method's mean."""
        gain = abs(CONSTANT[name] - mean)
        return replace(measure, region=self.share * gain, relative=0.0, per_datum=0.0, gain=gain)


NAT_A_THOUSAND_DATA = 1e-3  # 0.1 nat per 100 data

MEASURES = {
    "elbo": Measure(METRICS["elbo"].title, "higher", "training", per_datum=NAT_A_THOUSAND_DATA),
    "elbo_area": Measure(
        "mean ELBO of the trace", "higher", "training", per_datum=1e-3, of_trace=True
    ),
    "elbo_drop": Measure(
        "largest drop of the ELBO", "lower", "training", per_datum=1e-3, of_trace=True
    ),
    "noise_variance": Measure("learned noise variance", "lower", "training", relative=0.05),
    "nlpd": Measure(METRICS["nlpd"].title, "lower", "test", region=0.01),
    "nlpd_area": Measure("mean NLPD of the trace", "lower", "test", region=0.01, of_trace=True),
    "error_rate": Measure(METRICS["error_rate"].title, "lower", "test", region=0.005),
    "rmse": Measure(METRICS["rmse"].title, "lower", "test", relative=0.01),
    "mae": Measure(METRICS["mae"].title, "lower", "test", relative=0.01),
    "nmae": Measure(METRICS["nmae"].title, "lower", "test", relative=0.01),
    # a square: 2 % of it is 1 % of its root, as for RMSE
    "nmse": Measure(METRICS["nmse"].title, "lower", "test", relative=0.02),
    "crps": Measure(METRICS["crps"].title, "lower", "test", relative=0.01),
    "coverage": Measure(METRICS["coverage"].title, METRICS["coverage"].better, "test", region=0.01),
    "elbo_early": Measure(
        "mean ELBO of the first third", "higher", "training", per_datum=1e-3, of_trace=True
    ),
    "elbo_midway": Measure(
        "mean ELBO of the second third", "higher", "training", per_datum=1e-3, of_trace=True
    ),
    "elbo_late": Measure(
        "mean ELBO of the last third", "higher", "training", per_datum=1e-3, of_trace=True
    ),
    # of a logarithm, so about 5 %, as for the noise variance
    "log_variance": Measure("log σ²", "lower", "training", region=0.05),
    "log_lengthscale": Measure("log ℓ", "lower", "training", region=0.05),
    "log_noise": Measure("log noise variance", "lower", "training", region=0.05),
    "heldout_elbo": Measure(METRICS["heldout_elbo"].title, "higher", "test", per_datum=1e-3),
    "bound_gap": Measure("bound a datum less test log density", "lower", "test", region=0.01),
}


def known_measure(name: str) -> str:
    """Return the name. Raises `UserError`, which suggests the nearest name, if it is no measure."""
    refuse_unknown("measure", [name], MEASURES)
    return name


MeasureName = Annotated[str, AfterValidator(known_measure)]
