"""The EM loop of Adam et al. 2021, Sec. 4: K E-steps on q, a trace point, S M-steps on θ.

The M-steps are steps of Adam or, on the full batch, iterations of L-BFGS. A collapsed bound is the same
function in every EM iteration, so one run of L-BFGS then spans all of them.

Batches come from the harness's own NumPy generator, so they are the same on every backend.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from svgpbench.config import TrainingConfig
from svgpbench.kernels import Model, Theta, constrain, unconstrain
from svgpbench.methods.method import AnyMethod
from svgpbench.numerics.adam import adam_start
from svgpbench.numerics.lbfgs import Evaluations, lbfgs_ascent
from svgpbench.ops import Array, Ops, Tree
from svgpbench.training.batches import Batches, TrainingData
from svgpbench.training.blocks import Batch, learnable, learned, with_learned
from svgpbench.training.checkpoints import NO_CHECKPOINT, Checkpoint
from svgpbench.training.place import End, Place, TracePoint
from svgpbench.training.schedules import rate_at
from svgpbench.training.steps import compile_steps
from svgpbench.training.trace_point import hyperparameters, scores
from svgpbench.tree import leaves, named_leaves, tree_map

ABSURD = 1e12
"""Most nats per row of a credible bound, times max(1, mean of y²). A row that is off by 1 at a noise standard
deviation of 1e-6 gives half of it."""


@dataclass(frozen=True)
class Trained:
    """The result of a run: one trace point per evaluated iteration, the last θ and state on the host."""

    status: End
    message: str
    trace: list[TracePoint]
    theta: Theta
    state: Tree
    resumptions: int = 0  # number of times that the run was resumed
    evaluations: int = 0  # of an objective and its gradient by L-BFGS


class _StoppedError(Exception):
    """Signal that ends an L-BFGS ascent after a failure."""


class Trainer:
    """One model, method and data set on one backend; `run` is the whole EM loop.

    `at` is the current place of the run. Only `at` and the random streams of `batches` change, and `at`
    includes the states of these streams. A step takes a place and returns the next.
    """

    unit: ClassVar[str] = "EM iteration"  # the iteration's name in messages

    def __init__(
        self,
        ops: Ops,
        model: Model,
        method: AnyMethod,
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
        self.m_rate = ops.asarray(np.float64(settings.m_rate))
        self.scale = ops.asarray(np.float64(self.batches.scale))
        self.moves = bool(settings.m_steps and self.learn)
        self.largest_bound = ABSURD * len(data.y) * max(1.0, float(np.mean(np.square(data.y))))
        self.at = self.start(theta)

    def start(self, theta: Theta) -> Place:
        """Return the place at which the run begins."""
        ops = self.ops
        raw = tree_map(ops.asarray, unconstrain(theta))
        prior = self.steps.prior(raw)
        state = self.method.initial_state(ops, prior, self.model.latents, len(self.data.y))
        adam = adam_start(ops, learned(raw, self.learn))
        return Place(raw, prior, state, adam, self.batches.place())

    def clock(self) -> float:
        """Return the seconds of a monotonic clock; all times of a run are read from it."""
        return time.perf_counter()

    def resume(self, place: Place) -> None:
        """Continue from another place."""
        self.batches.resume(place.draws)
        self.at = self.moved(place, place.raw)
        self.ops.sync(self.at.prior)  # not a part of the next iteration's time

    def resume_from(self, checkpoint: Checkpoint) -> None:
        """Continue from the place in a checkpoint, if it holds one."""
        if (kept := checkpoint.read(self.ops, self.at)) is not None:
            self.resume(kept._replace(resumptions=kept.resumptions + 1))

    def e_rate(self, iteration: int) -> Array:
        """Return the E-steps' rate [] in an EM iteration, counted from 1."""
        return self.ops.asarray(np.float64(rate_at(self.settings.e_rate, iteration)))

    def e_phase(self, at: Place) -> tuple[Place, Any]:
        """Take K E-steps at the current θ.

        Return the place and the blocks of all data; for minibatches, the blocks are None.
        """
        rate = self.e_rate(at.iteration)
        if self.settings.batch_size is None:
            batch = self.batches.full(at.raw.inducing)
            blocks = self.steps.factor(at.raw, at.prior, batch)
            state = self.steps.e_phase(at.raw, blocks, batch, at.state, rate, self.scale)
            return at._replace(state=state), blocks
        batches = self.batches.minibatches(self.settings.e_steps, at.raw.inducing)
        state = self.steps.e_phase_batches(at.raw, at.prior, batches, at.state, rate, self.scale)
        return at._replace(state=state), None

    def m_phase(self, at: Place) -> Place:
        """Take S M-steps on the learned parts of θ."""
        return self.climb_phase(at) if self.settings.optimiser == "l-bfgs" else self.adam_phase(at)

    def moved(self, at: Place, raw: Theta) -> Place:
        """Return the place with θ replaced."""
        return at._replace(raw=raw, prior=self.steps.prior(raw))

    def adam_phase(self, at: Place) -> Place:
        """Take S steps of Adam, whose moments are kept between phases."""
        s = self.settings
        if s.batch_size is None or self.method.needs_all_data:
            batch = self.batches.full(at.raw.inducing)
            run, scale = self.steps.m_phase, self.one
        else:
            batch = self.batches.minibatches(s.m_steps, at.raw.inducing)
            run, scale = self.steps.m_phase_batches, self.scale
        moved, adam = run(at.raw, at.prior, at.state, at.adam, batch, self.m_rate, scale)
        return at._replace(**moved._asdict(), adam=adam)

    def joint_phase(self, at: Place) -> Place:
        """Take one step of Adam on q and θ together, on one batch, from gradients at the old q and θ.

        Adam moves every entry separately, so this is one Adam step over all entries. If q moves by Adam, the
        M-step holds q's parameters themselves, so they need no tying to the new θ.
        """
        steps, scale, rate = self.steps, self.scale, self.e_rate(at.iteration)
        raw, prior, q, adam = at.raw, at.prior, at.state, at.adam
        if self.settings.batch_size is None:
            batch = self.batches.full(raw.inducing)
            state = steps.e_phase(raw, steps.factor(raw, prior, batch), batch, q, rate, scale)
            moved, adam = steps.m_phase(raw, prior, q, adam, batch, self.m_rate, scale)
        else:
            batch = self.batches.minibatches(1, raw.inducing)
            state = steps.e_phase_batches(raw, prior, batch, q, rate, scale)
            moved, adam = steps.m_phase_batches(raw, prior, q, adam, batch, self.m_rate, scale)
        return at._replace(raw=moved.raw, prior=moved.prior, state=state, adam=adam)

    def climb_phase(self, at: Place) -> Place:
        """Take S iterations of L-BFGS, which is restarted in every phase because the objective changes."""
        batch = self.batches.full(at.raw.inducing)
        held = self.steps.hold(at.raw, at.prior, at.state)
        evaluations = Evaluations()
        raw = self.ascended(
            at.raw,
            lambda raw: self.steps.objective_and_gradient(raw, held, batch, self.one),
            self.settings.m_steps,
            evaluations=evaluations,
        )
        evaluated = at.evaluated + len(evaluations.known)
        return at._replace(**self.steps.tied(raw, held, batch.X)._asdict(), evaluated=evaluated)

    def ascended(
        self,
        raw: Theta,
        objective_and_gradient: Callable[[Theta], tuple[Array, Tree]],
        iterations: int,
        on_iteration: Callable[[Theta], None] = lambda _: None,
        evaluations: Evaluations | None = None,
    ) -> Theta:
        """Return θ after L-BFGS iterations from `raw` that maximise `objective_and_gradient`."""
        ops = self.ops

        def at(parts: Tree) -> Theta:
            return with_learned(raw, self.learn, tree_map(ops.asarray, parts))

        def on_host(parts: Tree) -> tuple[float, Tree]:
            value, gradient = objective_and_gradient(at(parts))
            return float(ops.to_numpy(value)), tree_map(ops.to_numpy, gradient)

        start = tree_map(ops.to_numpy, learned(raw, self.learn))
        return at(
            lbfgs_ascent(on_host, start, iterations, lambda x: on_iteration(at(x)), evaluations)
        )

    def collapsed_objective(self, at: Place) -> Callable[[Theta], tuple[Array, Tree]]:
        """Return the function for a collapsed method's bound, which ignores the state, and its gradient."""
        batch, unused = self.batches.full(at.raw.inducing), at.state
        return lambda raw: self.steps.objective_and_gradient(raw, unused, batch, self.one)

    def elbo(self, at: Place, blocks: Any = None) -> float:
        """Return the full-data bound at a place; `blocks` are those of all data, if known."""
        return self.bound_over(at, list(self.batches.evaluation(at.raw.inducing)), 1.0, blocks)

    def bound_over(
        self, at: Place, chunks: list[Batch], weight: float, blocks: Any = None
    ) -> float:
        """Return weight · Σ V − KL over the rows of `chunks`; `blocks`, if known, are of a sole chunk."""
        parts = list(self.batches.partition(at.raw.inducing))
        scale = self.ops.asarray(np.float64(weight))
        if len(chunks) == len(parts) == 1:
            batch = chunks[0]._replace(basis_points=parts[0][1])
            f = self.steps.factor(at.raw, at.prior, batch) if blocks is None else blocks
            return self._bound(at, f, chunks[0], scale)
        # Σ_chunks [ΣV − KL] counts the KL once per chunk; scale 0 gives −KL alone, the same for any chunk
        zero, smallest = self.ops.asarray(np.float64(0.0)), min(chunks, key=lambda one: len(one.y))
        kls = []
        for share, points in parts:
            batch = smallest._replace(basis_points=points)
            kls.append((share, self._bound(at, self._factor(at, batch), batch, zero)))
        expected = 0.0
        for chunk in chunks:
            batch = chunk._replace(basis_points=parts[0][1])
            expected += self._bound(at, self._factor(at, batch), batch, scale) - kls[0][1]
        return expected + sum(share * negative_kl for share, negative_kl in kls)

    def _factor(self, at: Place, batch: Batch) -> Any:
        return self.steps.factor(at.raw, at.prior, batch)

    def _bound(self, at: Place, f: Any, batch: Batch, scale: Any) -> float:
        return float(self.ops.to_numpy(self.steps.bound(at.raw, f, batch, at.state, scale)))

    def metrics(self, at: Place) -> dict[str, float]:
        """Return the scores of predictions at the test inputs; empty if there are no test rows."""
        ops, d = self.ops, self.data
        if not len(d.y_test):
            return {}
        predicted = [
            tree_map(ops.to_numpy, self.steps.predict(at.raw, at.prior, at.state, chunk))
            for chunk in self.batches.test_chunks(at.raw.inducing)
        ]
        whole = tree_map(lambda *xs: np.concatenate(xs, axis=-1, dtype=np.float64), *predicted)
        return scores(self.model.likelihood.task, whole, d.y_test, d.y_scale)

    def step_control(self, at: Place) -> dict[str, int]:
        """Return the halvings of the E-step's rate so far, and the training rows with β < 0 if possible."""
        out, count = {}, self.steps.negative_beta
        halvings = [x for name, x in named_leaves(at.state) if name.endswith("halvings")]
        if halvings:
            out["halvings"] = sum(int(self.ops.to_numpy(x)) for x in halvings)
        if not self.model.likelihood.log_concave:
            out["negative_beta"] = sum(
                int(self.ops.to_numpy(count(at.raw, at.prior, at.state, batch)))
                for batch in self.batches.evaluation(at.raw.inducing)
            )
        return out

    def theta(self, at: Place) -> Theta:
        """Return the constrained θ on the host."""
        host: Theta = tree_map(self.ops.to_numpy, constrain(self.ops, at.raw))
        return host

    def run(self, checkpoint: Checkpoint = NO_CHECKPOINT) -> Trained:
        """Run the remaining EM iterations; a bound that is not credible ends the run with its status."""
        if self.moves and self.settings.optimiser == "l-bfgs" and self.method.collapsed:
            self._climb_throughout(checkpoint)
            return self.trained()
        self.resume_from(checkpoint)
        while self.at.iteration < self.settings.em_iterations and not self.at.failed:
            self.at = self.iterated(self.at)
            checkpoint.keep(self.ops, self.at)
        return self.trained()

    def trained(self) -> Trained:
        """Return the result of the run."""
        at = self.at
        state = tree_map(self.ops.to_numpy, at.state)
        trace, theta = list(at.trace), self.theta(at)
        return Trained(*at.failure, trace, theta, state, at.resumptions, at.evaluated)

    def _climb_throughout(self, checkpoint: Checkpoint) -> None:
        """Run L-BFGS once on a bound that stays the same, with a trace point every S iterations.

        If it stops early, the remaining trace points have its last θ. SciPy cannot resume an ascent, so a
        resumed run replays the evaluations that an earlier process made.
        """
        s, taken, begun = self.settings, 0, self.at.raw
        self.resume_from(checkpoint)
        if self.at.iteration == s.em_iterations or self.at.failed:
            return
        evaluations, since = Evaluations(self.at.evaluations), self.clock()

        def point(raw: Theta) -> None:
            nonlocal since
            at = self.point(self.moved(self.at, raw), since)
            known = evaluations.known
            self.at = at._replace(evaluations=known, evaluated=len(known))
            checkpoint.keep(self.ops, self.at)
            if at.failed:
                raise _StoppedError
            since = self.clock()

        def on_iteration(raw: Theta) -> None:
            nonlocal taken
            taken += 1
            if taken % s.m_steps == 0 and taken // s.m_steps >= self.at.iteration:
                point(raw)

        try:
            if not self.at.iteration:
                point(begun)
            climbed, objective = (
                (s.em_iterations - 1) * s.m_steps,
                self.collapsed_objective(self.at),
            )
            last = self.ascended(begun, objective, climbed, on_iteration, evaluations)
            while self.at.iteration < s.em_iterations:
                point(last)
        except _StoppedError:
            return

    def iterated(self, at: Place) -> Place:
        """Run the M-phase after the current EM iteration, if any, and the E-phase of the next."""
        since = self.clock()
        if at.iteration and self.moves and not self.settings.joint:
            at = self.m_phase(at)
        return self.point(at, since)

    def point(self, at: Place, since: float) -> Place:
        """Run the E-phase of the next EM iteration and trace the result; evaluation is not timed."""
        at, blocks = at._replace(iteration=at.iteration + 1), None
        if self.settings.joint:
            at = self.joint_phase(at)
        else:
            at, blocks = self.e_phase(at)
        self.ops.sync(at.state)
        at = at._replace(seconds=at.seconds + (self.clock() - since), draws=self.batches.place())
        return self.traced(at, blocks) if self.settings.is_traced(at.iteration) else at

    def traced(self, at: Place, blocks: Any = None) -> Place:
        """Return the place with a trace point, or with a failure if the bound is not credible."""
        bound = self.elbo(at, blocks)
        if not self.credible(bound):
            return at._replace(failure=self._failure(at, bound))
        head: TracePoint = {"iteration": at.iteration, "elbo": bound}
        point = head | self.reached(at) | {"seconds": at.seconds}
        return at._replace(trace=(*at.trace, point))

    def credible(self, bound: float) -> bool:
        """Return True if a bound is credible: finite, and its absolute value not too large for these data."""
        return bool(np.abs(bound) <= self.largest_bound)

    def reached(self, at: Place) -> TracePoint:
        """Return the columns of a trace point other than iteration, bound and time."""
        return {**self.metrics(at), **hyperparameters(self.theta(at)), **self.step_control(at)}

    def _finite(self, tree: Tree) -> bool:
        return all(np.all(np.isfinite(self.ops.to_numpy(x))) for x in leaves(tree))

    def _failure(self, at: Place, bound: float) -> tuple[End, str]:
        where = f"at {self.unit} {at.iteration}"
        if not self._finite(at.raw):
            return "diverged", f"θ is not finite {where}"
        if any(np.any(np.isnan(self.ops.to_numpy(x))) for x in leaves(at.prior)):
            return "not_pd", f"K(Z, Z) is not positive definite {where}"
        if self.method.first_order and not self._finite(at.state):
            return "diverged", f"q is not finite {where}"
        if np.isinf(bound):
            return "diverged", f"the bound is infinite {where}"
        if np.isfinite(bound):
            return "diverged", f"the bound is {bound:.3g} {where}: no bound of these data"
        return "not_pd", f"the posterior's precision is not positive definite {where}"
