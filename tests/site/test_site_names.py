"""Names become names of files and addresses."""

from __future__ import annotations

from svgpbench.site.pages import slug


def test_names_become_different_names_of_files() -> None:
    names = ["concrete:5", "concrete", "naval@turbine", "a b", "a_b", "a/b", "a:b", "a.b", "a_20_b"]
    assert len({slug(name) for name in names}) == len(names)
    assert all(slug(name).replace(".", "").replace("_", "").isalnum() for name in names)
