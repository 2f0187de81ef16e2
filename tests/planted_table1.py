"""Records of adam2021's Table 1 planted for its cells: any level of NLPD and bound for each method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from hand_records import identified

from svgpbench.config import CellConfig
from svgpbench.experiments import load_experiment, resolve
from svgpbench.results.records import Record, write_record

TABLE1 = load_experiment("adam2021-table1")
SPREAD = 1e-3
"""From one seed to the next."""

Levels = Mapping[str, float]
"""By a method's label, or by the beginning of several."""


def level(levels: Levels, label: str) -> float:
    """That of the longest name which the label begins with."""
    return levels[max((name for name in levels if label.startswith(name)), key=len)]


def plant(
    folder: Path,
    preset: str,
    nlpd: Levels,
    elbo: Levels | None = None,
    *,
    early: Levels | None = None,
    fails: Iterable[str] = (),
    status: str = "not_pd",
) -> list[CellConfig]:
    """Write a record of every cell of a preset on JAX; `early` is the NLPD up to iteration 500.

    Seeds differ by `SPREAD`, in t-SVGP the other way round, so that paired differences vary.
    """
    cells = resolve(TABLE1, preset)
    for cell in cells:
        label = cell.method.title
        seed = SPREAD * (cell.seed - 2) * (-1 if label.startswith("t-SVGP") else 1)
        end = level(nlpd, label) + seed
        start = end if early is None else level(early, label) + seed
        bound = level(elbo or {"": -20_000.0}, label) + 1e3 * seed
        ended = status if label in fails else "ok"
        write_record(folder, record_of(cell, (start, start, end, end), bound, ended))
    return cells


def plant_choice(folder: Path, best: Iterable[str] = ()) -> None:
    """Records of preset `rates` by which `best` are chosen, or without any those that the preset names."""
    named = TABLE1.presets["paper"].methods or ()
    bounds = {"": -90_000.0, **dict.fromkeys(named, -20_000.0), **dict.fromkeys(best, -19_000.0)}
    plant(folder, "rates", {"": 0.3}, bounds)


def record_of(cell: CellConfig, nlpd: tuple[float, ...], elbo: float, status: str) -> Record:
    """A record whose trace has the NLPD at 250, 500, 750 and 1000."""
    trace = {"iteration": [250, 500, 750, 1000], "nlpd": list(nlpd), "elbo": [elbo] * 4}
    mnist = {"n_train": 60_000, "n_test": 10_000, "dimensions": 784}
    return identified(cell, elbo, nlpd=nlpd[-1], status=status, trace=trace, data=mnist)
