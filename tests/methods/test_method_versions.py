"""Numbers cannot change without a new method version: records of two versions are never mixed.

Where a test here fails and the change is meant, raise the method's `version` and pin the new figure.
"""

from __future__ import annotations

import pytest
from shipped import SHIPPED_METHODS

from svgpbench.backends import load_backend
from svgpbench.checks.cases import build_model, likelihoods_of, small_problem
from svgpbench.checks.evaluate import evaluate
from svgpbench.likelihoods import likelihoods
from svgpbench.methods import build_method

PINNED: dict[str, tuple[int, float, float]] = {
    "t-svgp tied-projected": (1, -47.378998394377305, -40.98675371642937),
    "t-svgp tied": (1, -47.378998394377305, -41.21135973229973),
    "t-svgp untied": (1, -47.378998394377305, -40.10995611569764),
    "t-svgp standard": (1, -47.378998394377305, -40.99822526634498),
    "t-svgp whitened": (1, -47.378998394377305, -41.07082515537089),
    "q-svgp natgrad": (1, -47.378998394377305, -41.07082515537089),
    "q-svgp natgrad autodiff": (1, -47.378998394377305, -41.07082515537089),
    "q-svgp natgrad unwhitened": (1, -47.378998394377305, -40.99822526634498),
    "q-svgp natgrad unwhitened autodiff": (1, -47.378998394377305, -40.99822526634498),
    "q-svgp adam": (1, -46.533844143729176, -53.00086289214998),
    "q-svgp adam autodiff": (1, -46.533844143729176, -53.00086289214998),
    "q-svgp adam unwhitened": (1, -46.558412094416255, -54.6052467860689),
    "decoupled adam": (1, -41.243093218017464, -52.77300531932426),
    "decoupled sgd": (1, -38.09937457851825, -49.596960966933715),
    "decoupled adam subset": (1, -40.027705244376484, -52.77776992861868),
    "diagonal-precision exact": (1, -47.458624226851725, -41.832840263245146),
    "diagonal-precision exact tied-projected": (1, -47.458624226851725, -41.35701148022639),
    "diagonal-precision projected-b": (1, -47.541452699569355, -42.18991247153616),
    "diagonal-precision projected-a": (1, -47.17575132271007, -43.477141712490685),
    "diagonal-precision adam": (1, -47.54525599765156, -49.28775578688344),
    "r-svgp natural": (1, -49.07966744480136, -52.349780020466326),
    "r-svgp natural log-linear": (1, -49.07966137864452, -52.34977554157825),
    "r-svgp natural plain": (1, -49.20494350353201, -52.32725150111214),
    "r-svgp cholesky": (1, -49.07966169447246, -52.34977259811988),
    "t-vgp": (1, -27.784211787543107, -25.257293254122043),
    "t-vgp negative sites": (1, -27.784211787543107, -25.25729325412204),
    "q-vgp natgrad": (1, -27.784215525188678, -25.564659836398093),
    "q-vgp natgrad unwhitened": (1, -27.78421552518867, -28.08428371616438),
    "gpr": (1, -56.471395027510425, -54.35345556510665),
    "sgpr": (1, -149.07901726903214, -117.28309809101253),
    "hybrid adam": (1, -38.196417822345786, -51.650772825732666),
    "hybrid adam subset": (1, -37.18922108491745, -51.65563325370459),
    "hybrid natgrad newton": (1, -39.144781384174735, -31.979782309600267),
    "orth adam": (1, -37.67765442067297, -52.408250390157974),
    "orth adam subset": (1, -37.150135174957605, -52.40761765558814),
    "orth natgrad adam": (1, -39.06329968215969, -40.5671869632193),
    "orth natgrad scaled": (1, -36.065609919573156, -38.69432705408782),
    "orth natgrad natural": (1, -35.955966968928514, -38.72237904938412),
    "orth natgrad newton": (1, -38.188106957138004, -31.38701627778935),
    "orth dual newton": (1, -38.188106957138004, -31.318108573733163),
    "hybrid natgrad newton scalar": (1, -37.1595785538906, -31.028108259789633),
    "orth dual newton scalar": (1, -36.277536225923214, -30.39052249701319),
    "orth dual newton diagonal": (1, -86.45714270666254, -77.04811638925258),
    "q-svgp natgrad scalar": (1, -44.23855984426244, -39.26585420372097),
    "q-svgp natgrad diagonal": (1, -112.50765512777768, -90.84376809690454),
    "q-svgp natgrad unwhitened autodiff scalar": (1, -44.23855984426244, -39.21603594902288),
    "sgpr scalar": (1, -101.08423079740125, -88.63004073331288),
    "sgpr diagonal": (1, -97.95837886956824, -86.34060623976372),
    "t-svgp scalar": (1, -44.23855984426244, -39.184702676002956),
    "t-svgp diagonal": (1, -112.5076551277777, -90.36935411622002),
    "t-svgp untied scalar": (1, -44.23855984426244, -38.35743112844571),
    "t-svgp untied diagonal": (1, -112.5076551277777, -90.1389044725725),
}
"""Version, bound estimate after 50 E-steps, and M-step objective at another θ (Matérn-3/2; probit, or
Gaussian where the method takes nothing else)."""


@pytest.mark.parametrize("method", SHIPPED_METHODS)
def test_numbers_are_those_of_the_version(method: str) -> None:
    name, options = SHIPPED_METHODS[method]
    built = build_method(name, options)
    served = likelihoods_of(method)
    likelihood = "bernoulli-probit" if "bernoulli-probit" in served else "gaussian"
    model = build_model(likelihood, "matern32")
    arrays = evaluate(load_backend("numpy"), model, built, small_problem())
    found = (float(arrays["e_trajectory/elbo"]), float(arrays["gradients/objective"]))
    assert method in PINNED, f'pin "{method}": {(built.version, *found)} in PINNED'
    version, *pinned = PINNED[method]
    assert built.version == version
    assert found == pytest.approx(pinned, rel=1e-11)


LIKELIHOODS_PINNED: dict[str, tuple[float, float, float]] = {
    "gaussian": (-164.64437236465304, -121.31184596746883, -20.49945351673005),
    "bernoulli-probit": (-47.378998394377305, -40.98675371642937, -8.888681199157146),
    "bernoulli-logit": (-38.846881048262325, -36.24996611253386, -9.666241121625687),
    "softmax": (-72.59064122778688, -60.6074884090896, -16.818057134599684),
    "robust-max": (-79.4290065704059, -75.19523313087133, -15.706185199612644),
    "student-t": (-115.35777628080402, -97.49311296017608, -21.214665086312785),
    "heteroskedastic": (-151.4642975141973, -137.24458009833722, -22.876654244373555),
    "poisson": (-99.7587285202224, -101.45006410616392, -22.462784435941934),
}
"""The same two of t-SVGP with every likelihood, and the log predictive density of a batch."""


@pytest.mark.parametrize("likelihood", likelihoods())
def test_numbers_of_a_likelihood_do_not_change_unnoticed(likelihood: str) -> None:
    model, method = build_model(likelihood, "matern32"), build_method("t-svgp", {})
    arrays = evaluate(load_backend("numpy"), model, method, small_problem())
    found = (
        float(arrays["e_trajectory/elbo"]),
        float(arrays["gradients/objective"]),
        float(arrays["values/log_density"].sum()),
    )
    assert likelihood in LIKELIHOODS_PINNED, f'pin "{likelihood}": {found} in LIKELIHOODS_PINNED'
    assert found == pytest.approx(LIKELIHOODS_PINNED[likelihood], rel=1e-11)
