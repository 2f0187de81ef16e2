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
from svgpbench.kernels import Model, Theta, constrain
from svgpbench.methods.method import AnyMethod
from svgpbench.numerics.adam import AdamState, adam_start
from svgpbench.numerics.lbfgs import Evaluations, lbfgs_ascent
from svgpbench.ops import Array, Ops, Tree
from svgpbench.stats.convergence import bound_trace
from svgpbench.stats.measures import MEASURES
from svgpbench.training.batches import Batches, TrainingData
from svgpbench.training.blocks import Batch, replace_trainable, trainable_part
from svgpbench.training.checkpoints import NO_CHECKPOINT, Checkpoint
from svgpbench.training.guard import (
    FIRST_ORDER,
    checks_e_steps,
    compile_guarded_steps,
    guarded_phase,
    slack_of,
)
from svgpbench.training.schedules import cool_down_factor, rate_at
from svgpbench.training.session import start_session
from svgpbench.training.state import End, Ended, TracePoint, TrainState
from svgpbench.training.trace_point import hyperparameters, scores
from svgpbench.tree import leaves, named_leaves, tree_map

MAX_BOUND_PER_ROW = 1e12
"""Most nats per row of a plausible bound, times max(1, mean of y²).

A row that is off by 1 at a noise standard deviation of 1e-6 gives half of it."""


LEAST_ITERATIONS = 20
"""Fewest EM iterations after which a bound can have settled."""

LEAST_EVALUATIONS = 4
"""Fewest evaluations of a last quarter that can have settled."""

REGION_PER_ROW = MEASURES["elbo"].per_datum


@dataclass(frozen=True)
class Trained:
    """The result of a run: one trace point per evaluated iteration, the last θ and state on the host."""

    status: End
    message: str
    trace: list[TracePoint]
    theta: Theta
    q: Tree
    resumptions: int = 0  # number of times that the run was resumed
    evaluations: int = 0  # of an objective and its gradient by L-BFGS
    ended: Ended = ""


class _StoppedError(Exception):
    """Signal that ends an L-BFGS ascent."""


