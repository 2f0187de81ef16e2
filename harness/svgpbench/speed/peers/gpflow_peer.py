"""GPflow's SVGP, whitened, with natural gradients for q and Adam for θ: every step traced once.

Run by the Python of GPflow's own environment; imports nothing of svgpbench. Speaks the protocol of
`svgpbench/speed/worker.py`: a request a line on stdin, an answer a line on stdout.

The E-step is the one of GPflow's own notebooks, in one `tf.function` whose batch is an argument.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

HELD = 8
WARM_CALLS, WARM_S = 3, 0.3
SMALLEST_POSITIVE = 1e-6  # θ = floor + softplus(raw), as in svgpbench
ADAM_EPSILON = 1e-8


def main() -> None:
    """Serve requests until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cores", default="")
    parser.add_argument("--parent", type=int, default=0)
    options = parser.parse_args()
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes to stderr
    cores = [int(core) for core in options.cores.split(",") if core]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)  # before any library starts its threads

    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    say({"environment": describe(options.threads)})
    steps: dict[str, Step] = {}
    for line in requests:
        request = json.loads(line)
        name = request["step"]
        try:
            if request["do"] == "prepare":
                steps[name] = Step(request["problem"], name)
                say(steps[name].prepare())
            else:
                say({"seconds": steps[name].time_calls(request["calls"])})
        except Exception as error:
            say({"error": one_line(error)})


