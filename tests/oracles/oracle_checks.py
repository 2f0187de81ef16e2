"""Which checks each kind of reference file gets."""

from __future__ import annotations

import functools
from collections.abc import Callable

from checks_of_decoupled import UNWHITENED, check_decoupled, check_two_part
from checks_of_full import check_gpr, check_vgp
from checks_of_likelihoods import (
    check_robust_max,
    check_scalar,
    check_softmax_by_sampling,
    check_softmax_on_the_grid,
    row_likelihood,
)
from checks_of_runs import check_run
from checks_of_steps import (
    check_e_step_sites,
    check_m_step_dual,
    check_m_step_mean_cholesky,
    check_natgrad,
    check_sgpr,
    check_sgpr_collapsed,
)
from checks_of_svgp import (
    check_kernel,
    check_svgp_dual,
    check_svgp_gradients,
    check_svgp_minibatch,
    check_svgp_values,
)
from checks_of_tighter import (
    METHODS,
    check_collapsed,
    check_fixed_point,
    check_one_step,
    check_upper_bound,
)
from oracle_files import Oracle, OracleError
from oracle_problem import (
    SERVED,
    likelihood_word,
    q_svgp,
)

from svgpbench.methods import AnyMethod
from svgpbench.methods.dual import DualSVGP
from svgpbench.methods.full import (
    DualVGP,
    MeanCholeskyVGP,
)
from svgpbench.methods.hybrid import HybridSVGP
from svgpbench.methods.orthogonal import OrthogonalSVGP
from svgpbench.ops import Ops

Check = Callable[[Ops, Oracle], None]

NATURAL_GRADIENTS: dict[str, AnyMethod] = {
    "q-svgp closed-form whitened": q_svgp(whiten=True),
    "q-svgp autodiff whitened": q_svgp(whiten=True, gradient="autodiff"),
    "q-svgp closed-form unwhitened": q_svgp(whiten=False),
    "q-svgp autodiff unwhitened": q_svgp(whiten=False, gradient="autodiff"),
    "t-svgp": DualSVGP(),
}


def checks_of(oracle: Oracle) -> dict[str, Check]:
    """Return the checks of a file by name. Raises `OracleError` for a kind or likelihood that has none."""
    kind = oracle.kind
    if not kind:
        raise OracleError(f"{oracle.name}: unknown kind of reference file")
    if kind == "scalar":
        names = dict.fromkeys(row_likelihood(row) for row in oracle.expected["rows"])
        return {_served(oracle, x): functools.partial(check_scalar, x) for x in names}
    if kind == "tighter":
        return dict(TIGHTER["rows" if "rows" in oracle.expected else "optimum"])
    if kind in ("svgp", "natgrad", "m_step"):
        _served(oracle, likelihood_word(oracle))
    return dict(CHECKS[kind])


def _served(oracle: Oracle, likelihood: str) -> str:
    """Return the name of a likelihood that the package has. Raises `OracleError` for another one."""
    if likelihood not in SERVED:
        raise OracleError(f"{oracle.name}: no likelihood {likelihood!r}")
    return likelihood


TIGHTER: dict[str, dict[str, Check]] = {
    "rows": {
        "sgpr": check_collapsed,
        **{name: functools.partial(check_one_step, name) for name in METHODS},
    },
    "optimum": {name: functools.partial(check_fixed_point, name) for name in METHODS},
}
"""Of a file with the collapsed bounds of Gaussian noise at several θ, and of one with an optimum."""

CHECKS: dict[str, dict[str, Check]] = {
    "decoupled": {
        "decoupled": check_decoupled,
        **{
            method.name: functools.partial(check_two_part, method.name, method)
            for method in (OrthogonalSVGP(coupled=UNWHITENED), HybridSVGP(coupled=UNWHITENED))
        },
    },
    "em_run": {"run": check_run},
    "kernel": {"kernel": check_kernel},
    "robustmax": {"q-svgp": check_robust_max},
    "softmax": {
        "on the grid": check_softmax_on_the_grid,
        "by sampling": check_softmax_by_sampling,
    },
    "svgp": {
        "values": check_svgp_values,
        "minibatch": check_svgp_minibatch,
        "gradients": check_svgp_gradients,
        "same q by t-svgp": check_svgp_dual,
    },
    "natgrad": {
        key: functools.partial(check_natgrad, method) for key, method in NATURAL_GRADIENTS.items()
    },
    "sgpr": {
        "sgpr": check_sgpr_collapsed,
        **{key: functools.partial(check_sgpr, method) for key, method in NATURAL_GRADIENTS.items()},
    },
    "gpr": {"gpr": check_gpr},
    "upper_bound": {"upper bound": check_upper_bound},
    "vgp": {
        "t-vgp": functools.partial(check_vgp, DualVGP()),
        "t-vgp negative sites": functools.partial(check_vgp, DualVGP(negative_sites=True)),
        "q-vgp": functools.partial(check_vgp, MeanCholeskyVGP()),
        "q-vgp unwhitened": functools.partial(check_vgp, MeanCholeskyVGP(whiten=False)),
    },
    "m_step": {
        "sites by E-steps": check_e_step_sites,
        **{
            f"t-svgp {tying}": functools.partial(check_m_step_dual, tying)
            for tying in ("standard", "whitened", "tied", "tied-projected", "untied")
        },
        "q-svgp standard": functools.partial(check_m_step_mean_cholesky, False),
        "q-svgp whitened": functools.partial(check_m_step_mean_cholesky, True),
    },
}
