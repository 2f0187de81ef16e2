"""The four papers are whole; a mistake in a paper's folder is one line with the file and the key."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from another_paper import fifth_paper, installed

from svgpbench.errors import UserError
from svgpbench.papers import load_paper, paper_folders
from svgpbench.papers.loading import read_paper

CLAIMS = {
    "adam2021": 22,
    "cheng2017": 12,
    "cortinovis2026": 9,
    "kobe2021": 19,
    "pescador2026": 2,
    "salimbeni2018": 17,
    "titsias2025": 12,
}
"""How many claims of a paper there are at least."""


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_are_numbered_through(name: str) -> None:
    ids = [claim.id for claim in load_paper(name).claims]
    assert ids == [f"{name}-{number:02d}" for number in range(1, len(ids) + 1)]
    assert len(ids) >= CLAIMS[name]


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_tested_or_says_why_it_cannot_be(name: str) -> None:
    """But for one on learning curves, which no predicate reads."""
    for claim in load_paper(name).claims:
        assert claim.untestable or claim.core or claim.id == "adam2021-28", claim.id


@pytest.mark.parametrize("name", CLAIMS)
def test_what_a_number_claims_is_printed_in_its_artefacts(name: str) -> None:
    paper = load_paper(name)
    for claim in paper.claims:
        if claim.kind != "number":
            continue
        printed = [figure for figure in paper.printed if figure.artefact in claim.artefacts]
        assert printed, claim.id
        figures = {figure.value.lstrip("<>").lstrip("0") for figure in printed} - {""}
        claimed = set(re.findall(r"(?<![\d.])-?\d*\.\d+", claim.claim.replace("−", "-")))
        known = figures | {figure.spread.lstrip("0") for figure in printed}
        settings = {text for figure in printed for text in re.findall(r"\.\d+", figure.setting)}
        loose = {text for text in claimed if text.lstrip("0") not in known | settings | {"2.5"}}
        assert not loose, (claim.id, loose)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a paper to damage, with a claim of each kind."""
    copy = tmp_path / "adam2021"
    shutil.copytree(Path(str(paper_folders()["adam2021"])), copy)
    shutil.copyfile(Path(__file__).parent / "claims_of_each_kind.toml", copy / "claims.toml")
    return copy


def test_an_undamaged_copy_is_a_paper(folder: Path) -> None:
    assert len(read_paper(folder).claims) == 5


def test_a_byte_order_mark_before_printed_numbers_is_passed_over(folder: Path) -> None:
    path = folder / "printed" / "fig2.csv"
    path.write_bytes("\ufeff".encode() + path.read_bytes())
    assert read_paper(folder).printed


SAME = '\nparts = [\n  { key = "same", core = true, says = "it is", artefact ='
MISTAKES = [
    ("paper.toml", 'venue = "NeurIPS"', 'vneue = "NeurIPS"', "unknown key 'vneue'; did you mean 'venue'?"),
    ("paper.toml", 'venue = "NeurIPS"\n', "", "missing key 'venue'"),
    ("paper.toml", "year = 2021", 'year = "2021"', "year must be a"),
    ("paper.toml", 'id = "fig2"', 'id = "fig1"', "artefact 'fig1' is there 2 times"),
    ("paper.toml", '"adam2021-fig3"', '"adam2021-fig4"', "'fig3': unknown experiment 'adam2021-fig4'"),
    ("paper.toml", 'preset = "starts"', 'preset = "strats"', "did you mean 'starts'?"),
    ("paper.toml", "printed/fig2.csv", "printed/fig9.csv", "'fig2': printed: there is no file"),
    ("claims.toml", 'kind = "number"', 'kind = "figure"', "[[claims]] no. 2: kind must be"),
    ("claims.toml", "adam2021-02", "adam2021-01", "claim 'adam2021-01' is there 2 times"),
    ("claims.toml", '"adam2021-02"', '"kobe2021-02"', "its id must be adam2021- and two digits"),
    ("claims.toml", '["fig2"]', '["fig22"]', "'adam2021-02': unknown artefact 'fig22'; did you mean 'fig2'?"),
    ("claims.toml", 'metric = "elbo"', 'metric = "elbow"', "unknown measure 'elbow'; did you mean 'elbo'?"),
    ("claims.toml", '["t-SVGP", "q', '["t-SVPG", "q', "unknown method 't-SVPG'; did you mean 't-SVGP'?"),
    ("claims.toml", 'predicate = "ordering"', 'predicate = "order"', "'order'"),
    ("claims.toml", 'artefact = "fig3"', 'artefact = "fig2"', "part 1: unknown artefact of the claim 'fig2'"),
    ("claims.toml", "at_least = true", "at_leest = true", "unknown key 'at_leest'"),
    ("claims.toml", "[[claims]]", "[[claims]", "claims.toml is not well-formed TOML"),
    ("claims.toml", 'finding = "It is so."\n', "", "missing key 'finding'"),
    ("claims.toml", 'key = "same", core = true,', 'key = "same",', "no part of it is core; set core = true"),
    ("claims.toml", "erratum = true", "core = true, erratum = true", "a part is core or an erratum"),
    ("claims.toml", 'correction = "the sign"\n', "", "a correction needs a part with erratum = true"),
    ("claims.toml", "erratum = true, ", "", "a correction needs a part with erratum = true"),
    ("claims.toml", 'untestable = "the data have no names"\n', "", "no part of it is core"),
    ("claims.toml", 'says = "first", artefact = "table1"', 'core = true, says = "first", artefact = "table1"',
     "it is untestable and has a core part; leave one out"),
    ("claims.toml", "{same.value}", "{some.value}", "its finding names 'some', which is the key of none"),
    ("claims.toml", "{same.value}", "{same.valeu}", "a part has no 'valeu'"),
    ("claims.toml", "{same.value}", "{same}", "a brace that is no {key.field}"),
    ("claims.toml", "{same.value}", "{same.value:.2g3}", "{same.value:.2g3}: Invalid format specifier"),
    ("claims.toml", "{same.value}", "{same.held:.2f}", "{same.held:.2f}: Unknown format code 'f'"),
    ("printed/fig2.csv", "metric,value", "value,metric", "its header is artefact,setting,metric,value"),
    ("printed/fig2.csv", "iterations,2,", "iterations,two,", "line 2: value must be a number, got 'two'"),
    ("printed/fig2.csv", "fig2,optimum", "fig1,optimum", "line 5: artefact 'fig1' in the file of 'fig2'"),
    ("printed/fig2.csv", "θ,<1,", "θ,<1", "line 5: 4 values where the header has 5"),
]  # fmt: skip


