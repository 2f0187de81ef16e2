"""The walker's frames are those of its physics, the same for a seed; a file is whole or not there.

A mistake on the script's command line is one line, and leaves no file.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import make_walker
import numpy as np
import pytest
from make_walker import INPUTS, POSITIONS, STATE, make, walk

from svgpbench_datasets import REGISTRY, DataError, Registry, load_user_table
from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.reading.arrow import write_numbers
from svgpbench_datasets.sources import Sources

ROWS = 400
PACKAGE = Path(str(files("svgpbench_datasets")))


@pytest.fixture
def simulator() -> None:
    pytest.importorskip("gymnasium", reason="the extra `walker` is not installed")
    pytest.importorskip("mujoco", reason="the extra `walker` is not installed")


def whole(rows: int, seed: int, policy: str = "oscillator", frames: int = 2) -> tuple[Floats, ...]:
    episodes = list(walk(rows, seed, policy, frames))
    return np.concatenate([X for X, _ in episodes]), np.concatenate([Y for _, Y in episodes])


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("policy", ["oscillator", "random"])
def test_a_row_follows_from_the_row_before_it_within_an_episode(policy: str) -> None:
    lengths, off = [], []
    for X, Y in walk(ROWS, 0, policy):
        lengths.append(len(X))
        assert X.shape == (len(X), 2 * INPUTS) and Y.shape == (len(X), 9)
        now, before = X[:, :INPUTS], X[:, INPUTS:]
        assert np.array_equal(before[1:], now[:-1])
        velocities = now[:, POSITIONS:STATE]
        assert np.allclose(velocities[1:], velocities[:-1] + Y[:-1], rtol=0, atol=1e-13)
        # the torso turns by its velocity in 0.008 s; where that is clipped the numbers cannot tell
        turned, mean = np.diff(now[:, 1]), (velocities[1:, 2] + velocities[:-1, 2]) / 2
        known = np.abs(mean) < 9.0
        off += np.abs(turned - 0.008 * mean)[known].tolist()
        assert np.abs(velocities).max() <= 10.0
        assert np.abs(now[:, STATE:]).max() <= 1.0
    assert sum(lengths) == ROWS
    assert len(lengths) > 5
    assert np.median(off) < 1e-3


@pytest.mark.usefixtures("simulator")
def test_frames_of_different_episodes_are_never_paired() -> None:
    episodes = list(walk(ROWS, 0))
    for (X, _), (following, _) in pairwise(episodes):
        # an episode starts upright, 1.25 m above the ground within the 5 mm that a reset adds
        assert abs(following[0, INPUTS] - 1.25) < 0.006
        assert np.abs(following[0, INPUTS + POSITIONS : INPUTS + STATE]).max() < 0.006
        assert not np.array_equal(following[0, INPUTS:], X[-1, :INPUTS])


@pytest.mark.usefixtures("simulator")
def test_the_same_seed_gives_the_same_numbers_and_fewer_rows_the_first_of_them() -> None:
    X, Y = whole(ROWS, 0)
    again, fewer, other = whole(ROWS, 0), whole(150, 0), whole(ROWS, 1)
    assert np.array_equal(again[0], X) and np.array_equal(again[1], Y)
    assert np.array_equal(fewer[0], X[:150]) and np.array_equal(fewer[1], Y[:150])
    assert not np.isclose(other[0][:, :STATE], X[:, :STATE]).all(axis=1).any()
    assert not np.isclose(whole(ROWS, 0, "random")[1], Y).all(axis=1).any()
    one = whole(ROWS, 0, frames=1)
    assert np.array_equal(one[0], X[:, :INPUTS]) and np.array_equal(one[1], Y)


@pytest.mark.usefixtures("simulator")
def test_torques_of_the_oscillator_are_sines_and_those_of_random_are_uniform() -> None:
    torques = whole(2000, 0, "random")[0][:, STATE:INPUTS]
    # three standard errors of uniform numbers
    assert torques.std() == pytest.approx(1 / np.sqrt(3), rel=0.0125)
    assert abs(np.corrcoef(torques[1:, 0], torques[:-1, 0])[0, 1]) < 0.1
    X, _ = next(iter(walk(2000, 0)))
    steady = X[:, STATE:INPUTS]
    assert np.abs(steady).max() < 0.2 + 5 * 0.05
    # less than any torque in [-1, 1] jumps: noise of 0.05, and a sine's 0.2 * 2π * 3 * 0.008
    assert np.abs(np.diff(steady, axis=0)).max() < 5 * np.sqrt(2) * 0.05 + 0.03


@pytest.mark.usefixtures("simulator")
def test_the_file_holds_the_numbers_and_says_what_they_are(tmp_path: Path) -> None:
    import gymnasium
    import mujoco
    import pyarrow.parquet as pq

    path, counts = tmp_path / "new" / "w.parquet", []
    make(path, ROWS, 3, "random", on_rows=counts.append)
    assert [file.name for file in path.parent.iterdir()] == ["w.parquet"]
    assert counts[-1] == ROWS
    assert counts == sorted(counts)
    X, Y = whole(ROWS, 3, "random")
    table = pq.read_table(path)
    assert table.column_names == [f"x{at}" for at in range(1, 47)] + [
        f"y{at}" for at in range(1, 10)
    ]
    assert np.array_equal(np.column_stack(table.columns), np.hstack([X, Y]))
    assert table.schema.metadata == {
        b"stands_in_for": b"MUJOCO1 and MUJOCO2 of Cheng and Boots 2017",
        b"environment": b"Walker2d-v5",
        b"policy": b"random",
        b"seed": b"3",
        b"gymnasium": gymnasium.__version__.encode(),
        b"mujoco": mujoco.__version__.encode(),
    }


@pytest.mark.usefixtures("simulator")
def test_rows_are_written_group_after_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    monkeypatch.setattr(make_walker, "GROUP", 100)
    make(tmp_path / "w.parquet", ROWS)
    with pq.ParquetFile(tmp_path / "w.parquet") as file:
        groups = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
        assert sum(groups) == ROWS
        assert len(groups) > 2
        assert np.array_equal(np.column_stack(file.read().columns), np.hstack(whole(ROWS, 0)))


@pytest.mark.usefixtures("simulator")
def test_a_smaller_file_is_a_table_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "w.parquet"
    make(path, ROWS)
    names = [f"x{at}" for at in range(1, 24)]
    dataset = load_user_table(path, target="y2", task="regression", features=names)
    X, Y = whole(ROWS, 0)
    assert dataset.feature_names == tuple(names)
    assert np.array_equal(dataset.X, X[:, :INPUTS])
    assert np.array_equal(dataset.y, Y[:, 1])


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("earlier", [None, b"an earlier file"])
def test_an_interruption_leaves_what_was_there(tmp_path: Path, earlier: bytes | None) -> None:
    path = tmp_path / "w.parquet"
    if earlier:
        path.write_bytes(earlier)

    def interrupt(done: int) -> None:
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(path, ROWS, on_rows=interrupt)
    found = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert found == ({"w.parquet": earlier} if earlier else {})


def test_a_missing_package_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(DataError, match=r"pip install 'svgpbench\[walker\]'") as caught:
        make(tmp_path / "w.parquet", 10)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("simulator")
def test_the_script_makes_a_small_walk_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine.parquet"
    make_walker.main(["--rows", "200", "--frames", "1", "--seed", "2", "--out", str(out)])
    assert capsys.readouterr().out == f"200 rows of 32 columns: {out}\n"
    names = [f"x{at}" for at in range(1, 24)]
    table = load_user_table(out, target="y1", task="regression", features=names)
    assert np.array_equal(table.X, whole(200, 2, frames=1)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "300"], "name a file for them with --out"),
        (["--policy", "random"], "name a file for them with --out"),
        (["--rows", "0", "--out", "w.parquet"], "--rows is a number from 1 on"),
        (["--seed", "-1", "--out", "w.parquet"], "--seed one from 0 on"),
        (["--frames", "3", "--out", "w.parquet"], "--frames: invalid choice: "),
        (["--policy", "randon", "--out", "w.parquet"], "--policy: invalid choice: 'randon'"),
        (["--rows", "9", "--out", "w.csv"], "--out w.csv: name a file that ends in .parquet"),
        (["--rows", "9", "--out", "d.parquet"], "--out d.parquet: name a file that ends in"),
    ],
)
def test_a_mistake_is_one_line_and_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path / "cache"))
    (tmp_path / "d.parquet").mkdir()
    with pytest.raises(SystemExit) as ended:
        make_walker.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["d.parquet"]
    assert list((tmp_path / "d.parquet").iterdir()) == []


@pytest.mark.usefixtures("simulator")
def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(SystemExit):
        make_walker.main(["--rows", "9", "--out", str(tmp_path / "file" / "w.parquet")])
    assert "w.parquet cannot be written (" in capsys.readouterr().err.splitlines()[-1]


def test_the_declared_sizes_are_those_of_the_paper() -> None:
    for name, inputs in (("walker-stand-in", 23), ("walker-stand-in:two-frames", 46)):
        entry = REGISTRY.describe(name)
        assert (entry.rows, len(entry.features), entry.target) == (936_353, inputs, "y1")
        assert entry.rows == make_walker.ROWS
        assert entry.columns == make_walker.column_names(2)
        assert entry.made and entry.fingerprint is None and not entry.shipped
        assert entry.splits and entry.splits.train_rows
        assert entry.rows - entry.splits.train_rows == 93_608
        assert "Stand-in" in entry.title and any("stand-in" in defect for defect in entry.defects)


def small_registry(folder: Path, rows: int, frames: int = 2) -> tuple[Registry, Floats]:
    """The two entries with fewer rows, and a file of random numbers for them; its numbers."""
    declared = (PACKAGE / "registry" / "generated.toml").read_text(encoding="utf-8")
    declared = declared[declared.index("[walker-stand-in]") :].replace("rows = 936353", "rows = 30")
    declared = declared.replace("splits = { train_rows = 842745 }", "")
    (folder / "registry.toml").write_text(declared, encoding="utf-8")
    names = make_walker.column_names(frames)
    numbers = np.random.default_rng(0).standard_normal((rows, len(names)))
    parts = [dict(zip(names, part.T, strict=True)) for part in (numbers[:20], numbers[20:])]
    write_numbers(folder / "cache" / "walker" / "walker.parquet", parts)
    return Registry(folder, Sources(folder, cache=folder / "cache", mirrors=())), numbers


def test_both_entries_read_their_columns_of_one_file(tmp_path: Path) -> None:
    registry, numbers = small_registry(tmp_path, 30)
    for name, inputs in (("walker-stand-in", 23), ("walker-stand-in:two-frames", 46)):
        dataset = registry.load(name)
        assert np.array_equal(dataset.X, numbers[:, :inputs])
        assert np.array_equal(dataset.y, numbers[:, 46])


def test_a_file_that_is_not_the_declared_one_is_refused(tmp_path: Path) -> None:
    registry, _ = small_registry(tmp_path, 31)
    with pytest.raises(
        DataError, match=r"walker/walker\.parquet has 31 rows where 30 are declared"
    ):
        registry.load("walker-stand-in")
    registry, _ = small_registry(tmp_path, 30, frames=1)
    assert registry.load("walker-stand-in").X.shape == (30, 23)
    with pytest.raises(DataError, match=r"walker/walker\.parquet: no feature column 'x24'"):
        registry.load("walker-stand-in:two-frames")
    file = tmp_path / "cache" / "walker" / "walker.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"walker/walker\.parquet is not a Parquet file") as caught:
        registry.load("walker-stand-in")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["walker-stand-in", "walker-stand-in:two-frames"])
def test_an_absent_file_says_which_command_makes_it(tmp_path: Path, name: str) -> None:
    registry = Registry(PACKAGE, Sources(PACKAGE / "data", cache=tmp_path, mirrors=()))
    assert not registry.at_hand(name)
    with pytest.raises(DataError, match=r"machine, once: `python datasets/scripts/make_walker.py`"):
        registry.load(name)
