"""Make `walker-stand-in`, in place of MUJOCO1 and MUJOCO2 of Cheng and Boots 2017, Sec. 4.

    pip install 'svgpbench[walker]'
    python make_walker.py                                   # the declared set: three minutes, 410 MB
    python make_walker.py --rows 5000 --out mine.parquet    # another walk, as a table of your own

In the paper, 1000 trajectories of a walker trained with TRPO give 936 353 instances. They have 23 inputs (17
states, 6 actions) and those 9 of 17 outputs that determine the rest. MUJOCO2 adds the inputs of the previous
frame. The paper prints neither the trained policy nor the form of the outputs.

Here the walker is gymnasium's Walker2d-v5, its actions come from an untrained policy chosen by name, and the
outputs are the changes of the 9 velocities over a frame of 8 ms. This walker falls within a second. Frames of
different episodes are never paired.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from svgpbench_datasets import REGISTRY, DataError
from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.fetch.cache import cache_folder
from svgpbench_datasets.reading.arrow import write_numbers

NAME, ROWS = "walker-stand-in", 936_353
ENVIRONMENT = "Walker2d-v5"
# Walker2d leaves the horizontal position out of its 9 coordinates
POSITIONS, VELOCITIES, ACTIONS = 8, 9, 6
STATE, INPUTS = POSITIONS + VELOCITIES, POSITIONS + VELOCITIES + ACTIONS
# gymnasium's frame_skip of 4 times MuJoCo's step of 2 ms
FRAME_S = 0.008
LONGEST = 1000  # maximum number of frames of an episode

Act: TypeAlias = Callable[[int], Floats]
"""Function from the number of a frame in its episode to its 6 torques in [−1, 1]."""
Policy: TypeAlias = Callable[[np.random.Generator], Act]
"""Function that draws the parameters of an episode and returns its actions."""
GROUP = 1 << 15  # 14 MiB of rows at a time
STANDS_IN_FOR = "MUJOCO1 and MUJOCO2 of Cheng and Boots 2017"


def uniform(rng: np.random.Generator) -> Act:
    """Return actions with torques uniform on [−1, 1], drawn anew in every frame."""
    return lambda frame: rng.uniform(-1.0, 1.0, ACTIONS)


def oscillator(rng: np.random.Generator) -> Act:
    """Return actions with sinusoidal torques plus noise, clipped to [−1, 1].

    Amplitude, frequency and phase of each torque are drawn once per episode.
    """
    amplitude = rng.uniform(0.0, 0.2, ACTIONS)
    frequency = rng.uniform(0.5, 3.0, ACTIONS)  # hertz
    phase = rng.uniform(0.0, 2.0 * np.pi, ACTIONS)

    def act(frame: int) -> Floats:
        sines = amplitude * np.sin(phase + 2.0 * np.pi * frequency * FRAME_S * frame)
        return np.clip(sines + 0.05 * rng.standard_normal(ACTIONS), -1.0, 1.0)

    return act


POLICIES: dict[str, Policy] = {"oscillator": oscillator, "random": uniform}


def walk(
    rows: int, seed: int = 0, policy: str = "oscillator", frames: int = 2
) -> Iterator[tuple[Floats, Floats]]:
    """Simulate one episode after another, until there are `rows` rows in total.

    `policy` is a key of `POLICIES`, `frames` the number of stacked frames per row, 1 or 2. A smaller
    `rows` gives the first rows of a larger one. The same seed gives the same numbers on one machine with
    one version of mujoco.

    Yields:
        for an episode of n rows, X [n, 23 * frames] and Y [n, 9]. X has 8 positions and angles, 9
        velocities and 6 torques; with two frames, then the same of the previous frame. Y has
        the changes of the velocities to the next frame.
    """
    versions()
    import gymnasium

    environment = gymnasium.make(ENVIRONMENT, max_episode_steps=LONGEST, disable_env_checker=True)
    remaining, episode = rows, 0
    while remaining > 0:
        # a stream for each episode: its draws do not depend on how long the earlier ones were
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(episode,)))
        inputs, changes = _episode(environment, POLICIES[policy], rng)
        # a first frame has no previous one; without it, `frames` 1 and 2 have the same rows
        X = np.hstack([inputs[1:], inputs[:-1]])[:remaining, : INPUTS * frames]
        yield X, changes[1:][:remaining]
        remaining, episode = remaining - len(X), episode + 1


def versions() -> dict[str, str]:
    """Return the versions of gymnasium and mujoco; raise `DataError` if one is not installed."""
    try:
        import gymnasium
        import mujoco
    except ImportError:
        raise DataError(
            "the walker needs gymnasium and mujoco; install them: pip install 'svgpbench[walker]'"
        ) from None
    return {"gymnasium": str(gymnasium.__version__), "mujoco": str(mujoco.__version__)}


def _episode(environment: Any, policy: Policy, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Simulate one episode, until a fall or the limit of frames.

    Returns inputs [frames, 23] and changes of the velocities [frames, 9].
    """
    act = policy(rng)
    state, _ = environment.reset(seed=int(rng.integers(1 << 31)))
    inputs: list[Floats] = []
    changes: list[Floats] = []
    ended = False
    while not ended:
        torques = act(len(inputs))
        after, _, fallen, too_long, _ = environment.step(torques)
        inputs.append(np.concatenate([state, torques]))
        # Walker2d observes velocities clipped to ±10: beyond them it shows no change
        changes.append(after[POSITIONS:] - state[POSITIONS:])
        state, ended = after, fallen or too_long
    return np.array(inputs), np.array(changes)


