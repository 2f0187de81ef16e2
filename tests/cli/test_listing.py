"""`list`, `doctor` and `--version`: what they say, and that they import no framework."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Cli
from interpreter import python

import svgpbench
from svgpbench.cli import commands
from svgpbench.cli import list as listing
from svgpbench.cli.commands import COMMANDS
from svgpbench.likelihoods import likelihoods
from svgpbench_datasets import REGISTRY, Registry

VERSION = "from svgpbench.cli.application import exit_code; exit_code(['--version'])"
NO_FRAMEWORK = """
import sys
from svgpbench.cli.application import exit_code
from svgpbench.backends import known_backends
code = exit_code(sys.argv[1:])
known_backends(None)
loaded = {"jax", "torch", "tensorflow"} & set(sys.modules)
sys.exit(f"loaded {sorted(loaded)}" if loaded else code)
"""


@pytest.mark.parametrize(
    "arguments", [["list", "--json"], ["doctor", "--json"], ["cost", "t-svgp", "--json"]]
)
def test_json_parses_and_no_framework_is_imported(arguments: list[str]) -> None:
    done = python("-c", NO_FRAMEWORK, *arguments)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


@pytest.mark.parametrize(
    ("program", "slow"),
    [
        (f"{VERSION}; import svgpbench.cli.options", ["numpy", "pandas", "scipy"]),
        ("import svgpbench.api", ["jax", "torch", "tensorflow", "matplotlib", "scipy.stats"]),
    ],
)
def test_a_command_or_function_waits_for_no_other_s_imports(program: str, slow: list[str]) -> None:
    program += f"; import sys; sys.exit(' '.join({{*{slow}}} & set(sys.modules)) or 0)"
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


def test_help_names_every_command_in_turn_and_each_has_its_own(cli: Cli) -> None:
    lines = [line.split() for line in cli("--help").out.partition("Start:")[2].splitlines()]
    assert [words[0] for words in lines if words and words[0] in COMMANDS] == list(COMMANDS)
    for name in COMMANDS:
        assert f"Usage: svgpbench {name} " in cli(name, "--help").out
    assert "--install-completion" not in cli("data", "--help").out


@pytest.mark.parametrize("group", [(), ("data",)])
def test_no_summary_is_cut_at_eighty_columns(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, group: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = cli(*group, "--help").out
    assert "..." not in out.replace("[ARGS]...", "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    if not group:
        width = max(map(len, COMMANDS))
        assert {f"  {name:{width}}  {text}" for name, text in COMMANDS.items()} <= set(lines)


def test_every_command_has_a_group() -> None:
    files = Path(commands.__file__).parent.glob("*.py")
    named = {path.stem for path in files if f"def {path.stem}_command(" in path.read_text("utf-8")}
    assert named | {"data"} == set(COMMANDS)


def test_list_names_everything_that_there_is(cli: Cli) -> None:
    listed = json.loads(cli("list", "--json").out)
    names = {section: {row["name"] for row in rows} for section, rows in listed.items()}
    assert {"t-svgp", "q-svgp", "t-vgp", "q-vgp", "gpr", "sgpr"} <= names["methods"]
    assert {"numpy", "jax", "torch", "tensorflow"} <= names["backends"]
    assert {"airfoil", "boston:no-rad", "concrete:5"} <= names["datasets"]
    assert "adam2021-fig3" in names["experiments"]
    assert "matern52" in names["kernels"]
    assert "bernoulli-probit" in names["likelihoods"]


def test_list_of_one_section_shows_only_that(cli: Cli) -> None:
    out = cli("list", "kernels").out
    assert "matern52" in out
    assert "gaussian" not in out


def test_a_registry_with_a_mistake_hides_no_other(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "registry.toml").write_text("[harbour]\nrows = 3\n", encoding="utf-8")
    registries = {"svgpbench": REGISTRY, "theirs": Registry(tmp_path)}
    monkeypatch.setattr(listing, "load_all", lambda group: registries)
    rows = json.loads(cli("list", "datasets", "--json").out)["datasets"]
    assert {"airfoil", "theirs"} <= {row["name"] for row in rows}
    assert rows[-1]["about"].startswith(
        "cannot be used: registry.toml: [harbour] missing key 'title'"
    )
    assert "missing key" in cli("list", "datasets").out


def test_methods_are_listed_with_their_facts(cli: Cli) -> None:
    listed = json.loads(cli("list", "methods", "--json").out)["methods"]
    for row in listed:
        assert row["parameters a latent"] and row["E-step"] and row["memory"]
        assert isinstance(row["options"], dict)
        taken = row["likelihoods"]
        refused = [name for names in row["refused"].values() for name in names]
        assert sorted([*taken, *refused]) == sorted(likelihoods())
        assert all(row["refused"]), "a refusal needs its reason"
    assert {x["name"]: x for x in listed}["t-svgp"]["names in papers"]["adam2021"] == "t-SVGP"


def test_a_missing_framework_is_named_with_the_extra_to_install(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svgpbench.backends.importlib.util.find_spec", lambda name: None)
    assert "pip install 'svgpbench[torch]'" in cli("list", "backends").out
    assert "pip install 'svgpbench[torch]'" in cli("doctor").out
    refused = cli("run", "adam2021-fig3")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "pip install 'svgpbench[jax]'" in refused.err


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"svgpbench {svgpbench.__version__}\n"


def test_doctor_says_where_data_are_and_which_mirror_is_none(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("SVGPBENCH_MIRROR", raising=False)
    (found,) = [one for one in json.loads(cli("doctor", "--json").out) if one["what"] == "data"]
    shipped = sum(REGISTRY.describe(name).shipped for name in REGISTRY.names())
    assert found["found"].startswith(f"{shipped} of {len(REGISTRY.names())} sets at hand")
    assert str(tmp_path / "cache") in found["found"]
    monkeypatch.setenv("SVGPBENCH_MIRROR", str(tmp_path / "nowhere"))
    outcome = cli("doctor")
    assert outcome.code == 1
    assert "is neither a folder nor an http(s) address" in " ".join(outcome.out.split())
