"""The bar of a fit: iterations, bound and seconds on a terminal, and nothing anywhere else."""

from __future__ import annotations

import numpy as np
import pytest

from svgpbench.posterior.fit import fit
from svgpbench.posterior.posterior import Posterior

ITERATIONS = 4


def fitted(progress: bool, optimiser: str = "adam") -> Posterior:
    X = np.linspace(0.0, 1.0, 30)[:, None]
    training = {"em_iterations": ITERATIONS, "m_steps": 2, "optimiser": optimiser}
    method = "sgpr" if optimiser == "l-bfgs" else "t-svgp"
    return fit(
        X, np.sin(6.0 * X[:, 0]), method=method, inducing=5, training=training, progress=progress
    )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich takes the captured stderr for a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")
@pytest.mark.parametrize("optimiser", ["adam", "l-bfgs"])
def test_a_terminal_shows_the_last_iteration_and_its_bound(
    terminal: None, capsys: pytest.CaptureFixture[str], optimiser: str
) -> None:
    posterior = fitted(True, optimiser)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{ITERATIONS}/{ITERATIONS}" in printed.err
    assert f"bound {posterior.elbo:.6g}, " in printed.err


@pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")
def test_an_online_fit_has_iterations_of_its_own(
    terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    X = np.linspace(0.0, 1.0, 30)[:, None]
    online = {"iterations": 7, "increment": 5, "rates": (0.1,)}
    training = {"kind": "online", "batch_size": 10, "online": online}
    fit(X, np.sin(6.0 * X[:, 0]), inducing=5, training=training, progress=True)
    assert "7/7" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::svgpbench.errors.UnsettledWarning")
def test_it_is_off_by_default_and_a_pipe_sees_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    bound = fitted(True).elbo
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert fitted(False).elbo == bound
    printed = capfd.readouterr()
    assert printed.out + printed.err == ""
