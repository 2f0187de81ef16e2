"""The cells of a paper's artefacts, from the committed files alone, without the package.

A preset states settings, and a record carries its complete configuration: a record belongs to the method of a
preset whose statements it fulfils. Of two such methods the one that states more is meant, since what a method
does not state has its default.
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "harness" / "svgpbench_papers"
RESULTS = ROOT / "results"
DATASETS = ROOT / "datasets" / "svgpbench_datasets"
MACHINE = ("oom", "timeout", "crashed", "skipped", "error")
SETTINGS = ("kernel", "inducing", "training", "jitter")

Settings = dict[str, Any]
Floats = npt.NDArray[np.float64]


class NotRun(Exception):  # noqa: N818
    """Records that a part needs are not there."""


class Run(NamedTuple):
    """A cell: where it stands, its final metrics, and its trace."""

    case: str
    method: str
    split: int
    seed: int
    perturbed: bool
    ok: bool
    config: Settings
    n_train: int
    n_test: int
    metrics: dict[str, float]
    trace: dict[str, Floats]

    @property
    def key(self) -> tuple[int, int]:
        return self.split, self.seed

    @property
    def end(self) -> int:
        """The number of its iterations."""
        training = self.config["training"]
        online = training["kind"] == "online"
        return int(training["online"]["iterations"] if online else training["em_iterations"])

    @property
    def minibatches(self) -> bool:
        training = self.config["training"]
        return training["kind"] == "online" or training["batch_size"] is not None


def toml(path: Path) -> Settings:
    return tomllib.loads(path.read_text())


def merged(*layers: Settings) -> Settings:
    """Merge nested settings; a later layer overrides an earlier one."""
    result: Settings = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result


def fulfils(recorded: Any, stated: Any) -> bool:
    """Whether a record's settings have everything that is stated."""
    if isinstance(stated, dict) and isinstance(recorded, dict):
        return all(key in recorded and fulfils(recorded[key], stated[key]) for key in stated)
    return bool(stated == recorded)


@functools.cache
def majority(data: str) -> float | None:
    """Return the share of the most frequent class of a data set, which its variants inherit."""
    name, _, variant = data.split("@", maxsplit=1)[0].partition(":")
    for path in [DATASETS / "registry.toml", *sorted(DATASETS.glob("registry/*.toml"))]:
        if (entry := toml(path).get(name)) is not None:
            own: Settings = entry.get("variants", {}).get(variant, {})
            share: float | None = own.get("majority", entry.get("majority"))
            return share
    return None


def statements(stated: Any) -> int:
    return sum(map(statements, stated.values())) if isinstance(stated, dict) else 1


@functools.cache
def records(experiment: str) -> list[Settings]:
    """All records of an experiment, one dictionary each."""
    path = RESULTS / f"{experiment}.parquet"
    if not path.exists():
        raise NotRun(path.name)
    rows: list[Settings] = []
    for row in cast(list[Settings], pd.read_parquet(path).to_dict("records")):
        config, data = json.loads(row["config"]), json.loads(row["data"])
        config["training"].setdefault("steps", "full")  # keys that older records do not have
        config["likelihood"].setdefault("latent_mean", "zero")
        config["likelihood"].setdefault("integrals", "fixed")
        config["data"]["factors"] = dict(config["data"].get("factors") or [])
        metrics = {key[7:]: value for key, value in row.items() if key.startswith("metric_")}
        trace = {
            key[6:]: np.asarray(value, float)
            for key, value in row.items()
            if key.startswith("trace_") and np.ndim(value) == 1
        }
        status = {"ok": row["status"] == "ok", "by_machine": row["status"] in MACHINE}
        rows.append({"config": config, "data": data, "metrics": metrics, "trace": trace, **status})
    return rows


def problems(experiment: Settings, preset: Settings) -> Iterator[tuple[str, Settings]]:
    """Yield each case of a preset: its name in tables, and what its problem states."""
    for problem in experiment["problems"]:
        for entry in problem["data"]:
            data: Settings = {"name": entry} if isinstance(entry, str) else entry
            name, factors = data["name"], data.get("factors", {})
            if {name, name.split("@")[0]} & set(preset.get("data", [name])) and all(
                factors[key] in levels for key, levels in preset.get("where", {}).items()
            ):
                label = ", ".join(f"{key}={value:g}" for key, value in factors.items())
                yield label or name, {**problem, "data": data}


def titles(experiment: Settings, preset: Settings) -> dict[str, str]:
    """Return the methods of a preset by label: a row that one method alone stands for, else the label."""
    chosen = [m for m in experiment["methods"] if m["label"] in preset.get("methods", [m["label"]])]
    times = Counter(method.get("row") for method in chosen)
    return {
        m["label"]: m["row"] if m.get("row") and times[m["row"]] == 1 else m["label"]
        for m in chosen
    }


@functools.cache
def runs(name: str, preset_name: str) -> list[Run]:
    """Return the runs of a preset on its first backend; raises `NotRun` where one is missing."""
    experiment = toml(next(PAPERS.parent.glob(f"**/experiments/{name}.toml")))
    preset = experiment["presets"][preset_name]
    base, over = ({key: x[key] for key in SETTINGS if key in x} for x in (experiment, preset))
    split = experiment["split"] | {k: preset[k] for k in ("folds", "run_folds") if k in preset}
    splits = split.pop("run_folds", None) or list(range(split.get("folds", 1)))
    splits = [0] if split["kind"] == "fixed" else splits
    # random splits are draws whose seeds follow the first one's
    drawn = split.pop("seed", 0) if split["kind"] == "random" else None
    seeds = preset.get("seeds", experiment["seeds"])
    backend = preset.get("backends", experiment["backends"])[0]
    shown, found, missing = titles(experiment, preset), [], 0
    replicas = [x for x in preset.get("perturbation_replicas", []) if x["backend"] == backend]
    for case, problem in problems(experiment, preset):
        stated = []
        for method in experiment["methods"]:
            own = {key: method[key] for key in SETTINGS if key in method}
            asked = {"method": {"name": method["name"], "options": method.get("options", {})}}
            whole = merged(base, problem, own, over, asked, {"split": split})
            stated.append((statements(whole), whole, shown.get(method["label"])))
        # of methods that state the same, the one of the preset
        stated.sort(key=lambda entry: (-entry[0], entry[2] is None))
        here = []
        for row in records(name):
            config = row["config"]
            if (config["data"]["name"], config["backend"]["name"]) != (
                problem["data"]["name"],
                backend,
            ):
                continue
            title = next((title for _, s, title in stated if fulfils(config, s)), None)
            one = config["split"]
            at = one["fold"] if drawn is None else one["seed"] - drawn
            perturbed = config["perturbation"] > 0
            if title and at in splits and config["seed"] in seeds and (replicas or not perturbed):
                if row["by_machine"]:
                    raise NotRun(f"{name}: a cell that a machine or a defect ended")
                sizes = row["data"]["n_train"], row["data"]["n_test"]
                where = (case, title, at, config["seed"], perturbed, row["ok"], config)
                here.append(Run(*where, *sizes, row["metrics"], row["trace"]))
        again = sum(len(x.get("seeds") or seeds) for x in replicas)
        missing += len(shown) * len(splits) * (len(seeds) + again) - len(here)
        found += here
    if missing:
        raise NotRun(f"{missing} cells of {name}, {preset_name}")
    return found
