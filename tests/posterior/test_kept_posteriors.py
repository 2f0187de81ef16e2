"""A posterior in a file comes back bit for bit; a file that is none is one line."""

import io
import json
import zipfile

import numpy as np
import pytest
from small_fits import QUICK, regression

from svgpbench.api import UserError, fit, load_posterior, save_posterior
from svgpbench.plugins import METHODS, load

OF_TWO_BASES = {"orth", "hybrid", "decoupled"}


@pytest.mark.parametrize(
    "method", ["t-svgp", "q-svgp", "diagonal-precision", "sgpr", "gpr", "q-vgp", "orth"]
)
def test_every_method_comes_back_bit_for_bit(method, tmp_path) -> None:
    X, y = regression(30)
    inducing = {"count": 5, "gamma": 6} if method in OF_TWO_BASES else 5
    training = QUICK | {"e_rate": 0.1}
    one = fit(X, y, method=method, inducing=inducing, training=training)
    again = load_posterior(save_posterior(one, tmp_path / "one.npz"))
    assert again.facts == one.facts
    assert np.array_equal(again.predict(X).to_numpy(), one.predict(X).to_numpy())
    assert load(METHODS, method).name == again.method.name


@pytest.mark.parametrize(
    "method", [{"name": "t-svgp", "options": {"tying": "untied"}}, "t-vgp", "gpr"]
)
def test_the_rows_of_a_posterior_are_those_that_were_drawn_to_train(method) -> None:
    """A method with a number for every row has one for each of these alone."""
    X, y = regression(30)
    batch = {} if method == "gpr" else {"batch_size": 20}
    one = fit(X, y, method=method, inducing=5, training=QUICK | {"rows": 20} | batch)
    assert one.facts.n == 20
    assert not one.facts.minibatches  # a batch of them all is none


def test_draws_of_a_sampled_likelihood_are_kept(classified, tmp_path) -> None:
    X = np.linspace(-2.0, 2.0, 14).reshape(7, 2)
    again = load_posterior(save_posterior(classified, tmp_path / "one.npz"))
    assert again.predict(X).equals(classified.predict(X))


def test_q_of_u_makes_the_predictions(regressed) -> None:
    """Σ k(x, Z) K⁻¹ m, by dense algebra that knows no method."""
    X, _ = regression()
    Z, mean, covariance = regressed.inducing()
    theta = regressed.theta.kernel
    rows = (X.to_numpy() - regressed.x_mean) / regressed.x_scale

    def k(a, b):
        scaled = (a[:, None] - b[None]) / theta.lengthscales[0]
        r = np.sqrt(5.0 * np.sum(scaled**2, axis=-1))
        return theta.variance[0] * (1.0 + r + r**2 / 3.0) * np.exp(-r)

    K = k(Z, Z) + regressed.facts.jitter * np.eye(len(Z))
    A = np.linalg.solve(K, k(Z, rows)).T
    mu, v = regressed.latent(X)
    assert mu[0] == pytest.approx(A @ mean[0], rel=1e-8, abs=1e-8)
    spread = theta.variance[0] + np.einsum("ti,ij,tj->t", A, covariance[0] - K, A)
    assert v[0] == pytest.approx(spread, rel=1e-6, abs=1e-9)


def changed(path, **arrays):
    """The file with some arrays replaced, or left out where they are None."""
    with np.load(path) as kept:
        whole = {name: kept[name] for name in kept.files} | arrays
    np.savez(path, **{name: x for name, x in whole.items() if x is not None})


def facts_of(path):
    with np.load(path) as kept:
        return json.loads(kept["facts"].tobytes())


def as_bytes(facts):
    return np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"state.c": np.zeros((1, 3))}, r"'state\.c' is float64 of shape \(1, 3\)"),
        ({"x_mean": None}, "it has no 'x_mean'"),
        ({"x_mean": np.array(["a", "b"])}, "'x_mean' is <U1"),
        ({"facts": None}, "it has no 'facts'"),
        ({"facts": np.frombuffer(b"{no", dtype=np.uint8)}, "are no JSON"),
    ],
)
def test_a_damaged_file_is_one_line(regressed, tmp_path, arrays, message) -> None:
    path = save_posterior(regressed, tmp_path / "one.npz")
    changed(path, **arrays)
    with pytest.raises(UserError, match=message) as error:
        load_posterior(path)
    assert str(path) in str(error.value)


def test_facts_are_checked(regressed, tmp_path) -> None:
    path = save_posterior(regressed, tmp_path / "one.npz")
    changed(path, facts=as_bytes(facts_of(path) | {"method": {"name": "t-svpg"}}))
    with pytest.raises(UserError, match="did you mean 't-svgp'"):
        load_posterior(path)
    changed(path, facts=as_bytes(facts_of(path) | {"code": "import os"}))
    with pytest.raises(UserError, match="unknown key 'code'"):
        load_posterior(path)


def test_nothing_in_a_file_is_unpickled(regressed, tmp_path) -> None:
    path = save_posterior(regressed, tmp_path / "one.npz")
    content = io.BytesIO()
    np.save(content, np.array([print], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.npy", content.getvalue())
    with pytest.raises(UserError, match="holds no posterior"):
        load_posterior(path)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"no archive at all"])
def test_another_file_is_one_line(tmp_path, content) -> None:
    path = tmp_path / "one.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"one\.npz"):
        load_posterior(path)


def test_a_single_array_and_a_changed_byte_are_one_line(tmp_path) -> None:
    path = tmp_path / "one.npz"
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(UserError, match="holds no posterior"):
        load_posterior(path)
    np.savez_compressed(path, facts=np.arange(10_000))
    content = bytearray(path.read_bytes())
    for place in range(60, 200):  # where the array is
        content[place] ^= 255
    path.write_bytes(content)
    with pytest.raises(UserError, match="holds no posterior"):
        load_posterior(path)


def test_a_posterior_is_kept_under_its_ending_only(regressed, tmp_path) -> None:
    with pytest.raises(UserError, match=r"ends in \.npz"):
        save_posterior(regressed, tmp_path / "one.txt")
    with pytest.raises(UserError, match="No such file"):
        load_posterior(tmp_path / "none.npz")
    assert not list(tmp_path.iterdir())
