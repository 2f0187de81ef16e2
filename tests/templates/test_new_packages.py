"""`svgpbench new`: what it writes installs, is listed, and passes its own tests as written."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from svgpbench.cli import new
from svgpbench.cli.application import exit_code

sys.path.insert(0, str(Path(__file__).parents[1] / "strangers"))
from installed import Place

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "harness" / "svgpbench" / "templates"
NAMES = {
    "backend": "my-slate",
    "method": "tempered",
    "likelihood": "far-laplace",
    "dataset": "old-cars",
    "paper": "writer2030",
}
RUFF = Path(sys.executable).with_name("ruff")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A package of every kind, all of them installed."""
    folder = tmp_path_factory.mktemp("new")
    for kind, name in NAMES.items():
        assert exit_code(["new", kind, name, "--out", str(folder)]) == 0
    return Place(folder, *(folder / name for name in NAMES.values()))


@pytest.fixture(scope="module")
def listed(place: Place) -> Any:
    return place.json("list")


@pytest.fixture(scope="module")
def ran(place: Place) -> str:
    """What pytest says of all of their tests."""
    plain = ("-m", "pytest", "-q", "-rA", "-p", "no:xdist", "-p", "no:cacheprovider")
    return place.python(*plain, *(str(place.folder / name) for name in NAMES.values())).stdout


@pytest.mark.parametrize("kind", NAMES)
def test_its_own_tests_pass_as_written(ran: str, kind: str) -> None:
    module = NAMES[kind].replace("-", "_")
    ends = re.findall(rf"^(PASSED|FAILED|ERROR|SKIPPED).*/test_{module}\.py::", ran, re.MULTILINE)
    assert ends and set(ends) == {"PASSED"}, ran[-5000:]


@pytest.mark.parametrize("kind", ["backend", "method", "likelihood", "dataset"])
def test_it_is_listed(listed: Any, kind: str) -> None:
    assert NAMES[kind] in {row["name"] for row in listed[f"{kind}s"]}


def test_a_paper_s_claims_are_listed(place: Place) -> None:
    done = place.run("claims", "--paper", NAMES["paper"])
    assert done.returncode == 0, done.stderr
    assert "writer2030-01" in done.stdout


def test_a_package_names_in_pyproject_what_it_has(place: Place) -> None:
    for name in NAMES.values():
        folder = place.folder / name
        tools = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
        modules = {f"{module}.py" for module in tools.get("py-modules", ())}
        found = modules | set(tools.get("packages", ()))
        tests = {path.name for path in folder.glob("test_*.py")}
        there = {path.name for path in folder.iterdir() if path.name[0] not in "._"}
        assert len(tests) == 1
        assert there == tests | {"README.md", "pyproject.toml", "src"}
        assert {path.name for path in (folder / "src").iterdir() if path.name[0] != "_"} == found
        for package, patterns in tools.get("package-data", {}).items():
            data = {
                path for pattern in patterns for path in (folder / "src" / package).glob(pattern)
            }
            files = {
                path for path in (folder / "src" / package).rglob("*.*") if path.suffix in DATA
            }
            assert files <= data


DATA = {".toml", ".csv", ".xz"}


# as in site-packages: what is installed comes after the folder of the script
SCRIPT = """
import site

site.addsitedir("installed")
from svgpbench.plugins import load, paper_folders, registry_of

for kind in ("backend", "method", "likelihood"):
    print(load(f"svgpbench.{kind}s", f"my{kind}").__name__)
print(registry_of("mydataset").load("mydataset").y.sum())
print(paper_folders()["mypaper"].name)
"""


def test_a_script_beside_the_folders_uses_the_plugins(tmp_path: Path) -> None:
    """Without a hyphen in a name, Python could take the folder itself for a namespace package."""
    names = [f"my{kind}" for kind in NAMES]
    for kind, name in zip(NAMES, names, strict=True):
        assert exit_code(["new", kind, name, "--out", str(tmp_path)]) == 0
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    editable = [word for name in names for word in ("--editable", f"./{name}")]
    (tmp_path / "script.py").write_text(SCRIPT)
    for command in ([*install, "--target", "installed", *editable], ["script.py"]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    used = ["MybackendOps", "MymethodMethod", "MylikelihoodLikelihood", "2149.0", "mypaper"]
    assert done.stdout.split() == used


@pytest.mark.parametrize("kind", NAMES)
def test_what_is_written_is_linted_and_formatted(place: Place, kind: str) -> None:
    folder = place.folder / NAMES[kind]
    rules = ("--select", "E,F,W,I,B,UP,SIM", "--config", f"src=['{folder}/src']")
    for command in (("check", *rules), ("format", "--check", "--diff")):
        done = subprocess.run(
            [RUFF, *command, "--no-cache", "--line-length", "100", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_template_comes_with_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["svgpbench"]
    shipped = {path for pattern in patterns for path in TEMPLATES.parent.glob(pattern)}
    files = {path for path in TEMPLATES.rglob("*") if path.is_file()}
    assert files and files <= shipped
    assert {path.name for path in TEMPLATES.iterdir()} == {str(kind) for kind in new.PluginKind}


MISTAKES = [
    (("method", "Tides"), "'Tides' names no package"),
    (("method", "1tide"), "'1tide' names no package"),
    (("method", "tides_low"), "names no package"),
    (("method", "tides--low"), "names no package"),
    (("method", "tides/low"), "names no package"),
    (("method", ""), "names no package"),
    (("method", "lambda"), "a word of Python's own"),
    (("method", "numpy"), "there is a module 'numpy' already"),
    (("method", "t-svgp"), "there is a method 't-svgp' already"),
    (("dataset", "airfoil"), "there is a dataset 'airfoil' already"),
    (("paper", "adam2021"), "there is a paper 'adam2021' already"),
    (("kernel", "tides"), "kernel"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES)
def test_a_name_that_does_not_fit_is_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert exit_code(["new", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert said in error
    assert list(tmp_path.iterdir()) == []


def refused(capsys: pytest.CaptureFixture[str], folder: Path) -> str:
    assert exit_code(["new", "method", "tides", "--out", str(folder)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_a_folder_that_is_there_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tides").mkdir()
    assert "tides is there already" in refused(capsys, tmp_path)
    assert list((tmp_path / "tides").iterdir()) == []
    (tmp_path / "tides").rmdir()
    (tmp_path / "tides").symlink_to(tmp_path / "nowhere")
    assert "tides is there already" in refused(capsys, tmp_path)


def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot write" in refused(capsys, tmp_path / "file")


def test_a_disk_that_is_full_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write, written = Path.write_bytes, []

    def full(path: Path, raw: bytes) -> int:
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(path)
        return write(path, raw)

    monkeypatch.setattr(Path, "write_bytes", full)
    assert "cannot write" in refused(capsys, tmp_path)
    assert len(written) == 2
    assert list(tmp_path.iterdir()) == []
