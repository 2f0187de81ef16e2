"""Data of a page keep their values, and names become file names."""

from __future__ import annotations

import base64
import gzip
import json

from svgpbench.site.pages import packed, slug


def test_what_is_packed_ends_no_script_and_comes_back_the_same_every_time() -> None:
    value = {"x": "</script><!-- a & b \u2028", "n": 1.5}
    found = base64.b64decode(packed(value), validate=True)
    assert found[4:8] == bytes(4)  # when it was compressed is not in it
    assert json.loads(gzip.decompress(found)) == value


def test_names_become_different_names_of_files() -> None:
    names = ["concrete:5", "concrete", "naval@turbine", "a b", "a_b"]
    assert len({slug(name) for name in names}) == len(names)
    assert all(slug(name).replace(".", "").replace("_", "").isalnum() for name in names)
