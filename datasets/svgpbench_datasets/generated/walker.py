"""Frames of a simulated walker: a stand-in for MUJOCO1 and MUJOCO2 of Cheng and Boots 2017, Sec. 4.

There, 1000 trajectories of a walker that TRPO had trained give 936 353 instances: 23 inputs (17 of state, 6
actions) and the 9 outputs of 17 that the rest follow from; MUJOCO2 adds the inputs of the frame before. The
paper prints neither the trained policy nor the form of the outputs. Here the walker is gymnasium's
Walker2d-v5, its actions are those of an untrained policy by name, and the outputs are the changes of the 9
velocities over a frame of 8 ms.

A walker of ours falls within a second. Frames of different episodes are never paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from svgpbench_datasets.dataset import Floats
from svgpbench_datasets.errors import DataError, did_you_mean

ENVIRONMENT = "Walker2d-v5"
POSITIONS, VELOCITIES, ACTIONS = 8, 9, 6
STATE, INPUTS = POSITIONS + VELOCITIES, POSITIONS + VELOCITIES + ACTIONS
FRAME_S = 0.008
LONGEST = 1000  # frames of an episode

Act: TypeAlias = Callable[[int], Floats]
"""The 6 torques in [−1, 1] of a frame, by its number in the episode."""
Policy: TypeAlias = Callable[[np.random.Generator], Act]
"""Draws what an episode keeps."""
ROWS = 936_353
GROUP = 1 << 15  # 14 MiB of rows at a time
STANDS_IN_FOR = "MUJOCO1 and MUJOCO2 of Cheng and Boots 2017"


def uniform(rng: np.random.Generator) -> Act:
    """Every torque anything, in every frame anew."""
    return lambda frame: rng.uniform(-1.0, 1.0, ACTIONS)


def oscillator(rng: np.random.Generator) -> Act:
    """Every torque a sine of amplitude, frequency and phase drawn for the episode, and noise."""
    amplitude = rng.uniform(0.0, 0.2, ACTIONS)
    frequency = rng.uniform(0.5, 3.0, ACTIONS)  # hertz
    phase = rng.uniform(0.0, 2.0 * np.pi, ACTIONS)

    def act(frame: int) -> Floats:
        sines = amplitude * np.sin(phase + 2.0 * np.pi * frequency * FRAME_S * frame)
        return np.clip(sines + 0.05 * rng.standard_normal(ACTIONS), -1.0, 1.0)

    return act


POLICIES: dict[str, Policy] = {
    "oscillator": oscillator,
    "random": uniform,
}


def policy_of(name: str) -> Policy:
    """The policy of a name."""
    if name not in POLICIES:
        raise DataError(
            f"unknown policy {name!r}{did_you_mean(name, POLICIES)} (known: {', '.join(POLICIES)})"
        )
    return POLICIES[name]


def walk(
    rows: int, seed: int, policy: str = "oscillator", frames: Literal[1, 2] = 2
) -> Iterator[tuple[Floats, Floats]]:
    """Walk one episode after another; `rows` is of all together, and fewer rows are the first of more.

    The same seed gives the same numbers on one machine with one version of mujoco.

    Yields:
        of an episode of n rows, X [n, 23 frames] (8 positions and angles, 9 velocities, 6 torques; the
        same of the frame before) and the changes of the velocities to the next frame, Y [n, 9].
    """
    chosen = policy_of(policy)
    versions()
    import gymnasium

    environment = gymnasium.make(ENVIRONMENT, max_episode_steps=LONGEST, disable_env_checker=True)
    left, number = rows, 0
    while left > 0:
        own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        inputs, changes = _episode(environment, chosen, own)
        X = np.hstack([inputs[1:], inputs[:-1]])[:left, : INPUTS * frames]
        yield X, changes[1:][:left]
        left, number = left - len(X), number + 1


def versions() -> dict[str, str]:
    """The versions of what simulates, by name."""
    try:
        import gymnasium
        import mujoco
    except ImportError:
        raise DataError(
            "the walker needs gymnasium and mujoco; install them: pip install 'svgpbench[walker]'"
        ) from None
    return {"gymnasium": str(gymnasium.__version__), "mujoco": str(mujoco.__version__)}


def _episode(environment: Any, policy: Policy, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Inputs [frames, 23] and changes of the velocities [frames, 9], until a fall or the bound."""
    act = policy(rng)
    state, _ = environment.reset(seed=int(rng.integers(1 << 31)))
    inputs: list[Floats] = []
    changes: list[Floats] = []
    ended = False
    while not ended:
        torques = act(len(inputs))
        after, _, fallen, too_long, _ = environment.step(torques)
        inputs.append(np.concatenate([state, torques]))
        changes.append(after[POSITIONS:] - state[POSITIONS:])
        state, ended = after, fallen or too_long
    return np.array(inputs), np.array(changes)


@dataclass(frozen=True)
class Walk:
    """What to make, by default the declared data set; an unknown policy raises `DataError`."""

    rows: int = ROWS  # N
    seed: int = 0
    policy: str = "oscillator"  # of `walker.POLICIES`
    frames: Literal[1, 2] = 2  # for the columns x1..x23, or x1..x46; and y1..y9

    def __post_init__(self) -> None:
        policy_of(self.policy)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        inputs = [f"x{at}" for at in range(1, INPUTS * self.frames + 1)]
        return (*inputs, *(f"y{at}" for at in range(1, VELOCITIES + 1)))


def make_walker(path: Path, wanted: Walk, on_rows: Callable[[int], None]) -> None:
    """Walk and write a file, which replaces one that is there; `on_rows` is told the rows walked so far."""
    from svgpbench_datasets.reading.arrow import write_numbers

    metadata = {
        "stands_in_for": STANDS_IN_FOR,
        "environment": ENVIRONMENT,
        "policy": wanted.policy,
        "seed": str(wanted.seed),
        **versions(),
    }
    try:
        write_numbers(path, _groups(wanted, on_rows), metadata)
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror or error})") from None


def _groups(wanted: Walk, on_rows: Callable[[int], None]) -> Iterator[dict[str, Floats]]:
    """The columns of a row group at a time, the last one smaller."""
    episodes: list[Floats] = []
    held = done = 0
    for X, Y in walk(wanted.rows, wanted.seed, wanted.policy, wanted.frames):
        episodes.append(np.hstack([X, Y]))
        held, done = held + len(X), done + len(X)
        on_rows(done)
        if held >= GROUP or done == wanted.rows:
            yield dict(zip(wanted.columns, np.concatenate(episodes).T, strict=True))
            episodes, held = [], 0
