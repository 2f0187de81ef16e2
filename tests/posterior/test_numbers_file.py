"""Arrays cross between processes and NumPy versions as numbers, never as pickled objects."""

from __future__ import annotations

import io

import numpy as np
import pytest

from svgpbench.npz import save_arrays


def test_arrays_come_back_under_their_names_and_nothing_beside_them() -> None:
    content = io.BytesIO()
    save_arrays({"X": np.eye(2), "names": np.array(["a", "bc"]), "rate": 0.5}, content)
    content.seek(0)
    with np.load(content, allow_pickle=False) as read:
        assert set(read.files) == {"X", "names", "rate"}
        assert read["X"].tolist() == np.eye(2).tolist()
        assert (read["names"].tolist(), float(read["rate"])) == (["a", "bc"], 0.5)


def test_an_array_of_objects_is_refused_before_anything_is_written() -> None:
    content = io.BytesIO()
    with pytest.raises(TypeError, match="array 'bad' holds objects"):
        save_arrays({"X": np.eye(2), "bad": np.array([print], dtype=object)}, content)
    assert content.getvalue() == b""
