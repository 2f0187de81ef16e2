"""Learning online on a growing basis: Algorithm 1 of Cheng and Boots 2017.

Each iteration draws a batch and adds up to N_Δ of its points to the basis, until the basis has its final
size. It then moves all parameters once, on that batch and at γ_t = γ₀/(1 + 0.1√t): q by the method's
E-step, then θ and the basis by Adam.

What the paper states (Sec. 4): N_m = 1024, N_Δ = 128, 2000 iterations; Adam with β₁ = 0.9, β₂ = 0.999;
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
from svgpbench.methods.larger_basis import grown_moments
from svgpbench.methods.method import AnyMethod
from svgpbench.ops import Ops
from svgpbench.training.batches import Batches, TrainingData
from svgpbench.training.blocks import learned
from svgpbench.training.checkpoints import NO_CHECKPOINT, Checkpoint
from svgpbench.training.em import Trained, Trainer
from svgpbench.training.place import Place, TracePoint
from svgpbench.training.schedules import rate_at
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
        once = settings.model_copy(update={"e_steps": 1, "m_steps": 1})
        super().__init__(ops, model, method, data, theta._replace(inducing=inducing), once, seed)
        self.at = self.at._replace(gamma0=self.online.rates[0])

    def run(self, checkpoint: Checkpoint = NO_CHECKPOINT) -> Trained:
        """Run all iterations at the best γ₀; a bound that is not credible ends the run with its status.

        All trials start from the same place, draws included. The run continues from the best of them.
        """
        start = self.at
        self.resume_from(checkpoint)
        if len(self.online.rates) > 1:
            while len(self.at.trials) < len(self.online.rates):
                self.try_rate(start, checkpoint)
        self.iterate(self.online.iterations, checkpoint)
        return self.trained()

    def try_rate(self, start: Place, checkpoint: Checkpoint) -> None:
        """Finish the trial of the current γ₀, then move to the start of the next trial or to the best place.

        A γ₀ is judged by the bound after the first iterations, −∞ if these failed or it is not credible.
        """
        self.iterate(min(self.online.trial, self.online.iterations), checkpoint)
        at = self.at
        bound = -np.inf if at.failed else self.elbo(at)
        bound = bound if self.credible(bound) else -np.inf
        best, trials = at.best, (*at.trials, bound)
        if not at.trials or bound > max(at.trials):
            best = at._replace(prior=(), trials=(), best=())
        follow = best
        if len(trials) < len(self.online.rates):
            follow = start._replace(gamma0=self.online.rates[len(trials)], best=best)
        self.resume(follow._replace(trials=trials, resumptions=at.resumptions))

    def iterate(self, until: int, checkpoint: Checkpoint) -> None:
        """Run iterations up to number `until`, with their trace points; stop after a failure."""
        while self.at.iteration < until and not self.at.failed:
            at = self.step(self.at)
            self.at = self.traced(at) if self.settings.is_traced(at.iteration) else at
            checkpoint.keep(self.ops, self.at)

    def step(self, at: Place) -> Place:
        """Take one batch: grow the basis, move q, then move θ and the basis."""
        since = self.clock()
        at = at._replace(iteration=at.iteration + 1)
        schedule = Decay(start=at.gamma0, decay=self.online.decay)
        rate = self.ops.asarray(np.float64(rate_at(schedule, at.iteration)))
        rows = self.batches.sample()
        if at.iteration > 1:  # the initial basis comes from the first batch
            at = self.grown(at, self.data.X[rows])
        batch = self.batches.drawn(rows, at.raw.inducing)
        f = self.steps.factor(at.raw, at.prior, batch)
        at = at._replace(state=self.steps.e_phase(at.raw, f, batch, at.state, rate, self.scale))
        if self.settings.learn:
            moved, adam = self.steps.m_phase(
                at.raw, at.prior, at.state, at.adam, batch, rate, self.scale
            )
            at = at._replace(**moved._asdict(), adam=adam)
        self.ops.sync((at.prior, at.state))
        return at._replace(seconds=at.seconds + (self.clock() - since), draws=self.batches.place())

    def grown(self, at: Place, X: np.ndarray[Any, Any]) -> Place:
        """Add new points of the batch X [b, D]; q(f) does not change, and new Adam entries start at zero."""
        if self.growth.complete(at.raw.inducing):
            return at
        theta = self.theta(at)
        larger = self.growth.grown(theta.inducing, X, theta.kernel.lengthscales)
        if larger is theta.inducing:
            return at
        at = self.moved(at, at.raw._replace(inducing=tree_map(self.ops.asarray, larger)))
        return at._replace(
            state=self.method.grow(self.ops, at.prior, at.state),
            adam=grown_moments(self.ops, at.adam, learned(at.raw, self.settings.learn)),
        )

    def reached(self, at: Place) -> TracePoint:
        theta = hyperparameters(self.theta(at))
        return {"gamma0": at.gamma0, **self.sizes(at), **self.metrics(at), **theta}

    def sizes(self, at: Place) -> dict[str, int]:
        """Return the size of the basis, and that of the mean's basis if it is separate."""
        inducing = at.raw.inducing
        if not isinstance(inducing, Decoupled):
            return {"inducing": centres(inducing).shape[0]}
        beta, gamma = inducing.beta, inducing.gamma
        return {"inducing": centres(beta).shape[0], "gamma": centres(gamma).shape[0]}

    def metrics(self, at: Place) -> dict[str, float]:
        """Return the metrics of any run and the held-out bound."""
        return super().metrics(at) | {"heldout_elbo": self.heldout_bound(at)}

    def heldout_bound(self, at: Place) -> float:
        """Return (n/t) ΣV over the t test points − KL, which the paper calls VLB on held-out data.

        The paper prints no scale; with n/t the value is comparable to the bound on the training data.
        """
        return self.bound_over(at, [self.batches.test()], len(self.data.y) / len(self.data.y_test))
