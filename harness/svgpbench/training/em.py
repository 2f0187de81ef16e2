"""The EM loop of Adam et al. 2021, Sec. 4: K E-steps on q, S M-steps on θ, a trace point between them.

The M-steps are Adam's or, on the full batch, iterations of L-BFGS; up a collapsed bound, which is the
same function in every EM iteration, one run of L-BFGS goes through all of them.

Batches come from the harness's own NumPy generator, so every backend sees the same ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from svgpbench.config import TrainingConfig
from svgpbench.methods.method import Method
from svgpbench.model import Model, Theta, constrain, unconstrain
from svgpbench.numerics.adam import adam_start
from svgpbench.numerics.lbfgs import Evaluations, lbfgs_ascent
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.batches import Batches, TrainingData
from svgpbench.training.checkpoints import NO_CHECKPOINT, Checkpoint, Place
from svgpbench.training.schedules import rate_at
from svgpbench.training.steps import Batch, compile_steps, learnable, learned, with_learned
from svgpbench.training.trace_point import hyperparameters, scores
from svgpbench.tree import leaves, named_leaves, tree_map


@dataclass(frozen=True)
class Trained:
    """What a run leaves: a trace point an evaluated iteration, the last θ and state on the host."""

    status: str  # "ok", "not_pd" or "diverged"
    message: str
    trace: list[dict[str, float | int | None]]
    theta: Theta
    state: Tree
    resumptions: int = 0  # how often the run went on from a checkpoint


class _FailedError(Exception):
    """The end of a run: status and message."""


class Trainer:
    """One model, method and data set on one backend; `run` is the whole EM loop.

    Raises `UserError` where method, likelihood and settings do not go together.
    """

    unit: ClassVar[str] = "EM iteration"  # what messages count

    def __init__(
        self,
        ops: Ops,
        model: Model,
        method: Method,
        data: TrainingData,
        theta: Theta,
        settings: TrainingConfig,
        seed: int = 0,
    ) -> None:
        self.ops, self.model, self.method, self.settings = ops, model, method, settings
        self.data = data
        self.learn = learnable(method, settings.learn)
        self.steps = compile_steps(
            ops, model, method, settings.e_steps, max(settings.m_steps, 1), self.learn
        )
        self.batches = Batches(ops, model, method, data, settings.batch_size, seed)
        self.one = ops.asarray(np.float64(1.0))
        self.e_rate = ops.asarray(np.float64(rate_at(settings.e_rate, 1)))
        self.m_rate = ops.asarray(np.float64(settings.m_rate))
        self.scale = ops.asarray(np.float64(self.batches.scale))
        self.raw = tree_map(ops.asarray, unconstrain(theta))
        self.prior = self.steps.prior(self.raw)
        self.state = method.initial_state(ops, self.prior, model.latents, len(data.y))
        self.adam = adam_start(ops, learned(self.raw, self.learn))
        self.factor: Any = None  # blocks of the full batch, while θ stands still
        self.moves = bool(settings.m_steps and self.learn)
        self.iteration, self.seconds, self.resumptions = 0, 0.0, 0
        self.trace: tuple[dict[str, float | int | None], ...] = ()
        self.evaluations = Evaluations()

    def clock(self) -> float:
        """Seconds of a clock that never goes back: what every time of a run is read from."""
        return time.perf_counter()

    def place(self) -> Place:
        """Where the run is; arrays are never written to, so that this is a copy."""
        return Place(
            self.iteration,
            self.seconds,
            self.resumptions,
            self.batches.place(),
            self.trace,
            self.raw,
            self.state,
            self.adam,
            self.evaluations.known,
        )

    def resume(self, place: Place) -> None:
        """Go on from another place."""
        self.iteration, self.seconds, self.trace = place.iteration, place.seconds, place.trace
        self.resumptions = place.resumptions
        self.batches.resume(place.draws)
        self.raw, self.state, self.adam = place.raw, place.state, place.adam
        self.evaluations = Evaluations(place.evaluations)
        self._moved()
        self.ops.sync(self.prior)  # not a part of the next iteration's time

    def resume_from(self, checkpoint: Checkpoint) -> None:
        """Go on where a checkpoint says that an earlier process was, if it does."""
        if (kept := checkpoint.read(self.ops, self.place())) is not None:
            self.resume(kept._replace(resumptions=kept.resumptions + 1))

    def e_phase(self) -> None:
        """K E-steps at the current θ."""
        if self.settings.batch_size is None:
            batch = self.batches.full(self.raw.inducing)
            self.factor = self.steps.factor(self.raw, self.prior, batch)
            self.state = self.steps.e_phase(
                self.raw, self.factor, batch, self.state, self.e_rate, self.scale
            )
        else:
            batches = self.batches.minibatches(self.settings.e_steps, self.raw.inducing)
            self.state = self.steps.e_phase_batches(
                self.raw, self.prior, batches, self.state, self.e_rate, self.scale
            )

    def m_phase(self) -> None:
        """S M-steps on the learned parts of θ."""
        self.factor = None  # blocks of the old θ, [M, n], which nothing reads from here on
        if self.settings.optimiser == "l-bfgs":
            self.climb_phase()
        else:
            self.adam_phase()
        self._moved()

    def _moved(self) -> None:
        self.prior = self.steps.prior(self.raw)
        self.factor = None

    def adam_phase(self) -> None:
        """S steps of Adam, whose moments live on between phases."""
        s = self.settings
        if s.batch_size is None or self.method.needs_all_data:
            batch = self.batches.full(self.raw.inducing)
            run, scale = self.steps.m_phase, self.one
        else:
            batch = self.batches.minibatches(s.m_steps, self.raw.inducing)
            run, scale = self.steps.m_phase_batches, self.scale
        self.raw, self.adam, self.state = run(
            self.raw, self.prior, self.state, self.adam, batch, self.m_rate, scale
        )

    def climb_phase(self) -> None:
        """S iterations of L-BFGS, which starts anew in every phase, as its function does."""
        batch = self.batches.full(self.raw.inducing)
        held = self.steps.hold(self.raw, self.prior, self.state)
        self.raw = self.ascended(
            lambda raw: self.steps.objective_and_gradient(raw, held, batch, self.one),
            self.settings.m_steps,
        )
        self.state = self.steps.retie(self.raw, held, batch.X)

    def ascended(
        self,
        objective_and_gradient: Callable[[Theta], tuple[Array, Tree]],
        iterations: int,
        on_iteration: Callable[[Theta], None] = lambda _: None,
        evaluations: Evaluations | None = None,
    ) -> Theta:
        """θ after iterations of L-BFGS up `objective_and_gradient`, a function that gives both."""
        ops, raw = self.ops, self.raw

        def at(parts: Tree) -> Theta:
            return with_learned(raw, self.learn, tree_map(ops.asarray, parts))

        def on_host(parts: Tree) -> tuple[float, Tree]:
            value, gradient = objective_and_gradient(at(parts))
            return float(ops.to_numpy(value)), tree_map(ops.to_numpy, gradient)

        start = tree_map(ops.to_numpy, learned(raw, self.learn))
        return at(
            lbfgs_ascent(on_host, start, iterations, lambda x: on_iteration(at(x)), evaluations)
        )

    def collapsed_objective(self) -> Callable[[Theta], tuple[Array, Tree]]:
        """The bound of a collapsed method, which no state enters, and its gradient."""
        batch, unused = self.batches.full(self.raw.inducing), self.state
        return lambda raw: self.steps.objective_and_gradient(raw, unused, batch, self.one)

    def elbo(self) -> float:
        """The full-data bound at the current θ and q."""
        return self.bound_over(list(self.batches.evaluation(self.raw.inducing)), 1.0, self.factor)

    def bound_over(self, chunks: list[Batch], weight: float, factor: Any = None) -> float:
        """Weight · Σ V − KL over the rows of `chunks`; `factor`: blocks of a sole chunk, where known."""
        parts = list(self.batches.partition(self.raw.inducing))
        scale = self.ops.asarray(np.float64(weight))
        if len(chunks) == len(parts) == 1:
            at = chunks[0]._replace(rows=parts[0][1])
            f = self.steps.factor(self.raw, self.prior, at) if factor is None else factor
            return self._bound(f, chunks[0], scale)
        # Σ_chunks [ΣV − KL] counts the KL once a chunk; scale 0 gives −KL alone, in one chunk as in another
        zero, smallest = self.ops.asarray(np.float64(0.0)), min(chunks, key=lambda one: len(one.y))
        kls = []
        for share, rows in parts:
            at = smallest._replace(rows=rows)
            kls.append((share, self._bound(self._factor(at), at, zero)))
        expected = 0.0
        for batch in chunks:
            at = batch._replace(rows=parts[0][1])
            expected += self._bound(self._factor(at), at, scale) - kls[0][1]
        return expected + sum(share * negative_kl for share, negative_kl in kls)

    def _factor(self, batch: Batch) -> Any:
        return self.steps.factor(self.raw, self.prior, batch)

    def _bound(self, f: Any, batch: Batch, scale: Any) -> float:
        value = self.steps.bound(self.raw, f, batch, self.state, scale)
        return float(self.ops.to_numpy(value))

    def metrics(self) -> dict[str, float]:
        """The scores of predictions at the test inputs."""
        ops, d = self.ops, self.data
        predicted = [
            tree_map(ops.to_numpy, self.steps.predict(self.raw, self.prior, self.state, chunk))
            for chunk in self.batches.test_chunks(self.raw.inducing)
        ]
        whole = tree_map(lambda *xs: np.concatenate(xs, axis=-1, dtype=np.float64), *predicted)
        return scores(self.model.likelihood.task, whole, d.y_test, d.y_scale)

    def step_control(self) -> dict[str, int]:
        """Halvings of the E-step's rate so far, and training rows with β < 0 where β may be."""
        out, count = {}, self.steps.negative_beta
        halvings = [x for name, x in named_leaves(self.state) if name.endswith("halvings")]
        if halvings:
            out["halvings"] = sum(int(self.ops.to_numpy(x)) for x in halvings)
        if not self.model.likelihood.log_concave:
            out["negative_beta"] = sum(
                int(self.ops.to_numpy(count(self.raw, self.prior, self.state, batch)))
                for batch in self.batches.evaluation(self.raw.inducing)
            )
        return out

    def theta(self) -> Theta:
        """θ on the host, constrained."""
        host: Theta = tree_map(self.ops.to_numpy, constrain(self.ops, self.raw))
        return host

    def run(self, checkpoint: Checkpoint = NO_CHECKPOINT) -> Trained:
        """All EM iterations that are left; a bound that is not finite ends the run with its status."""
        status, message = "ok", ""
        try:
            if self.moves and self.settings.optimiser == "l-bfgs" and self.method.collapsed:
                self._climb_throughout(checkpoint)
            else:
                self.resume_from(checkpoint)
            while self.iteration < self.settings.em_iterations:
                self._iterate()
                checkpoint.keep(self.ops, self.place)
        except _FailedError as failure:
            status, message = failure.args
        return self.trained(status, message)

    def trained(self, status: str, message: str) -> Trained:
        """What the run leaves."""
        state = tree_map(self.ops.to_numpy, self.state)
        return Trained(status, message, list(self.trace), self.theta(), state, self.resumptions)

    def _climb_throughout(self, checkpoint: Checkpoint) -> None:
        """One run of L-BFGS up a bound that stays the same, a trace point every S iterations.

        Where it stops early, the points that are left have its last θ. SciPy cannot go on from the
        middle: a resumed run is led along the evaluations that an earlier process made.
        """
        s, taken, begun = self.settings, 0, self.raw
        self.resume_from(checkpoint)
        if self.iteration == s.em_iterations:
            return
        self.raw, since = begun, self.clock()

        def point(raw: Theta) -> None:
            nonlocal since
            self.raw = raw
            self._moved()
            self._point(since)
            checkpoint.keep(self.ops, self.place)
            since = self.clock()

        def on_iteration(raw: Theta) -> None:
            nonlocal taken
            taken += 1
            if taken % s.m_steps == 0 and taken // s.m_steps >= self.iteration:
                point(raw)

        if not self.iteration:
            point(begun)
        climbed = (s.em_iterations - 1) * s.m_steps
        last = self.ascended(self.collapsed_objective(), climbed, on_iteration, self.evaluations)
        while self.iteration < s.em_iterations:
            point(last)

    def _iterate(self) -> None:
        """The M-phase that leads to the next EM iteration, if any, and that iteration's E-phase."""
        since = self.clock()
        if self.iteration and self.moves:
            self.m_phase()
        self._point(since)

    def _point(self, since: float) -> None:
        """The E-phase of the next EM iteration, and what it reaches; evaluation is not timed."""
        self.iteration += 1
        self.e_rate = self.ops.asarray(np.float64(rate_at(self.settings.e_rate, self.iteration)))
        self.e_phase()
        self.ops.sync(self.state)
        self.seconds += self.clock() - since
        if self.settings.is_traced(self.iteration):
            self._evaluate()

    def _evaluate(self) -> None:
        bound = self.elbo()
        if not np.isfinite(bound):
            raise _FailedError(*self._failure(self.iteration, bound))
        point: dict[str, float | int | None] = {"iteration": self.iteration, "elbo": bound}
        point |= {**self.metrics(), **hyperparameters(self.theta()), **self.step_control()}
        self.trace = (*self.trace, {**point, "seconds": self.seconds})

    def _finite(self, tree: Tree) -> bool:
        return all(np.all(np.isfinite(self.ops.to_numpy(x))) for x in leaves(tree))

    def _failure(self, iteration: int, bound: float) -> tuple[str, str]:
        where = f"at {self.unit} {iteration}"
        if not self._finite(self.raw):
            return "diverged", f"θ is not finite {where}"
        if any(np.any(np.isnan(self.ops.to_numpy(x))) for x in leaves(self.prior)):
            return "not_pd", f"K(Z, Z) is not positive definite {where}"
        if self.method.first_order and not self._finite(self.state):
            return "diverged", f"q is not finite {where}"
        if np.isinf(bound):
            return "diverged", f"the bound is infinite {where}"
        return "not_pd", f"the posterior's precision is not positive definite {where}"
