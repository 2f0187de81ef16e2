"""Measurements of a lent device: agreement first, resumed, in time, and an error is a line."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svgpbench.benchmarks.timing import device
from svgpbench.benchmarks.timing.device import (
    EXTENTS,
    MOST_ENTRIES,
    Extent,
    cells_at_once,
    measure,
    parts_of,
)
from svgpbench.benchmarks.timing.problems import shape_of
from svgpbench.benchmarks.timing.rates import Rates
from svgpbench.errors import UserError
from svgpbench.tree import tree_map

ARITHMETIC = Extent((7,), (1, 2), 16, (), (), 1, ())


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "device.jsonl").read_text().splitlines()]


def test_agreement_and_arithmetic_are_measured_and_not_again(tmp_path: Path) -> None:
    end = time.monotonic() + 300.0
    made = list(measure("numpy", "cpu", ARITHMETIC, tmp_path, end))
    agreement, one, two = made
    assert agreement["part"] == "numpy: agreement" and agreement["result"]["ok"]
    assert (one["part"], two["part"]) == (
        "numpy: arithmetic, M = 7",
        "numpy: arithmetic, M = 7, P = 2",
    )
    assert set(one["result"]) == set(Rates._fields) and min(one["result"].values()) > 0
    assert lines(tmp_path) == made
    assert not list(measure("numpy", "cpu", ARITHMETIC, tmp_path, end))


def test_an_error_is_a_line_that_is_tried_again_and_nothing_starts_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = {"first": lambda: {"x": float("nan")}, "second": lambda: 1 / 0, "third": lambda: 3}
    monkeypatch.setattr(device, "parts_of", lambda *_: iter(works.items()))
    far = time.monotonic() + 60.0
    first, second, third = measure("numpy", "cpu", ARITHMETIC, tmp_path, far)
    assert (first["result"], third["result"]) == ({"x": None}, 3)  # a number that JSON has not
    assert second["error"] == "ZeroDivisionError: division by zero"
    works["second"] = lambda: 2
    assert not list(measure("numpy", "cpu", ARITHMETIC, tmp_path, time.monotonic() - 1.0))
    (again,) = measure("numpy", "cpu", ARITHMETIC, tmp_path, far)
    assert (again["part"], again["result"]) == ("second", 2)
    assert len(lines(tmp_path)) == 4
    # killed in the middle of its last line
    file = tmp_path / "device.jsonl"
    file.write_text(file.read_text()[:-9])
    (again,) = measure("numpy", "cpu", ARITHMETIC, tmp_path, far)
    assert (again["part"], len(lines(tmp_path))) == ("second", 4)


def test_a_folder_has_the_measurements_of_one_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "parts_of", lambda *_: iter({"first": lambda: 1}.items()))
    command = ["device", str(tmp_path), "--here", "--backend", "numpy", "--device"]
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", [*command, "cpu"])
        device.main()
    assert len(lines(tmp_path)) == 1
    monkeypatch.setattr(sys, "argv", [*command, "cuda"])
    with pytest.raises(SystemExit, match="2"):
        device.main()
    assert "has measurements on cpu; name another folder" in capsys.readouterr().err


def names(extent: Extent) -> Iterator[str]:
    return (part for part, _ in parts_of("jax", "cuda", extent, Path()))


def test_the_full_extent_begins_with_agreement_and_ends_with_stacks_that_fit() -> None:
    full = list(names(EXTENTS["full"]))
    assert full[0] == "jax: agreement"
    assert full.index("jax: steps, reg-M50") < full.index("jax: arithmetic, M = 100, P = 16")
    assert "jax: arithmetic, M = 4096, P = 16" in full
    assert "jax: arithmetic, M = 4096, P = 64" not in full  # 8 GiB each
    assert 16 * 4096**2 <= MOST_ENTRIES < 64 * 4096**2
    assert shape_of("reg-M500-b8192").b == 8192
    assert all(shape_of(name) for name in EXTENTS["full"].problems)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_cells_at_once_are_the_same_cells(backend: str) -> None:
    found = cells_at_once(backend, "cpu", "tiny", 5)
    assert found["cells"] == 5 and 0.0 <= found["difference"] < 1e-12
    assert min(found["alone_s"], found["together_s"], found["first_call_s"]) > 0.0


def test_cells_that_change_places_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    class Swapped:
        @staticmethod
        def vmap(step: Any) -> Any:
            import jax

            return lambda *x: tree_map(lambda y: y[::-1], jax.vmap(step)(*x))

    def load(name: str, *package: str) -> Any:  # JAX itself loads parts of its own by this
        return Swapped if name == "jax" else importlib.import_module(name, *package)

    monkeypatch.setattr(device, "importlib", SimpleNamespace(import_module=load))
    assert cells_at_once("jax", "cpu", "tiny", 2)["difference"] > 0.1


def test_cells_at_once_need_a_framework_with_vmap() -> None:
    with pytest.raises(UserError, match="backend 'numpy' has no vmap"):
        cells_at_once("numpy", "cpu", "tiny", 2)


def test_steps_with_graphs_have_names_and_records_of_their_own(tmp_path: Path) -> None:
    extent = EXTENTS["small"]._replace(steps=("e_step",))
    ((part, work),) = parts_of("torch with CUDA graphs", "cpu", extent, tmp_path)
    assert part == "torch with CUDA graphs: steps, tiny"
    assert work() == {"record": "tiny-torch-with-CUDA-graphs.json", "failed": []}
    assert (tmp_path / "tiny-torch-with-CUDA-graphs.json").is_file()
