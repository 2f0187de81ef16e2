"""Environments of peers: made on demand, complete or not there; candidates in environments of their own."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from svgpbench.benchmarks.timing import locate_peers, peers
from svgpbench.benchmarks.timing.peers import environments, known_peers, peer_python
from svgpbench.benchmarks.timing.peers.environments import (
    find_base_python,
    find_environment,
    make_environment,
)
from svgpbench.errors import UserError

PLUGIN = """
from pathlib import Path
from svgpbench.benchmarks.timing.peers import Peer
PEER = Peer("Little-Peer", "littlepeer", ("little_peer==1.0",), Path("script.py"), {}, "LITTLE_PYTHON")
STANDARD = Peer("standard", "json", (), Path("script.py"), {}, "STANDARD_PYTHON")
"""

POINTS = "little = littleplugin:PEER\nstandard = littleplugin:STANDARD\n"


def make_wheel(folder: Path, version: str) -> Path:
    """A pure-Python wheel."""
    info = f"little_peer-{version}.dist-info"
    wheel = folder / f"little_peer-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("littlepeer.py", f"VERSION = {version!r}\n")
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: little-peer\nVersion: {version}\n"
        )
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip installs from, and from nowhere else; environments go beside it."""
    folder = tmp_path / "index"
    folder.mkdir()
    make_wheel(folder, "1.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("SVGPBENCH_PEERS", str(tmp_path / "environments"))
    return folder


@pytest.fixture
def little_peer(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a peer of its own is installed."""
    site = tmp_path / "site"
    info = site / "littleplugin-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "littleplugin.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: littleplugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[svgpbench.peers]\n" + POINTS)
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.long
@pytest.mark.usefixtures("little_peer")
def test_a_candidate_is_timed_beside_the_release_in_an_environment_of_its_own(
    tmp_path: Path, index: Path
) -> None:
    wheel = make_wheel(tmp_path, "2.0rc1")
    lines: list[str] = []
    assert peer_python("little") is None
    found = locate_peers([f"little@{wheel}"], tell=lines.append)
    assert list(found) == ["little", "little@2.0rc1"]
    release, candidate = (where.python for where in found.values())
    assert release.parents[1] != candidate.parents[1]
    assert peer_python("little") == str(release)
    assert any(line.startswith("little: making its environment in ") for line in lines)
    assert any(line.startswith("little: Installing") for line in lines)

    lines.clear()  # what is there is taken as it is
    assert locate_peers([f"little@{wheel}"], tell=lines.append) == found
    assert lines == []

    other = make_wheel(tmp_path / "index", "2.0rc1")
    with zipfile.ZipFile(other, "a") as file:
        file.writestr("more.py", "")
    with pytest.raises(UserError, match="another candidate is little@2"):
        locate_peers([f"little@{wheel}", f"little@{other}"])


@pytest.mark.usefixtures("index")
def test_of_an_environment_that_cannot_be_made_nothing_is_left_and_why_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        UserError, match=r"no environment for peer 'little': .*littlepeer==9"
    ) as told:
        make_environment("little", ["littlepeer==9"], lambda line: None)
    assert "\n" not in str(told.value) and "--peer-python" in str(told.value)
    assert not [p for p in environments.environments_folder().iterdir() if p.is_dir()]

    def interrupted(name: str, command: Sequence[str], tell: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(environments, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_environment("little", ["littlepeer==9"], lambda line: None)
    assert not [p for p in environments.environments_folder().iterdir() if p.is_dir()]


def test_a_half_made_environment_is_made_again(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a process that was killed."""
    made: list[Sequence[str]] = []

    def run(name: str, command: Sequence[str], tell: object) -> None:
        made.append(command)
        python = Path(command[-1]) / "bin" / "python"
        if command[2] == "venv":
            python.parent.mkdir(parents=True)
            python.touch()

    monkeypatch.setattr(environments, "_run", run)
    python = make_environment("little", ["a==1"], lambda line: None)
    folder = python.parents[1]
    (folder / environments.COMPLETE).unlink()
    (folder / "left").touch()
    assert find_environment("little", ["a==1"]) is None
    assert make_environment("little", ["a==1"], lambda line: None) == python
    assert not (folder / "left").exists() and len(made) == 4
    assert find_environment("little", ["a==1"]) == python
    # another pin, another environment; another candidate at the same path too
    assert find_environment("little", ["a==2"]) is None
    assert find_environment("little", ["a==1"], "changed") is None


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.usefixtures("little_peer")
def test_a_candidate_that_is_neither_wheel_nor_folder_is_one_line(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDARD_PYTHON", sys.executable)
    path = tmp_path / "little.txt"
    if there:
        path.touch()
    with pytest.raises(UserError, match="no such wheel or source folder"):
        locate_peers([f"standard@{path}"])


@pytest.mark.parametrize("location", ["", "~no such user/little"])
@pytest.mark.usefixtures("little_peer")
def test_a_candidate_without_a_place_is_one_line(location: str) -> None:
    """An empty variable in a script would else time the release alone."""
    with pytest.raises(UserError, match="no such wheel or source folder"):
        locate_peers([f"standard@{location}"], sys.executable)


@pytest.mark.usefixtures("little_peer")
def test_a_python_given_for_no_peer_in_particular_serves_those_that_it_has() -> None:
    found = locate_peers(None, sys.executable)
    assert {n: where.python for n, where in found.items()} == {"standard": Path(sys.executable)}


@pytest.mark.long
def test_an_environment_keeps_to_the_versions_of_its_constraints(
    index: Path, tmp_path: Path
) -> None:
    make_wheel(index, "1.1")
    constraints = tmp_path / "little.txt"
    folders = set()
    for version in ("1.0", "1.1"):
        constraints.write_text(f"little_peer=={version}\n")
        python = make_environment(
            "little", ["little_peer"], lambda line: None, constraints=constraints
        )
        question = "import littlepeer; print(littlepeer.VERSION)"
        assert subprocess.check_output([python, "-c", question], text=True).strip() == version
        folders.add(python)
    assert len(folders) == 2


def test_the_python_of_an_environment_has_a_version_that_the_peer_supports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert find_base_python(()) == find_base_python(("3.0", here)) == sys.executable
    for version in ("3.0", "3.1"):
        program = tmp_path / f"python{version}"
        program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_base_python(("3.1", "3.0")) == str(tmp_path / "python3.1")
    assert find_base_python(("3.2",)) is None


@pytest.mark.usefixtures("little_peer")
def test_a_peer_without_a_python_on_path_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_base_python", lambda versions: None)
    assert peer_python("little") is None
    with pytest.raises(UserError, match=r"peer 'little' runs on Python .+--peer-python") as told:
        locate_peers(["little"])
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["gpflow", "gpytorch", "gpjax"])
def test_constraints_pin_every_requirement_of_a_peer(name: str) -> None:
    peer = known_peers()[name]
    assert peer.constraints is not None and peer.pythons
    lines = map(Requirement, peer.constraints.read_text("utf-8").splitlines())
    pins = {canonicalize_name(pin.name): pin for pin in lines}
    assert all(str(pin.specifier).startswith("==") for pin in pins.values())
    for requirement in map(Requirement, peer.requirements):
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(str(pin.specifier).removeprefix("=="))


def test_a_folder_that_is_no_folder_is_told_with_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SVGPBENCH_PEERS", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"file: .+ name another folder in SVGPBENCH_PEERS"):
        make_environment("little", ["a==1"], lambda line: None)