def column_names(frames: int) -> tuple[str, ...]:
    """Return the names of the columns: x1..x23, or x1..x46 for two frames, and y1..y9."""
    inputs = [f"x{i}" for i in range(1, INPUTS * frames + 1)]
    return (*inputs, *(f"y{i}" for i in range(1, VELOCITIES + 1)))


def make(
    path: Path,
    rows: int,
    seed: int = 0,
    policy: str = "oscillator",
    frames: int = 2,
    on_rows: Callable[[int], None] = lambda done: None,
) -> None:
    """Simulate a data set and write it to a Parquet file, replacing an existing one; arguments as `walk`.

    `on_rows` is called with the number of rows simulated so far.

    Raises:
        DataError: gymnasium or mujoco is missing, or the file cannot be written.
    """
    metadata = {
        "stands_in_for": STANDS_IN_FOR,
        "environment": ENVIRONMENT,
        "policy": policy,
        "seed": str(seed),
        **versions(),
    }

    def row_groups() -> Iterator[dict[str, Floats]]:
        episodes: list[Floats] = []
        in_group = total = 0
        for X, Y in walk(rows, seed, policy, frames):
            episodes.append(np.hstack([X, Y]))
            in_group, total = in_group + len(X), total + len(X)
            on_rows(total)
            if in_group >= GROUP or total == rows:
                yield dict(zip(column_names(frames), np.concatenate(episodes).T, strict=True))
                episodes, in_group = [], 0

    write_numbers(path, row_groups(), metadata)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the data set that the command line describes; a mistake exits with code 2."""
    parser = argparse.ArgumentParser(description=f"Make the data set {NAME}.")
    parser.add_argument("--rows", type=int, default=ROWS, help="number of rows")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument(
        "--policy", choices=POLICIES, default="oscillator", help="policy that moves the walker"
    )
    parser.add_argument(
        "--frames", type=int, choices=(1, 2), default=2, help="number of stacked frames per row"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE.parquet", help=f"file to write; by default that of {NAME}"
    )
    walker = vars(parser.parse_args(arguments))
    out, rows = walker.pop("out"), walker["rows"]
    if rows < 1 or walker["seed"] < 0:
        parser.error("--rows is a number from 1 on, --seed one from 0 on")
    if out is None:
        # a file in the cache is loaded by the name of the set, so it is the declared walk only
        if any(value != parser.get_default(key) for key, value in walker.items()):
            parser.error(f"other settings than those of {NAME}: name a file for them with --out")
        out = cache_folder() / str(REGISTRY.describe(NAME).made)
    elif out.is_dir() or out.suffix.lower() not in (".parquet", ".pq"):
        parser.error(f"--out {out}: name a file that ends in .parquet")

    def show(done: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == rows else "\r"
            print(f"{done} of {rows} rows", end=end, file=sys.stderr, flush=True)

    try:
        make(out, **walker, on_rows=show)
    except DataError as error:
        parser.error(str(error))
    print(f"{rows} rows of {len(column_names(walker['frames']))} columns: {out}")


if __name__ == "__main__":
    main()