class Trainer:
    """One model, method and data set on one backend; `run` is the whole EM loop.

    Only `state` and the random streams of `batches` change, and `state` includes the states of these streams.
    A step takes a state and returns the next.
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
        session = start_session(
            ops,
            model,
            method,
            theta,
            len(data.y),
            learn=settings.learn,
            e_steps=settings.e_steps,
            m_steps=max(settings.m_steps, 1),
        )
        self.ops, self.model, self.method, self.settings = ops, model, method, settings
        self.data, self.learn, self.steps = data, session.trainable, session.steps
        plan = settings.evaluation
        # a collapsed bound is not a sum over rows, so no sample estimates it
        rows = None if plan is None or method.collapsed else plan.train_rows
        self.batches = Batches(ops, model, method, data, settings.batch_size, seed, rows)
        # as arrays: TensorFlow would compile again for every new value of a Python number
        self.one = session.number(1.0)
        self.m_rate = session.number(settings.m_rate)
        self.scale = session.number(self.batches.scale)
        self.has_m_steps = bool(settings.m_steps and self.learn)
        self.guarded_steps = compile_guarded_steps(
            ops, model, method, settings.e_steps, max(settings.m_steps, 1)
        )
        self.guards_e_steps = settings.steps == "guarded" and checks_e_steps(
            method, model.likelihood
        )
        self.may_settle = settings.until == "settled"
        self.smooths = settings.uses_minibatches(len(data.y))
        scale_of_y = max(1.0, float(np.mean(np.square(data.y))))
        self.largest_bound = MAX_BOUND_PER_ROW * len(data.y) * scale_of_y
        self.state = TrainState(
            session.raw, session.prior, session.q, session.adam(), self.batches.rng_states()
        )

    def clock(self) -> float:
        """Return the seconds of a monotonic clock; all times of a run are read from it."""
        return time.perf_counter()

    def resume(self, state: TrainState) -> None:
        """Continue from another state.

        Its blocks are kept if it has any: a program that computes them alone may round differently.
        """
        self.batches.restore(state.rng_states)
        self.state = state if leaves(state.prior) else self.with_theta(state, state.raw)
        self.ops.sync(self.state.prior)  # not a part of the next iteration's time

    def resume_from(self, checkpoint: Checkpoint) -> None:
        """Continue from the state in a checkpoint, if it holds one."""
        if (saved := checkpoint.read(self.ops, self.state)) is not None:
            self.resume(saved._replace(resumptions=saved.resumptions + 1))

    def e_rate(self, iteration: int) -> Array:
        """Return the E-steps' rate [] in an EM iteration, counted from 1."""
        rate = rate_at(self.settings.e_rate, iteration) * cool_down_factor(self.settings, iteration)
        return self.ops.asarray(np.float64(rate))

    def e_phase(self, state: TrainState) -> tuple[TrainState, Any]:
        """Take K E-steps at the current θ.

        Return the state and the blocks of all data; for minibatches, the blocks are None.
        """
        rate = self.e_rate(state.iteration)
        if self.settings.batch_size is None:
            batch = self.batches.full(state.raw.inducing)
            blocks = self.steps.factor(state.raw, state.prior, batch)
            return self.e_steps(state, blocks, batch, rate), blocks
        batches = self.batches.minibatches(self.settings.e_steps, state.raw.inducing)
        return self.e_steps(state, state.prior, batches, rate, batch_per_step=True), None

    def e_steps(
        self,
        state: TrainState,
        blocks: Any,
        batch: Batch,
        rate: Array,
        batch_per_step: bool = False,
    ) -> TrainState:
        """Take K E-steps at the blocks of one batch, or at θ's blocks with one batch per step."""
        steps, inputs = self.steps, (state.raw, blocks, batch, state.q, rate, self.scale)
        if not self.guards_e_steps:
            run = steps.e_phase_batches if batch_per_step else steps.e_phase
            return state._replace(q=run(*inputs))
        guarded = (
            self.guarded_steps.e_phase_batches if batch_per_step else self.guarded_steps.e_phase
        )
        q, halvings = guarded(*inputs)
        return state._replace(q=q, halvings=state.halvings + int(self.ops.to_numpy(halvings)))

    def m_phase(self, state: TrainState) -> TrainState:
        """Take S M-steps on the learned parts of θ."""
        return (
            self.lbfgs_m_phase(state)
            if self.settings.optimiser == "l-bfgs"
            else self.adam_phase(state)
        )

    def with_theta(self, state: TrainState, raw: Theta) -> TrainState:
        """Return the state with θ replaced."""
        return state._replace(raw=raw, prior=self.steps.prior(raw))

    def adam_phase(self, state: TrainState) -> TrainState:
        """Take S steps of Adam, whose moments are kept between phases."""
        s = self.settings
        # an M-step that rebuilds its sums from all n rows takes no minibatch, and has scale 1
        batch_per_step = s.batch_size is not None and not self.method.needs_all_data
        if batch_per_step:
            batch = self.batches.minibatches(s.m_steps, state.raw.inducing)
            run, scale = self.steps.m_phase_batches, self.scale
        else:
            batch = self.batches.full(state.raw.inducing)
            run, scale = self.steps.m_phase, self.one

        def phase(factor: float, adam: AdamState) -> TrainState:
            rate = self.scaled(self.m_rate, factor * self.cool_down_factor(state))
            tied, adam = run(state.raw, state.prior, state.q, adam, batch, rate, scale)
            return state._replace(**tied._asdict(), adam=adam)

        return self.guarded(state, phase, batch, scale, batch_per_step)

    def guarded(
        self,
        state: TrainState,
        phase: Callable[[float, AdamState], TrainState],
        batch: Batch,
        scale: Array,
        batch_per_step: bool = False,
    ) -> TrainState:
        """Run a phase of M-steps or, if steps are guarded, the phase at the first rate that is not refused.

        `phase` takes a factor of its rates and Adam's moments. On minibatches, whose steps do not go up every
        batch, the bound may fall by the region of practical equivalence.
        """
        if self.settings.steps == "full":
            return phase(1.0, state.adam)
        slack = FIRST_ORDER if self.settings.joint else slack_of(self.ops, self.model.likelihood)
        if batch_per_step:
            slack = slack._replace(per_row=slack.per_row + REGION_PER_ROW)

        def bound(at: TrainState) -> float:
            if batch_per_step:
                # the same batches before and after: the draw of rows is no part of the difference
                value = self.guarded_steps.bound_batches(at.raw, at.prior, batch, at.q, scale)
                return float(self.ops.to_numpy(value) / batch.y.shape[0])
            return self._bound(at, self._factor(at, batch), batch, scale)

        parameters = trainable_part(state.raw, self.learn)
        restart = adam_start(self.ops, parameters)
        return guarded_phase(phase, bound, state, restart, slack, len(self.data.y))

    def cool_down_factor(self, state: TrainState) -> float:
        """Return the factor of the M-step's rate in the EM iteration of a state."""
        return cool_down_factor(self.settings, state.iteration)

    def scaled(self, rate: Array, factor: float) -> Array:
        """Return a rate [] times a factor."""
        return rate if factor == 1.0 else rate * factor

    def joint_phase(self, state: TrainState) -> TrainState:
        """Take one step of Adam on q and θ together, on one batch, from gradients at the old q and θ.

        Adam moves every entry separately, so this is one Adam step over all entries. If q moves by Adam, the
        M-step holds q's parameters themselves, so they need no tying to the new θ.
        """
        steps, scale = self.steps, self.scale
        raw, prior, q = state.raw, state.prior, state.q
        batch_per_step = self.settings.batch_size is not None
        if batch_per_step:
            batch = self.batches.minibatches(1, raw.inducing)
            blocks, e_phase, m_phase = prior, steps.e_phase_batches, steps.m_phase_batches
        else:
            batch = self.batches.full(raw.inducing)
            blocks, e_phase, m_phase = self._factor(state, batch), steps.e_phase, steps.m_phase

        def phase(factor: float, adam: AdamState) -> TrainState:
            rate = self.scaled(self.e_rate(state.iteration), factor)
            new_q = e_phase(raw, blocks, batch, q, rate, scale)
            rate = self.scaled(self.m_rate, factor * self.cool_down_factor(state))
            tied, adam = m_phase(raw, prior, q, adam, batch, rate, scale)
            return state._replace(raw=tied.raw, prior=tied.prior, q=new_q, adam=adam)

        return self.guarded(state, phase, batch, scale, batch_per_step)

    def lbfgs_m_phase(self, state: TrainState) -> TrainState:
        """Take S iterations of L-BFGS, which is restarted in every phase because the objective changes."""
        batch = self.batches.full(state.raw.inducing)
        invariant = self.steps.invariant(state.raw, state.prior, state.q)
        evaluations = Evaluations()
        raw = self.maximise(
            state.raw,
            lambda raw: self.steps.objective_and_gradient(raw, invariant, batch, self.one),
            self.settings.m_steps,
            evaluations=evaluations,
        )
        evaluated = state.evaluated + len(evaluations.stored)
        return state._replace(
            **self.steps.tied(raw, invariant, batch.X)._asdict(), evaluated=evaluated
        )

    def maximise(
        self,
        raw: Theta,
        objective_and_gradient: Callable[[Theta], tuple[Array, Tree]],
        iterations: int,
        on_iteration: Callable[[Theta], None] = lambda _: None,
        evaluations: Evaluations | None = None,
    ) -> Theta:
        """Return θ after L-BFGS iterations from `raw` that maximise `objective_and_gradient`."""
        ops = self.ops

        def theta(parts: Tree) -> Theta:
            return replace_trainable(raw, self.learn, tree_map(ops.asarray, parts))

        def on_host(parts: Tree) -> tuple[float, Tree]:
            value, gradient = objective_and_gradient(theta(parts))
            return float(ops.to_numpy(value)), tree_map(ops.to_numpy, gradient)

        start = tree_map(ops.to_numpy, trainable_part(raw, self.learn))
        last = lbfgs_ascent(
            on_host, start, iterations, lambda parts: on_iteration(theta(parts)), evaluations
        )
        return theta(last)

    def collapsed_objective(self, state: TrainState) -> Callable[[Theta], tuple[Array, Tree]]:
        """Return the function for a collapsed method's bound, which ignores the state, and its gradient."""
        batch, unused = self.batches.full(state.raw.inducing), state.q
        return lambda raw: self.steps.objective_and_gradient(raw, unused, batch, self.one)

    def elbo(self, state: TrainState, blocks: Any = None) -> float:
        """Return the bound at a state, over all data or estimated from the rows that are evaluated.

        `blocks` are those of all data, if known.
        """
        chunks = list(self.batches.evaluation(state.raw.inducing))
        n, rows = len(self.data.y), sum(int(chunk.y.shape[0]) for chunk in chunks)
        return self.bound_over(state, chunks, n / rows, blocks if rows == n else None)

    def bound_over(
        self, state: TrainState, chunks: list[Batch], weight: float, blocks: Any = None
    ) -> float:
        """Return weight · Σ V − KL over the rows of `chunks`; `blocks`, if known, are of a sole chunk."""
        parts = list(self.batches.partition(state.raw.inducing))
        scale = self.ops.asarray(np.float64(weight))
        if len(chunks) == len(parts) == 1:
            batch = chunks[0]._replace(basis_points=parts[0][1])
            f = self.steps.factor(state.raw, state.prior, batch) if blocks is None else blocks
            return self._bound(state, f, chunks[0], scale)
        # Σ_chunks [ΣV − KL] counts the KL once per chunk; scale 0 gives −KL alone, the same for any chunk
        zero, smallest = (
            self.ops.asarray(np.float64(0.0)),
            min(chunks, key=lambda chunk: int(chunk.y.shape[0])),
        )
        kls = []
        for share, points in parts:
            batch = smallest._replace(basis_points=points)
            kls.append((share, self._bound(state, self._factor(state, batch), batch, zero)))
        expected = 0.0
        for chunk in chunks:
            # V does not depend on sampled points; the first part's −KL is taken off each term
            batch = chunk._replace(basis_points=parts[0][1])
            expected += self._bound(state, self._factor(state, batch), batch, scale) - kls[0][1]
        return expected + sum(share * negative_kl for share, negative_kl in kls)

    def _factor(self, state: TrainState, batch: Batch) -> Any:
        return self.steps.factor(state.raw, state.prior, batch)

    def _bound(self, state: TrainState, f: Any, batch: Batch, scale: Any) -> float:
        return float(self.ops.to_numpy(self.steps.bound(state.raw, f, batch, state.q, scale)))

    def metrics(self, state: TrainState) -> dict[str, float]:
        """Return the scores of predictions at the test inputs; empty if there are no test rows."""
        ops, d = self.ops, self.data
        if not len(d.y_test):
            return {}
        predicted = [
            tree_map(ops.to_numpy, self.steps.predict(state.raw, state.prior, state.q, chunk))
            for chunk in self.batches.test_chunks(state.raw.inducing)
        ]
        # float32 predictions are scored in float64 too, so the scores of both dtypes round alike
        all_rows = tree_map(lambda *xs: np.concatenate(xs, axis=-1, dtype=np.float64), *predicted)
        return scores(self.model.likelihood.task, all_rows, d.y_test, d.y_scale)

    def step_control(self, state: TrainState) -> dict[str, int]:
        """Return the halvings of the rates so far, and the number of training rows with β < 0 if possible."""
        columns, count = {}, self.steps.negative_beta
        halvings = [x for name, x in named_leaves(state.q) if name.endswith("halvings")]
        if halvings or self.guards_e_steps:
            # methods that damp negative β count in their state; the guard's halvings come on top
            in_methods = sum(int(self.ops.to_numpy(x)) for x in halvings)
            columns["halvings"] = in_methods + state.halvings
        if self.settings.steps == "guarded" and self.has_m_steps:
            columns["m_halvings"] = state.m_halvings
        if not self.model.likelihood.log_concave:
            columns["negative_beta"] = sum(
                int(self.ops.to_numpy(count(state.raw, state.prior, state.q, batch)))
                for batch in self.batches.evaluation(state.raw.inducing)
            )
        return columns

    def theta(self, state: TrainState) -> Theta:
        """Return the constrained θ on the host."""
        host: Theta = tree_map(self.ops.to_numpy, constrain(self.ops, state.raw))
        return host

    def run(self, checkpoint: Checkpoint = NO_CHECKPOINT) -> Trained:
        """Run the remaining EM iterations; an implausible bound ends the run with its status."""
        if self.has_m_steps and self.settings.optimiser == "l-bfgs" and self.method.collapsed:
            self.run_collapsed_lbfgs(checkpoint)
            return self.result()
        self.resume_from(checkpoint)
        while not self.has_ended:
            self.state = self.iterate(self.state)
            checkpoint.save(self.ops, self.state)
        return self.result()

    @property
    def has_ended(self) -> bool:
        """Return True if the run has failed, has reached its limit, or has settled and may end then."""
        state = self.state
        return state.failed or state.settled or state.iteration >= self.settings.em_iterations

    def ended(self, state: TrainState) -> Ended:
        """Return what ended a run that may end once its bound has settled; empty for other runs."""
        if not self.may_settle:
            return ""
        return "settled" if state.settled else "limit"

    def result(self) -> Trained:
        """Return the result of the run."""
        state, trace = self.state, list(self.state.trace)
        q = tree_map(self.ops.to_numpy, state.q)
        return Trained(
            *state.failure,
            trace,
            self.theta(state),
            q,
            state.resumptions,
            state.evaluated,
            self.ended(state),
        )

    def run_collapsed_lbfgs(self, checkpoint: Checkpoint) -> None:
        """Run L-BFGS once on a bound that stays the same, with a trace point every S iterations.

        If it stops early, the remaining trace points have its last θ. SciPy cannot resume an ascent, so a
        resumed run replays the evaluations that an earlier process made.
        """
        s, iterations, start = self.settings, 0, self.state.raw
        self.resume_from(checkpoint)
        if self.has_ended:
            return
        evaluations, since = Evaluations(self.state.evaluations), self.clock()

        def point(raw: Theta) -> None:
            nonlocal since
            state = self.finish_iteration(self.with_theta(self.state, raw), since)
            stored = evaluations.stored
            self.state = state._replace(evaluations=stored, evaluated=len(stored))
            checkpoint.save(self.ops, self.state)
            if self.has_ended:
                raise _StoppedError
            # neither the evaluation nor the checkpoint is a part of the next phase's time
            since = self.clock()

        def on_iteration(raw: Theta) -> None:
            nonlocal iterations
            iterations += 1
            # iteration kS gives point k + 1; a replay passes the points that the run already has
            if iterations % s.m_steps == 0 and iterations // s.m_steps >= self.state.iteration:
                point(raw)

        try:
            if not self.state.iteration:
                # the first trace point is the start itself, so one phase less is ascended
                point(start)
            total = (s.em_iterations - 1) * s.m_steps
            objective = self.collapsed_objective(self.state)
            last = self.maximise(start, objective, total, on_iteration, evaluations)
            while not self.has_ended:
                point(last)
        except _StoppedError:
            return

    def iterate(self, state: TrainState) -> TrainState:
        """Run the M-phase after the current EM iteration, if any, and the E-phase of the next."""
        since = self.clock()
        if state.iteration and self.has_m_steps and not self.settings.joint:
            state = self.m_phase(state)
        return self.finish_iteration(state, since)

    def finish_iteration(self, state: TrainState, since: float) -> TrainState:
        """Run the E-phase of the next EM iteration and trace the result; evaluation is not timed."""
        state, blocks = state._replace(iteration=state.iteration + 1), None
        if self.settings.joint:
            state = self.joint_phase(state)
        else:
            state, blocks = self.e_phase(state)
        # JAX and CUDA return before they have computed: this would time the dispatch alone
        self.ops.sync((state.prior, state.q))  # in a joint step q waits for no M-step
        seconds = state.seconds + (self.clock() - since)
        state = state._replace(seconds=seconds, rng_states=self.batches.rng_states())
        if not self.settings.is_traced(state.iteration):
            return state
        return self.add_trace_point(state, blocks)

    def add_trace_point(self, state: TrainState, blocks: Any = None) -> TrainState:
        """Return the state with a trace point, or with a failure if the bound is implausible."""
        bound = self.elbo(state, blocks)
        if not self.is_plausible_bound(bound):
            return state._replace(failure=self._failure(state, bound))
        head: TracePoint = {"iteration": state.iteration, "elbo": bound}
        point = head | self.trace_metrics(state) | {"seconds": state.seconds}
        state = state._replace(trace=(*state.trace, point))
        return state._replace(settled=self.may_settle and self.has_settled(state))

    def has_settled(self, state: TrainState) -> bool:
        """Return True if the bound moved by at most its region in the last quarter of the run so far."""
        iterations, bounds = (
            [point[key] for point in state.trace] for key in ("iteration", "elbo")
        )
        trace = bound_trace(iterations, bounds, self.smooths).with_fit_region(
            len(self.data.y), self.model.likelihood.discrete
        )
        return (
            state.iteration >= LEAST_ITERATIONS
            and len(trace.last_quarter) >= LEAST_EVALUATIONS
            and not trace.move
        )

    def is_plausible_bound(self, bound: float) -> bool:
        """Return True if a bound is finite and its absolute value is not too large for these data."""
        # NaN and infinities compare false as well
        return bool(np.abs(bound) <= self.largest_bound)

    def trace_metrics(self, state: TrainState) -> TracePoint:
        """Return the columns of a trace point other than iteration, bound and time."""
        return {
            **self.metrics(state),
            **hyperparameters(self.theta(state)),
            **self.step_control(state),
        }

    def _finite(self, tree: Tree) -> bool:
        return all(np.all(np.isfinite(self.ops.to_numpy(x))) for x in leaves(tree))

    def _failure(self, state: TrainState, bound: float) -> tuple[End, str]:
        where = f"at {self.unit} {state.iteration}"
        guard = "" if self.settings.steps == "guarded" else ', or set steps = "guarded"'
        # from cause to effect: a θ that is not finite makes K NaN, and K the bound
        if not self._finite(state.raw):
            return "diverged", f"θ is not finite {where}; lower m_rate{guard}"
        # a factor of NaN is how every backend says that a matrix is not positive definite
        if any(np.any(np.isnan(self.ops.to_numpy(x))) for x in leaves(state.prior)):
            return "not_pd", f"K(Z, Z) is not positive definite {where}; {self._more_jitter(state)}"
        if self.method.first_order and not self._finite(state.q):
            return "diverged", f"q is not finite {where}; lower e_rate{guard}"
        if np.isinf(bound):
            return "diverged", f"the bound is infinite {where}; lower e_rate or m_rate{guard}"
        if np.isfinite(bound):
            text = f"the bound is {bound:.3g} {where}: no bound of these data"
            return "diverged", f"{text}; lower e_rate or m_rate{guard}"
        text = f"the posterior's precision is not positive definite {where}"
        return "not_pd", f"{text}; lower e_rate or m_rate{guard}"

    def _more_jitter(self, state: TrainState) -> str:
        """Return what to change if K(Z, Z) cannot be factorised."""
        moved = state.iteration > 1 and self.has_m_steps
        return "raise jitter, or lower m_rate" if moved else "raise jitter, or lower inducing.count"
