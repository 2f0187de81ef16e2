"""Frames of a simulated walker: a substitute for MUJOCO1 and MUJOCO2 of Cheng and Boots 2017, Sec. 4.

In the paper, 1000 trajectories of a walker trained with TRPO give 936 353 instances. They have 23 inputs (17
states, 6 actions) and those 9 of 17 outputs that determine the rest. MUJOCO2 adds the inputs of the previous
frame. The paper prints neither the trained policy nor the form of the outputs.

Here the walker is gymnasium's Walker2d-v5, its actions come from an untrained policy chosen by name, and the
outputs are the changes of the 9 velocities over a frame of 8 ms. This walker falls within a second. Frames of
different episodes are never paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError, did_you_mean
from svgpbench_datasets.whole_files import writing

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
ROWS = 936_353
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


def policy_of(name: str) -> Policy:
    """Return the policy with a name; raise `DataError` if there is none."""
    if name not in POLICIES:
        raise DataError(
            f"unknown policy {name!r}{did_you_mean(name, POLICIES)} (known: {', '.join(POLICIES)})"
        )
    return POLICIES[name]


def walk(
    rows: int, seed: int, policy: str = "oscillator", frames: Literal[1, 2] = 2
) -> Iterator[tuple[Floats, Floats]]:
    """Simulate one episode after another, until there are `rows` rows in total.

    A smaller `rows` gives the first rows of a larger one. The same seed gives the same numbers on
    one machine with one version of mujoco.

    Yields:
        for an episode of n rows, X [n, 23 * frames] and Y [n, 9]. X has 8 positions and angles, 9
        velocities and 6 torques; with two frames, then the same of the previous frame. Y has
        the changes of the velocities to the next frame.
    """
    draw_actions = policy_of(policy)
    versions()
    import gymnasium

    environment = gymnasium.make(ENVIRONMENT, max_episode_steps=LONGEST, disable_env_checker=True)
    remaining, episode = rows, 0
    while remaining > 0:
        # a stream for each episode: its draws do not depend on how long the earlier ones were
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(episode,)))
        inputs, changes = _episode(environment, draw_actions, rng)
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


@dataclass(frozen=True)
class Walk:
    """Settings of a walker data set, by default the declared one; an unknown policy raises `DataError`."""

    rows: int = ROWS  # N
    seed: int = 0
    policy: str = "oscillator"  # key of `POLICIES`
    frames: Literal[1, 2] = 2  # 1: inputs x1..x23; 2: x1..x46; outputs y1..y9 in both

    def __post_init__(self) -> None:
        policy_of(self.policy)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        inputs = [f"x{i}" for i in range(1, INPUTS * self.frames + 1)]
        return (*inputs, *(f"y{i}" for i in range(1, VELOCITIES + 1)))


def make_walker(path: Path, settings: Walk, on_rows: Callable[[int], None]) -> None:
    """Simulate a data set and write it to a Parquet file, replacing an existing one.

    `on_rows` is called with the number of rows simulated so far.

    Raises:
        DataError: gymnasium or mujoco is missing, or the file cannot be written.
    """
    from svgpbench_datasets.reading.arrow import write_numbers

    metadata = {
        "stands_in_for": STANDS_IN_FOR,
        "environment": ENVIRONMENT,
        "policy": settings.policy,
        "seed": str(settings.seed),
        **versions(),
    }
    with writing(path):
        write_numbers(path, _row_groups(settings, on_rows), metadata)


def _row_groups(settings: Walk, on_rows: Callable[[int], None]) -> Iterator[dict[str, Floats]]:
    """Yield row groups as columns by name; each has at least `GROUP` rows, except the last."""
    episodes: list[Floats] = []
    in_group = total = 0
    for X, Y in walk(settings.rows, settings.seed, settings.policy, settings.frames):
        episodes.append(np.hstack([X, Y]))
        in_group, total = in_group + len(X), total + len(X)
        on_rows(total)
        if in_group >= GROUP or total == settings.rows:
            yield dict(zip(settings.columns, np.concatenate(episodes).T, strict=True))
            episodes, in_group = [], 0
