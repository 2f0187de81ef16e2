"""The digest of a plugin's code: what changes it, and what does not."""

from __future__ import annotations

import importlib
import py_compile
import sys
import zipfile
from pathlib import Path

import pytest

from svgpbench.experiments.identity import OtherCode
from svgpbench.source_code import SourceCode, is_own_source, statements

FILES = {
    "acme/__init__.py": "from acme.unrelated import x\n",
    "acme/unrelated.py": "x = 1\n",
    "acme/deep/__init__.py": "",
    "acme/method.py": """
import numpy
import math
from . import quadrature
from .deep.nodes import *
import acme_tools as tools

def f(x):
    import acme.late
    __import__("acme.named"), open(__file__.replace("method.py", "table.csv"))
    return f"{x:{tools.WIDTH}} {{}}" + quadrature.g(x)
""",
    "acme/quadrature.py": "def g(x):\n    return 2.0 * x\n",
    "acme/deep/nodes.py": "NODES = 20\n",
    "acme/late.py": "y = 1\n",
    "acme/named.py": "z = 1\n",
    "acme/table.csv": "1,2",
    "acme_tools.py": "WIDTH = 3\n",
}
COUNT = {
    "acme/__init__.py", "acme/method.py", "acme/quadrature.py", "acme/deep/__init__.py",
    "acme/deep/nodes.py", "acme/late.py", "acme/named.py", "acme/table.csv", "acme_tools.py",
}  # fmt: skip


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def code() -> SourceCode:
    importlib.invalidate_caches()
    return SourceCode(["acme.method"], lambda top, spec: is_own_source(spec))


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_counts_if_the_plugin_imports_or_names_it(source: Path, name: str) -> None:
    before = code()
    assert before.tops == {"acme", "acme_tools"} and "acme.method" not in sys.modules
    path = source / name
    path.write_text(f"{path.read_text()}\nchanged = 1\n")
    assert (code().digest != before.digest) == (name in COUNT)
    assert (before.read_again().digest != before.digest) == (name in COUNT)


def test_the_place_does_not_count(source: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    before = code().digest
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for top in ("acme", "acme_tools.py"):
        (source / top).rename(elsewhere / top)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(elsewhere)
        assert code().digest == before


def test_a_zip_and_bytecode_without_source_count(source: Path) -> None:
    archive = source / "packed.zip"

    def pack(factor: str) -> str:
        with zipfile.ZipFile(archive, "w") as file:
            for name, text in FILES.items():
                file.writestr(
                    name.replace("acme", "packed"),
                    text.replace("2.0", factor).replace("acme", "packed"),
                )
        importlib.invalidate_caches()
        sys.path_importer_cache.clear()
        found = SourceCode(["packed.method"], lambda top, spec: is_own_source(spec))
        assert {"packed.quadrature", "packed.method table.csv"} <= found.code.keys()
        return found.digest

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(archive)
        assert pack("2.0") != pack("3.0") != pack("3.00")

    def compiled(text: str) -> str:
        plain = source / "plain.py"
        plain.write_text(text)
        py_compile.compile(str(plain), cfile=str(source / "bare.pyc"), doraise=True)
        plain.unlink()
        importlib.invalidate_caches()
        return SourceCode(["bare"]).digest

    assert compiled("x = 2\n") == compiled("x = 2\n") != compiled("x = 3\n")


SAME = '''"""Another docstring."""
# a comment
def f(x):  # more

        """of f"""

        y = (x
             +1)  # and here
        return f"{y} {{}}", {"a": "# no comment"}
'''
PLAIN = '''"""Module."""
def f(x):
    y = (x + 1)
    return f"{y} {{}}", {"a": "# no comment"}
'''


def test_layout_comments_and_docstrings_do_not_count() -> None:
    assert statements(SAME) == statements(PLAIN)
    for old, new in (("+1", "-1"), ("{y}", "{x}"), ("# no", "# a"), ("        return", "return")):
        changed = SAME.replace(old, new)
        if "return f" in changed and new == "return":
            changed = changed.replace("return f", "0; f")
        assert statements(changed) != statements(PLAIN), old


def test_what_differs_is_named_by_package_and_ours_apart() -> None:
    then = {"method x": "acme:1", "kernel k": "svgpbench:1", "backend b": "acme:3", "old": "a:1"}
    now = {"method x": "acme:2", "kernel k": "svgpbench:2", "backend b": "acme:3", "new": "a:1"}
    other = OtherCode.between(then, now)
    assert other == ("method x of package acme", "kernel k")
    assert OtherCode.between(then, then) == ("", "")
    moved = OtherCode.between({"method x": "acme:1"}, {"method x": "svgpbench:1"})
    assert moved == ("method x of package acme and svgpbench", "")


def test_the_code_of_a_module_that_pytest_loaded_is_that_of_its_file() -> None:
    """Pytest loads this module, and packages with a plugin of its, by a loader of its own."""
    assert not hasattr(sys.modules[__name__].__spec__.loader, "get_source")
    source = Path(__file__).read_text("utf-8")
    assert SourceCode([__name__]).code == {__name__: "\n".join(statements(source)).encode()}
    follows = SourceCode([__name__], lambda top, spec: top in (__name__, "svgpbench"))
    assert "svgpbench.source_code" in follows.code  # which this module imports
