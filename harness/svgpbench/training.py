"""The EM loop of Adam et al. 2021, Sec. 4: K E-steps on q, S M-steps on θ, a trace point between them.

Batches come from the harness's own NumPy generator, so every backend sees the same ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from svgpbench.batches import Batches, TrainingData
from svgpbench.config import TrainingConfig
from svgpbench.methods.method import Method
from svgpbench.model import Model, Theta, constrain, unconstrain
from svgpbench.ops import Ops, Tree
from svgpbench.optimisers import adam_start
from svgpbench.schedules import rate_at
from svgpbench.steps import Batch, compile_steps, learned
from svgpbench.tree import leaves, tree_map


@dataclass(frozen=True)
class Trained:
    """What a run leaves: a trace point an EM iteration, and the last θ and state on the host."""

    status: str  # "ok", "not_pd" or "diverged"
    message: str
    trace: list[dict[str, float | int | None]]
    theta: Theta
    state: Tree


class Trainer:
    """One model, method and data set on one backend; `run` is the whole EM loop."""

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
        self.steps = compile_steps(
            ops, model, method, settings.e_steps, max(settings.m_steps, 1), settings.learn
        )
        self.batches = Batches(ops, model, method, data, settings.batch_size, seed)
        self.one = ops.asarray(np.float64(1.0))
        self.e_rate = ops.asarray(np.float64(rate_at(settings.e_rate, 1)))
        self.m_rate = ops.asarray(np.float64(settings.m_rate))
        self.scale = ops.asarray(np.float64(self.batches.scale))
        self.raw = tree_map(ops.asarray, unconstrain(theta))
        self.prior = self.steps.prior(self.raw)
        self.state = method.initial_state(ops, self.prior, model.latents, len(data.y))
        self.adam = adam_start(ops, learned(self.raw, settings.learn))
        self.factor: Any = None  # blocks of the full batch, while θ stands still

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
        """S M-steps of Adam on the learned parts of θ; Adam's moments live on between phases."""
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
        self.prior = self.steps.prior(self.raw)
        self.factor = None

    def elbo(self) -> float:
        """The full-data bound at the current θ and q."""
        return self.bound_over(list(self.batches.evaluation()), 1.0, self.factor)

    def bound_over(self, chunks: list[Batch], weight: float, factor: Any = None) -> float:
        """Weight · Σ V − KL over the rows of `chunks`; `factor`: blocks of a sole chunk, where known."""
        parts = list(self.batches.partition(self.raw.inducing))
        scale = self.ops.asarray(np.float64(weight))
        if len(chunks) == len(parts) == 1:
            at = chunks[0]._replace(rows=parts[0][1])
            f = self.steps.factor(self.raw, self.prior, at) if factor is None else factor
            return self._bound(f, chunks[0], scale)
        # Σ_chunks [ΣV − KL] counts the KL once a chunk; scale 0 gives −KL alone
        expected, negative_kl = 0.0, 0.0
        zero = self.ops.asarray(np.float64(0.0))
        for batch in chunks:
            at = batch._replace(rows=parts[0][1])
            f = self.steps.factor(self.raw, self.prior, at)
            expected += self._bound(f, at, scale) - self._bound(f, at, zero)
        for share, rows in parts:
            at = chunks[0]._replace(rows=rows)
            f = self.steps.factor(self.raw, self.prior, at)
            negative_kl += share * self._bound(f, at, zero)
        return expected + negative_kl

    def _bound(self, f: Any, batch: Batch, scale: Any) -> float:
        value = self.steps.bound(self.raw, f, batch, self.state, scale)
        return float(self.ops.to_numpy(value))

    def metrics(self) -> dict[str, float]:
        """Test NLPD and error: RMSE for regression, error rate for classification."""
        ops, d = self.ops, self.data
        test = self.batches.test()
        density, prediction = self.steps.predict(self.raw, self.prior, self.state, test)
        nlpd = -float(np.mean(np.float64(ops.to_numpy(density))))
        guess = np.asarray(ops.to_numpy(prediction), dtype=np.float64)
        if self.model.likelihood.task == "classification":
            label = np.argmax(guess, axis=0) if guess.ndim == 2 else guess > 0.5
            return {"nlpd": nlpd, "error_rate": float(np.mean(label != d.y_test))}
        rmse = float(np.sqrt(np.mean((guess - d.y_test) ** 2)))
        return {
            "nlpd": nlpd,
            "nlpd_original": nlpd + float(np.log(d.y_scale)),
            "rmse": rmse,
            "rmse_original": rmse * d.y_scale,
        }

    def hyperparameters(self) -> dict[str, float]:
        """Kernel and likelihood parameters; of the lengthscales the least, geometric mean, greatest."""
        theta = tree_map(self.ops.to_numpy, constrain(self.ops, self.raw))
        lengthscales = np.asarray(theta.kernel.lengthscales, dtype=np.float64)
        rows = {
            "variance": float(np.ravel(theta.kernel.variance)[0]),
            "lengthscale_min": float(lengthscales.min()),
            "lengthscale_mean": float(np.exp(np.mean(np.log(lengthscales)))),
            "lengthscale_max": float(lengthscales.max()),
        }
        names = getattr(theta.likelihood, "_fields", ())
        return rows | {k: float(x) for k, x in zip(names, theta.likelihood, strict=True)}

    def theta(self) -> Theta:
        """θ on the host, constrained."""
        host: Theta = tree_map(self.ops.to_numpy, constrain(self.ops, self.raw))
        return host

    def run(self) -> Trained:
        """All EM iterations; a bound that is not finite ends the run with its status."""
        trace: list[dict[str, float | int | None]] = []
        status, message, seconds = "ok", "", 0.0
        for iteration in range(1, self.settings.em_iterations + 1):
            start = time.perf_counter()
            self.e_rate = self.ops.asarray(np.float64(rate_at(self.settings.e_rate, iteration)))
            if iteration > 1 and self.settings.m_steps:
                self.m_phase()
            self.e_phase()
            self.ops.sync(self.state)
            seconds += time.perf_counter() - start
            bound = self.elbo()
            if not np.isfinite(bound):
                status, message = self._failure(iteration, bound)
                break
            point: dict[str, float | int | None] = {"iteration": iteration, "elbo": bound}
            trace.append({**point, **self.metrics(), **self.hyperparameters(), "seconds": seconds})
        state = tree_map(self.ops.to_numpy, self.state)
        return Trained(status, message, trace, self.theta(), state)

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