MISTAKES += [
    ("paper.toml", 'kind = "training"', 'kind = "trainings"',
     "[[artefacts]] no. 11: evidence: unknown kind 'trainings'; did you mean 'training'?"),
    ("paper.toml", '"adam2021-fig3", preset = "starts"', '"adam2021-fig3", presets = "starts"',
     "unknown key 'presets' in [[artefacts]] no. 5: evidence; did you mean 'preset'?"),
    ("paper.toml", 'name = "paths"', 'name = "objectives"',
     "[[artefacts]] no. 3: figure 'objectives' is there 2 times; change the name"),
    ("claims.toml", 'artefacts = ["fig3"]\nparts = [\n  { core = true, says = "first", artefact = "fig3"',
     'artefacts = ["algebra"]\nparts = [\n  { core = true, says = "first", artefact = "algebra"',
     "predicate 'ordering' reads evidence of kind 'experiment', and that of artefact 'algebra' is of kin"),
    ("claims.toml", f'["algebra"]{SAME} "algebra"', f'["algebra", "fig3"]{SAME} "fig3"',
     "predicate 'identity' reads evidence of kind 'computed', and that of artefact 'fig3' is of kind 'exp"),
    ("claims.toml", 'predicate = "gain", than = "softmax10-M500"', 'predicate = "reaches", metric = "elbo"',
     "reads evidence of kind 'training', and that of artefact 'fig5' is of kind 'timing'; name another"),
    ("claims.toml", 'than = "softmax10-M500"', 'than = "softmax10-M5OO"',
     "part 1: unknown problem of the artefact 'softmax10-M5OO'; did you mean 'softmax10-M50'?"),
]  # fmt: skip


MISTAKES += [
    ("claims.toml", "E=4 M=1 @ 500", "E=4 M=1 @ 400", "adam2021-table1 is not traced there"),
    ("claims.toml", "E=4 M=1 @ 500", "E=4 M=1 @ end", "M=1 @ end': adam2021-table1 is not traced"),
    ("claims.toml", '"q-SVGP Adam 1E1M .040', '"q-SVGP Adam 1E1M .400',
     "unknown method 'q-SVGP Adam 1E1M .400 .05'; did you mean 'q-SVGP Adam 1E1M .040 .05'?"),
    ("claims.toml", "q-SVGP Adam 1E1M .040 .05", "t-SVGP 2E1M .030 .10",  # not of the preset
     "part 1: unknown method 't-SVGP 2E1M .030 .10'"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "message"), MISTAKES, ids=lambda text: text[:24])
def test_a_mistake_is_one_line_with_the_file_and_the_key(
    folder: Path, file: str, old: str, new: str, message: str
) -> None:
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_paper(folder)
    said = str(caught.value)
    assert message in said
    assert f"adam2021/{path.name}" in said or f"adam2021/{file}" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "printed = 0.304\nspread = 0.015",
            "printed = 0.314\nspread = 0.015",
            "printed = 0.314, where",
        ),
        (
            "printed = 0.304\nspread = 0.015\n",
            "printed = 0.304\n",
            "spread = 0, where the printed figures",
        ),
    ],
)
def test_a_part_judges_the_number_that_is_printed(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    folder = tmp_path / "adam2021"
    shutil.copytree(Path(str(paper_folders()["adam2021"])), folder)
    text = (folder / "claims.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "claims.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError, match=f"claim 'adam2021-17': part 1: {says}"):
        read_paper(folder)


@pytest.mark.parametrize("names", ["json.decoder:JSONDecoder", "json.decoder:FLAGS"])
def test_an_entry_that_names_no_package_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    installed(tmp_path / "site", names, monkeypatch)
    assert [*paper_folders()] == [*CLAIMS]
    says = "package of papers 'theirs' of package their-papers 1 cannot be used: it is no package; name one"
    with pytest.raises(UserError, match=f"unknown paper 'fifth2030'.*; {says}"):
        load_paper("fifth2030")


def test_a_fifth_paper_is_a_fifth_folder_of_any_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifth_paper("adam2021", tmp_path, monkeypatch)
    assert [*paper_folders()] == [*CLAIMS, "fifth2030"]
    assert load_paper("fifth2030").claims[0].id == "fifth2030-01"


def test_an_unknown_paper_names_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown paper 'adam2020'; did you mean 'adam2021'"):
        load_paper("adam2020")
