"""A plugin that raises, leaves, lies or takes a name is one line, and takes nothing of the others down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guide import Guide, install_broken

from svgpbench.checks.cases import cases
from svgpbench.results.records import read_record, record_files

FILES = {
    "leaver": "raise SystemExit(0)\n",
    "liar": """
from svgpbench.methods.dual import DualSVGP
from svgpbench.kernels.kernels import Matern32
from svgpbench_backends.numpy_backend import NumpyOps
class Method(DualSVGP):
    name = "t-svgp"
class Ops(NumpyOps):
    name = "numpy"
class Bare(NumpyOps):
    name = "bare"
    capabilities = None
class Kernel(Matern32):
    name = "needy"
    def __init__(self, alpha):
        pass
class Aged(DualSVGP):
    name = "aged"
    version = "a"
class Unfit(DualSVGP):
    name = "unfit"
    def e_step(self, ops, *rest, **options):
        return self.shapeless(ops)
    def shapeless(self, ops):
        raise ValueError("a shape")
class Wavering(DualSVGP):
    name = "wavering"
    def refuses(self, likelihood):
        raise LookupError(likelihood)
def environment(device, threads):
    raise OSError("no licence")
""",
    "frame": """
from svgpbench.ops import Framework
def environment(device, threads):
    raise OSError("no licence")
