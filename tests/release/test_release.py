"""What a release needs: one version and date, recipes that fit, and a try that notices what is broken."""

from __future__ import annotations

import hashlib
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from conda_recipe import conda, recipe
from try_distributions import commands, documented_adapter, try_distribution

from svgpbench.papers import paper_folders

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / "pyproject.toml", ROOT / "reference/pyproject.toml"]


def test_version_and_date_are_the_same_everywhere() -> None:
    versions = {tomllib.loads(x.read_text("utf-8"))["project"]["version"] for x in PACKAGES}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = re.search(r"^## (\S+) \((.+)\)$", changes, re.MULTILINE)
    assert heading is not None
    assert versions == {citation["version"]} == {heading[1]}
    # neither has a date before the release
    assert str(citation.get("date-released", "unreleased")) == heading[2]


@pytest.mark.parametrize("pyproject", PACKAGES, ids=lambda path: path.parent.name)
def test_a_recipe_has_the_requirements_and_the_checksum(pyproject: Path, tmp_path: Path) -> None:
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    sdist = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.tar.gz"
    sdist.write_bytes(b"an sdist")
    found = yaml.safe_load(yaml.safe_dump(recipe(pyproject, tmp_path)))
    assert found["source"]["sha256"] == hashlib.sha256(b"an sdist").hexdigest()
    assert found["source"]["url"].endswith(f"/{project['name']}/{sdist.name}")
    assert len(found["requirements"]["run"]) == 1 + len(project["dependencies"])
    assert found["context"]["python_min"] == "3.11"
    (pyproject.parent / found["about"]["license_file"][0]).read_text("utf-8")


def test_the_wheel_has_our_packages_alone() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    find = pyproject["tool"]["setuptools"]["packages"]["find"]
    folders = [x.name for where in find["where"] for x in (ROOT / where).iterdir() if x.is_dir()]
    assert "scripts" in folders
    names = [x for x in folders if x.isidentifier()]
    found = {x for x in names if any(fnmatch(x, pattern) for pattern in find["include"])}
    assert found == {"svgpbench", "svgpbench_backends", "svgpbench_datasets", "svgpbench_papers"}


def test_a_requirement_is_written_as_conda_writes_it() -> None:
    assert conda("matplotlib>=3.9") == "matplotlib-base >=3.9"
    with pytest.raises(ValueError, match="write its line by hand"):
        conda("tensorflow-cpu>=2.18; python_version < '3.14'")


def test_both_distributions_of_both_packages_are_published() -> None:
    publish = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text("utf-8"))
    built = str(publish["jobs"]["wheel"])
    for pyproject in PACKAGES:
        folder = pyproject.parent.relative_to(ROOT)
        assert f"python -m build --outdir dist {folder}" in built
    assert publish["jobs"]["pypi"]["permissions"] == {"id-token": "write"}  # no token is kept


def test_the_paper_counts_claims_as_the_readme_does() -> None:
    rows = re.findall(
        r"^\| (theory|experiments|speed) \|(.+)\|$", (ROOT / "README.md").read_text("utf-8"), re.M
    )
    counts = {name: [int(x.strip() or 0) for x in row.split("|")] for name, row in rows}
    (theory, experiments, speed), words = (
        counts.values(),
        ("no", "one", "two", "three", "four", "five", "six"),
    )
    text = " ".join((ROOT / "paper/paper.md").read_text("utf-8").split())
    holds, corrected = theory[:2]
    papers = words[len(paper_folders()) - 1]  # one is a repository of results
    assert f"grades {sum(map(sum, counts.values()))} of their claims" in text
    assert (
        f"Of the {sum(theory)} theoretical claims of the {papers} papers, {holds + corrected} hold"
        in text
    )
    assert f"{corrected} of them after an erratum" in text
    assert f"Of {sum(experiments)} claims about experiments, {experiments[0]} hold and" in text
    assert f"{experiments[3]} hold in some cases only; {words[experiments[2]]} has" in text
    assert (
        f"{words[experiments[5]]} cannot be decided by the runs, and {words[experiments[6]]}"
        in text
    )
    assert not speed[0] and f"Of {words[sum(speed)]} claims about speed none holds" in text


def test_the_adapter_of_the_page_is_what_a_release_is_tried_with() -> None:
    names: dict[str, object] = {}
    exec(documented_adapter(), names)  # noqa: S102
    assert {"build", "bound", "predict"} <= names.keys()
    assert commands("svgp-reference")[0][-1] == "adapter.py"


def test_a_file_that_is_no_distribution_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="neither a wheel nor an sdist"):
        try_distribution(tmp_path / "svgpbench-0.1.0.zip")
