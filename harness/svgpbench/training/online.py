"""Learning online on a growing basis: Algorithm 1 of Cheng and Boots 2017.

Each iteration draws a batch and adds up to N_Δ of its points to the basis, until the basis has its final
size. It then moves all parameters once, on that batch and at γ_t = γ₀/(1 + 0.1√t): q by the method's
E-step, then θ and the basis by Adam.

The paper states (Sec. 4): N_m = 1024, N_Δ = 128, 2000 iterations; Adam with β₁ = 0.9, β₂ = 0.999;
γ₀ from {0.1, 0.01, 0.001}, picked by hand for each algorithm to improve the objective most in the first
100 iterations (here by the full-data bound); lengthscales by the median trick on a batch (kernel.init =
"median"); VLB and nMSE on held-out data, each output a separate regression and both figures averaged
over outputs. The paper leaves open whether q or θ moves first, how Adam's moments follow a larger basis,
which points of a batch are added, and the scale of the held-out bound (see `heldout_bound`).

Its algorithms are methods here: SVDGP is `decoupled` with a `subset`. SVI is `q-svgp`, natgrad and
unwhitened. iVSGPR is `t-svgp` with the tying `tied-projected`: in the subspace parametrization the mirror
step is T ← (1−γ)T + γT̂ with T₁ = S⁻¹m and T₂ = S⁻¹ − K⁻¹. In whitened coordinates this is t-SVGP's E-step.
T is fixed while θ and the basis move, which is what that tying holds. (In Table 1 iVSGPR's basis also moves
by mirror ascent, with no formula; here it moves by Adam, like θ.)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from svgpbench.config import Decay, TrainingConfig
from svgpbench.initialization.growing_basis import Growth
from svgpbench.kernels import Model, Theta
from svgpbench.kernels.bases import Decoupled, centres
from svgpbench.methods.basis_extension import extend_moments
from svgpbench.methods.method import AnyMethod
from svgpbench.numerics.adam import AdamState
from svgpbench.ops import Ops
from svgpbench.training.batches import Batches, TrainingData
from svgpbench.training.blocks import trainable_part
from svgpbench.training.checkpoints import NO_CHECKPOINT, Checkpoint
from svgpbench.training.em import Trained, Trainer
from svgpbench.training.schedules import rate_at
from svgpbench.training.state import TracePoint, TrainState
from svgpbench.training.trace_point import hyperparameters
from svgpbench.tree import tree_map


class OnlineTrainer(Trainer):
    """One model, method and data set on one backend; `theta` is given without a basis.

    Raises `UserError` if the method's state cannot grow, or if the first batch has too few points.
    """

    unit: ClassVar[str] = "iteration"

    def __init__(
        self,
        ops: Ops,
        model: Model,
        method: AnyMethod,
        data: TrainingData,
        theta: Theta,
        settings: TrainingConfig,
        growth: Growth,
        seed: int = 0,
    ) -> None:
        self.growth, self.online = growth, settings.online
        # the first basis points are from the batch that the first iteration draws
        first = Batches(ops, model, method, data, settings.batch_size, seed).sample()
        inducing = growth.start(data.X[first], theta.kernel.lengthscales)
        # compiled phases hold their number of steps, and Algorithm 1 takes one of each per batch
        once = settings.model_copy(update={"e_steps": 1, "m_steps": 1})
        super().__init__(ops, model, method, data, theta._replace(inducing=inducing), once, seed)
        self.state = self.state._replace(online_rate=self.online.rates[0])

    def run(self, checkpoint: Checkpoint = NO_CHECKPOINT) -> Trained:
        """Run all iterations at the best γ₀; an implausible bound ends the run with its status.

        All trials start from the same state, random streams included. The run continues from the best one.
        """
        start = self.state
        self.resume_from(checkpoint)
        if len(self.online.rates) > 1:
            while len(self.state.trial_bounds) < len(self.online.rates):
                self.try_rate(start, checkpoint)
        self.run_until(self.online.iterations, checkpoint)
        return self.result()

    def try_rate(self, start: TrainState, checkpoint: Checkpoint) -> None:
        """Finish the trial of the current γ₀, then move to the start of the next trial or to the best state.

        A γ₀ is judged by the bound after the first iterations, −∞ if these failed or it is implausible.
        """
        self.run_until(min(self.online.trial, self.online.iterations), checkpoint)
        state = self.state
        bound = -np.inf if state.failed else self.elbo(state)
        bound = bound if self.is_plausible_bound(bound) else -np.inf
        best_trial, trial_bounds = state.best_trial, (*state.trial_bounds, bound)
        # strictly better: of equal bounds, also of failed trials, the first rate stays
        if not state.trial_bounds or bound > max(state.trial_bounds):
            best_trial = state._replace(prior=(), trial_bounds=(), best_trial=())
        next_state = best_trial
        if len(trial_bounds) < len(self.online.rates):
            rate = self.online.rates[len(trial_bounds)]
            next_state = start._replace(online_rate=rate, best_trial=best_trial)
        self.resume(next_state._replace(trial_bounds=trial_bounds, resumptions=state.resumptions))

    def run_until(self, until: int, checkpoint: Checkpoint) -> None:
        """Run iterations up to number `until`, with their trace points; stop after a failure."""
        while self.state.iteration < until and not self.state.failed:
            self.state = self.step(self.state)
            if self.settings.is_traced(self.state.iteration):
                self.state = self.add_trace_point(self.state)
            checkpoint.save(self.ops, self.state)

    def step(self, state: TrainState) -> TrainState:
        """Take one batch: grow the basis, move q, then move θ and the basis."""
        since = self.clock()
        state = state._replace(iteration=state.iteration + 1)
        schedule = Decay(start=state.online_rate, decay=self.online.decay)
        rate = self.ops.asarray(np.float64(rate_at(schedule, state.iteration)))
        rows = self.batches.sample()
        if state.iteration > 1:  # the initial basis comes from the first batch
            state = self.grow_basis(state, self.data.X[rows])
        # after the basis has grown: points of its quadratic form are drawn from all of it
        batch = self.batches.batch(rows, state.raw.inducing)
        f = self.steps.factor(state.raw, state.prior, batch)
        state = self.e_steps(state, f, batch, rate)
        if self.settings.learn:
            start = state

            def phase(factor: float, adam: AdamState) -> TrainState:
                at, scaled = (start.raw, start.prior, start.q), self.scaled(rate, factor)
                tied, adam = self.steps.m_phase(*at, adam, batch, scaled, self.scale)
                return start._replace(**tied._asdict(), adam=adam)

            state = self.guarded(start, phase, batch, self.scale)
        self.ops.sync((state.prior, state.q))
        seconds = state.seconds + (self.clock() - since)
        return state._replace(seconds=seconds, rng_states=self.batches.rng_states())

    def grow_basis(self, state: TrainState, X: np.ndarray[Any, Any]) -> TrainState:
        """Add new points of the batch X [b, D]; q(f) does not change, and new Adam entries start at zero."""
        if self.growth.complete(state.raw.inducing):
            return state
        theta = self.theta(state)
        larger = self.growth.grown(theta.inducing, X, theta.kernel.lengthscales)
        if larger is theta.inducing:
            return state
        inducing = tree_map(self.ops.asarray, larger)
        # the new blocks first: a method extends its state by the Cholesky factor of the larger K
        state = self.with_theta(state, state.raw._replace(inducing=inducing))
        parameters = trainable_part(state.raw, self.settings.learn)
        return state._replace(
            q=self.method.grow(self.ops, state.prior, state.q),
            adam=extend_moments(self.ops, state.adam, parameters),
        )

    def trace_metrics(self, state: TrainState) -> TracePoint:
        theta = hyperparameters(self.theta(state))
        return {"gamma0": state.online_rate, **self.sizes(state), **self.metrics(state), **theta}

    def sizes(self, state: TrainState) -> dict[str, int]:
        """Return the size of the basis, and that of the mean's basis if it is separate."""
        inducing = state.raw.inducing
        if not isinstance(inducing, Decoupled):
            return {"inducing": centres(inducing).shape[0]}
        beta, gamma = inducing.beta, inducing.gamma
        return {"inducing": centres(beta).shape[0], "gamma": centres(gamma).shape[0]}

    def metrics(self, state: TrainState) -> dict[str, float]:
        """Return the metrics of any run and the held-out bound; empty if there are no test rows."""
        if not len(self.data.y_test):
            return {}
        return super().metrics(state) | {"heldout_elbo": self.heldout_bound(state)}

    def heldout_bound(self, state: TrainState) -> float:
        """Return (n/t) ΣV over the t test points − KL, which the paper calls VLB on held-out data.

        The paper prints no scale; with n/t the value is comparable to the bound on the training data.
        """
        return self.bound_over(
            state, [self.batches.test()], len(self.data.y) / len(self.data.y_test)
        )