LOUD = Framework(module="json", install="json", environment=environment)
""",
}
POINTS = """
[svgpbench.methods]
leaver = leaver:Method
liar = liar:Method
wavering = liar:Wavering
aged = liar:Aged
unfit = liar:Unfit
q-svgp = liar:Method
[svgpbench.backends]
liar = liar:Ops
bare = liar:Bare
[svgpbench.kernels]
needy = liar:Kernel
[svgpbench.frameworks]
loud = frame:LOUD
"""
OF = "of package odd 2.1"
SHAKY = "'shaky' of package shaky 0.3 cannot be loaded: RuntimeError: needs libshaky 7"


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    info = tmp_path / "odd-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text(POINTS)
    install_broken(tmp_path)
    return Guide(tmp_path, "add-a-likelihood.md", "add-a-kernel.md")


def said_of(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["name"]: row["about"] for row in rows if OF in row["about"]}


def test_each_is_listed_with_its_package_and_the_reason_beside_all_others(guide: Guide) -> None:
    done, of_methods = guide.run_each(["list", "--json"], ["list", "methods"])
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    for section, other in (
        ("methods", "t-svgp"),
        ("likelihoods", "logistic"),
        ("kernels", "matern52"),
        ("inducing", "k-means"),
        ("backends", "numpy"),
        ("datasets", "airfoil"),
    ):
        rows = {row["name"]: row for row in listed[section]}
        assert SHAKY in rows["shaky"]["about"], section
        assert other in rows
    assert " ".join(of_methods.stdout.split()).count(SHAKY) == 1
    assert said_of(listed["methods"]) == {
        "leaver": f"method 'leaver' {OF} cannot be loaded: SystemExit: 0",
        "liar": f"method 'liar' {OF} cannot be used: it calls itself 't-svgp'; "
        "`name` must be that of its entry point",
        "aged": f"method 'aged' {OF} cannot be used: its `version` is 'a'; "
        "give a whole number, raised when numbers change",
        "q-svgp": f"method 'q-svgp' {OF} takes no part: the name is taken by package svgpbench",
    }
    backends = said_of(listed["backends"])
    assert backends["liar"].endswith(
        "it calls itself 'numpy'; `name` must be that of its entry point"
    )
    assert backends["bare"].endswith(
        "cannot be used: its `capabilities` name no mode, dtype or device"
    )
    assert "cannot be loaded: TypeError" in said_of(listed["kernels"])["needy"]
    names = [row["name"] for row in listed["methods"]]
    assert names.count("q-svgp") == 2 and "t-svgp" in names
    (wavering,) = [row for row in listed["methods"] if row["name"] == "wavering"]
    assert list(wavering["refused"]) == ["asked whether it can, it raises LookupError"]


def test_others_run_beside_them_and_the_record_says_what_was_loaded(guide: Guide) -> None:
    done = guide.run("run", "rivers.toml", "--backend", "numpy")
    assert done.returncode == 0, done.stderr
    record = read_record(record_files(guide.folder / "runs")[0])
    assert record.environment is not None
    assert set(record.environment.plugins) == {
        "initialisation of inducing inputs 'along-column' of package rivers 1.0",
        "kernel 'rational-quadratic' of package rivers 1.0",
        "likelihood 'logistic' of package rivers 1.0",
    }
    assert record.environment.versions["odd"] == "2.1"


def test_the_doctor_names_them_and_finds_nothing_wrong_with_the_rest(guide: Guide) -> None:
    done = guide.run("doctor", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    shaky = [one for one in rows if one["what"] == "shaky"]
    assert {one["state"] for one in shaky} == {"missing"}
    assert all(SHAKY in one["found"] for one in shaky)
    assert {one["found"].partition(" 'shaky'")[0] for one in shaky} >= {"method", "backend"}
    found = {one["found"] for one in rows if OF in one["found"]}
    assert len([line for line in found if "'leaver'" in line]) == 1
    assert f"framework 'loud' {OF} cannot be loaded: OSError: no licence" in found


ASKED_FOR = {
    "method": ('name = "t-svgp"', 'name = "shaky"'),
    "kernel": ('name = "rational-quadratic"\nalpha = 0.5', 'name = "shaky"'),
    "initialisation": ('init = "along-column"\ncolumn = 2', 'init = "shaky"'),
    "likelihood": ('{ name = "logistic", rate = 3.0 }', '{ name = "shaky", rate = 3.0 }'),
    "backend": ('["numpy", "torch"]', '["shaky"]'),
    "liar": ('name = "t-svgp"', 'name = "liar"'),
}


def test_asked_for_by_name_each_is_one_line(guide: Guide) -> None:
    files = [
        guide.changed("rivers.toml", change, to=f"{kind}.toml")
        for kind, change in ASKED_FOR.items()
    ]
    commands = [
        *(["run", file] for file in files),
        ["speed", "--method", "leaver"],
        ["check", "--backend", "liar"],
        ["cost", "leaver"],
        ["speed", "--method", "shaky"],
        ["check", "--backend", "shaky"],
        ["cost", "shaky"],
    ]
    for words, done in zip(commands, guide.run_each(*commands), strict=True):
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert (SHAKY in done.stderr) != (OF in done.stderr), done.stderr
        assert (OF in done.stderr) == bool({"leaver", "liar", "liar.toml"} & set(words))
        assert words[0] != "run" or done.stderr.startswith(f"error: {words[1]}: ")


def test_a_cell_that_raises_in_one_says_at_which_line(guide: Guide) -> None:
    unfit = guide.changed("rivers.toml", ('name = "t-svgp"', 'name = "unfit"'), to="unfit.toml")
    guide.run("run", unfit, "--backend", "numpy")
    files = record_files(guide.folder / "runs")
    assert files
    for record in map(read_record, files):
        at = FILES["liar"].splitlines().index('        raise ValueError("a shape")') + 1
        assert (record.status, record.message) == ("error", f"ValueError: a shape (liar.py:{at})")
        assert "in shapeless" in record.traceback


def test_a_name_of_ours_stays_ours_and_its_turn_stays_the_same(guide: Guide) -> None:
    (guide.folder / "odd-2.1.dist-info" / "entry_points.txt").write_text("")
    (guide.folder / "shaky.py").write_text(
        "from svgpbench.methods.dual import DualSVGP\n"
        "class methods(DualSVGP):\n    name = 'a-first'\n"
    )
    points = "[svgpbench.methods]\na-first = shaky:methods\nq-svgp = shaky:methods\n"
    (guide.folder / "shaky-0.3.dist-info" / "entry_points.txt").write_text(points)
    program = "from svgpbench.checks.cases import cases; print(*cases(full=False), sep='\\n')"
    ours = [str(case) for case in cases(full=False)]
    found = guide.run(program=program).stdout.splitlines()
    usual, compounds = ours[:-3], ours[-3:]  # sums and products of kernels come last
    assert (found[: len(usual)], found[-3:]) == (usual, compounds)
