"""Shards of an array of jobs: together all cells, each once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svgpbench.errors import UserError
from svgpbench.experiments import load_experiment
from svgpbench.experiments.plan import CellShard, Plan

IDS = st.lists(st.integers(0, 2**64 - 1).map("{:016x}".format), unique=True)


@given(ids=IDS, count=st.integers(1, 20), data=st.data())
def test_each_cell_is_in_one_shard_whatever_the_order_and_none_is_larger(
    ids: list[str], count: int, data: st.DataObject
) -> None:
    shards = [CellShard.parse(f"{place}/{count}") for place in range(1, count + 1)]
    parts = [shard.among(ids) for shard in shards]
    assert sorted(one for part in parts for one in part) == sorted(ids)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    shuffled = data.draw(st.permutations(ids))
    assert [shard.among(shuffled * 2) for shard in shards] == parts


def test_shards_of_an_experiment_are_its_cells_in_their_order() -> None:
    plan = Plan.of(load_experiment("adam2021-fig3"), "quick")
    cells = plan.configs
    parts = [CellShard(place, 4).select(plan).configs for place in range(1, 5)]
    found = [[cells.index(cell) for cell in part] for part in parts]
    assert sorted(at for part in found for at in part) == list(range(len(cells)))
    assert all(part == sorted(part) for part in found)
    assert {len(part) for part in found} == {len(cells) // 4}
    # a method, and a data set, takes its time on every machine
    assert all(len({cell.method.title for cell in part}) == 3 for part in parts)
    assert all(len({cell.data.name for cell in part}) == 6 for part in parts)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/4/2", "", "1/ 4"])
def test_what_is_no_shard_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match="give I/N with I from 1 to N, such as 2/8"):
        CellShard.parse(text)