def one_line(error: Exception) -> str:
    """An exception's type and first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def describe(threads: int) -> dict[str, Any]:
    """Versions and threads of this process."""
    import gpflow
    import numpy as np
    import tensorflow as tf

    return {
        "python": sys.version.split()[0],
        "versions": {
            "gpflow": gpflow.__version__,
            "numpy": np.__version__,
            "tensorflow": tf.__version__,
        },
        "threads": threads,
        "intra_op_threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "inter_op_threads": tf.config.threading.get_inter_op_parallelism_threads(),
        "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    }


class Step:
    """One compiled step of a model at its start."""

    def __init__(self, path: str, name: str) -> None:
        import numpy as np
        import tensorflow as tf

        with np.load(path, allow_pickle=False) as arrays:
            p = dict(arrays)
        self.model = build_model(p)
        kind = tf.int64 if str(p["likelihood"]) == "softmax" else tf.float64

        def rows(X: Any, y: Any) -> tuple[Any, Any]:
            return tf.constant(X), tf.constant(y[:, None].astype(kind.as_numpy_dtype))

        self.batch = rows(p["X"], p["y"])
        later = list(map(rows, p["X_later"], p["y_later"]))
        new = rows(p["X_new"], p["y_new"])
        self.name = name
        e_rate, m_rate = float(p["e_rate"]), float(p["m_rate"])
        if name in ("m_step", "predict"):
            compile_e_step(self.model, e_rate, 1)(*self.batch)
        self.arguments: tuple[Any, ...] = self.batch
        if name == "e_step":
            self.function = compile_e_step(self.model, e_rate, 1)
        elif name == "e_step_held":
            self.function = compile_e_step(self.model, e_rate, HELD)
        elif name == "m_step":
            self.function = compile_m_step(self.model, m_rate)
        elif name == "em_step":
            self.function = compile_em_step(self.model, e_rate, m_rate)
            self.arguments = ([self.batch, *later[:-1]], later[-1])
            self.batch = later[-1]  # the bound after it is of the M-step's batch
        else:
            self.function, self.arguments = compile_predict(self.model), new
        self.start = [(v, v.numpy()) for v in self.model.variables]

    def call(self) -> Any:
        """Run the step; on the CPU a call returns when it has been computed."""
        return self.function(*self.arguments)

    def reset(self) -> None:
        """Put every variable of the model back to its start."""
        for variable, value in self.start:
            variable.assign(value)

    def prepare(self) -> dict[str, float]:
        """First call, the number that must agree after it, and the fastest warm call."""
        first_s, result = timed(self.call)
        if self.name == "predict":
            figure = float(result[0].numpy().mean())
        else:
            figure = float(self.model.elbo(self.batch).numpy())
        seconds: list[float] = []
        end = time.perf_counter() + WARM_S
        while len(seconds) < WARM_CALLS or time.perf_counter() < end:
            seconds.append(timed(self.call)[0])
        return {"first_call_s": first_s, "figure": figure, "call_s": min(seconds)}

    def time_calls(self, count: int) -> list[float]:
        """Seconds of each of `count` calls from the start, without garbage collection."""
        self.reset()
        gc.collect()
        gc.disable()
        try:
            return [timed(self.call)[0] for _ in range(count)]
        finally:
            gc.enable()


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def build_model(p: dict[str, Any]) -> Any:
    """Whitened SVGP with Matérn-5/2 at q = p, the jitter and positive floor of the problem."""
    import gpflow

    gpflow.config.set_default_jitter(float(p["jitter"]))
    gpflow.config.set_default_positive_minimum(SMALLEST_POSITIVE)
    kernel = gpflow.kernels.Matern52(variance=float(p["variance"]), lengthscales=p["lengthscales"])
    if str(p["likelihood"]) == "gaussian":
        likelihood = gpflow.likelihoods.Gaussian(variance=float(p["noise_variance"]))
    elif str(p["likelihood"]) == "softmax":
        likelihood = softmax(p["noise"])
    else:
        likelihood = gpflow.likelihoods.Bernoulli()  # its link is the problem's squashed probit
    options = {"num_data": int(p["n"]), "whiten": True, "num_latent_gps": int(p["classes"])}
    return gpflow.models.SVGP(kernel, likelihood, p["Z"], **options)


def softmax(noise: Any) -> Any:
    """GPflow's softmax with the problem's draws, one set for all rows, in place of fresh ones."""
    import gpflow
    import tensorflow as tf

    samples, classes = noise.shape
    draws = tf.constant(noise)

    class Softmax(gpflow.likelihoods.Softmax):  # type: ignore[misc]
        def _mc_quadrature(
            self, funcs: Any, mean: Any, variance: Any, *rest: Any, **more: Any
        ) -> Any:
            rows = tf.broadcast_to(draws[:, None, :], [samples, tf.shape(mean)[0], classes])
            return super()._mc_quadrature(funcs, mean, variance, *rest, **{**more, "epsilon": rows})

    likelihood = Softmax(classes)
    likelihood.num_monte_carlo_points = samples
    return likelihood


def natural_step(model: Any, rate: float) -> Callable[..., None]:
    """A natural-gradient step on a batch."""
    import gpflow

    natural = gpflow.optimizers.NaturalGradient(gamma=rate)
    parameters = [(model.q_mu, model.q_sqrt)]

    def e_step(X: Any, y: Any) -> None:
        natural.minimize(lambda: model.training_loss((X, y)), parameters)

    return e_step


def compile_e_step(model: Any, rate: float, count: int) -> Callable[..., Any]:
    """`count` natural-gradient steps on one batch in one call."""
    import tensorflow as tf

    step = natural_step(model, rate)

    def e_steps(X: Any, y: Any) -> None:
        if count == 1:
            step(X, y)
        else:
            for _ in tf.range(count):
                step(X, y)

    compiled: Callable[..., Any] = tf.function(e_steps)
    return compiled


def compile_em_step(model: Any, e_rate: float, m_rate: float) -> Callable[..., Any]:
    """Natural-gradient steps, each on a minibatch of its own, and one of Adam on another, in one call."""
    import tensorflow as tf

    natural = natural_step(model, e_rate)
    adam = adam_step(model, m_rate)

    def em_step(batches: Any, last: Any) -> None:
        for batch in batches:
            natural(*batch)
        adam(*last)

    compiled: Callable[..., Any] = tf.function(em_step)
    return compiled


def compile_m_step(model: Any, rate: float) -> Callable[..., Any]:
    """One step of Adam on kernel, likelihood and inducing inputs; q stands still."""
    import tensorflow as tf

    compiled: Callable[..., Any] = tf.function(adam_step(model, rate))
    return compiled


def adam_step(model: Any, rate: float) -> Callable[..., None]:
    """A step of Adam on a batch; q is no longer among the trainable variables."""
    import gpflow
    import tensorflow as tf

    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    adam = tf.optimizers.Adam(rate, epsilon=ADAM_EPSILON)
    variables = model.trainable_variables
    adam.build(variables)  # its slots must exist before the trace

    def m_step(X: Any, y: Any) -> None:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = model.training_loss((X, y))
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))  # noqa: B905

    return m_step


def compile_predict(model: Any) -> Callable[..., Any]:
    """Log predictive densities and mean predictions of new rows."""
    import tensorflow as tf

    def predict(X: Any, y: Any) -> Any:
        mean, variance = model.predict_f(X)
        density = model.likelihood.predict_log_density(X, mean, variance, y)
        return density, model.likelihood.predict_mean_and_var(X, mean, variance)[0]

    compiled: Callable[..., Any] = tf.function(predict)
    return compiled


if __name__ == "__main__":
    main()
