"""The registry loads only what it declares, and says which name or file is wrong."""

from __future__ import annotations

import lzma
import os
import shutil
import tomllib
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest
from interpreter import python

from svgpbench_datasets import REGISTRY, DataError, DataFile, DatasetEntry, Registry

PACKAGE = Path(str(files("svgpbench_datasets")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the registry and its files, free to be damaged."""
    (tmp_path / "registry").mkdir()
    for name in ("registry.toml", "registry/generated.toml"):
        shutil.copy(PACKAGE / name, tmp_path / name)
    shutil.copytree(PACKAGE / "data", tmp_path / "data")
    return tmp_path


def replace(folder: Path, old: str, new: str) -> None:
    files = (folder / "registry.toml", folder / "registry" / "generated.toml")
    file = next(file for file in files if old in file.read_text(encoding="utf-8"))
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_names_list_each_data_set_followed_by_its_variants() -> None:
    names = REGISTRY.names()
    assert names[:9] == (
        "airfoil",
        "airfoil:processed",
        "boston",
        "boston:no-rad",
        "boston:processed",
        "concrete",
        "concrete:5",
        "concrete:processed",
        "concrete:xls",
    )
    for name in names:
        base, _, variant = name.partition(":")
        assert names.index(base) <= names.index(name)
        assert not variant or names[names.index(name) - 1].partition(":")[0] in (base, "diabetes")


def test_every_set_of_the_papers_is_declared() -> None:
    adam = {"airfoil", "boston", "concrete", "sonar", "ionosphere", "pima", "diabetes", "banana"}
    regression = {"bike", "elevators", "gas", "houseelectric", "keggdirected", "keggundirected"}
    regression |= {"kin40k", "pol", "protein", "slice", "song", "buzz", "tamielectric", "3droad"}
    classes = {"adult", "chess-krvk", "connect-4", "letter", "magic", "miniboone", "mushroom"}
    classes |= {"nursery", "page-blocks", "pendigits", "ringnorm", "statlog-landsat"}
    classes |= {"statlog-shuttle", "thyroid", "twonorm", "wall-following", "waveform"}
    classes |= {"waveform-noise", "wine-quality-white-classes", "bank", "optical", "chess-krvkp"}
    others = {"naval", "naval:turbine", "mnist", "kin8nm", "pumadyn32nm", "sarcos", "kuka"}
    others |= {"mujoco", "wine-quality-white"}
    assert adam | regression | classes | others <= set(REGISTRY.names())


def test_a_leaky_variant_is_never_the_default() -> None:
    for name in REGISTRY.names():
        entry = REGISTRY.describe(name)
        assert entry.leaks == entry.title.startswith("LEAKY") == (entry.leaks and ":" in name)
        if entry.leaks:
            base = REGISTRY.describe(name.partition(":")[0])
            more = set(entry.features) > set(base.features) or "row" in entry.features
            assert more or len(entry.features) > len(base.features)
        else:
            assert "row" not in entry.features


def test_a_second_name_is_the_same_data_set() -> None:
    assert REGISTRY.load("diabetes").fingerprint == REGISTRY.load("pima").fingerprint
    assert REGISTRY.describe("diabetes").title == "another name of pima"


def test_a_declared_file_lies_in_one_place_only() -> None:
    contents: dict[str, str] = {}
    for name in REGISTRY.names():
        for file in REGISTRY.describe(name).files:
            if isinstance(file, DataFile):
                assert contents.setdefault(file.path, file.sha256) == file.sha256
                assert not file.addresses or file.bytes


def test_describe_tells_what_a_user_should_know() -> None:
    entry = REGISTRY.describe("boston:no-rad")
    assert isinstance(entry, DatasetEntry)
    assert entry.name == "boston:no-rad"
    assert entry.target == "MEDV"
    assert "RAD" in entry.columns
    assert "RAD" not in entry.features
    assert any("capped" in defect for defect in entry.defects)
    for name in REGISTRY.names():
        described = REGISTRY.describe(name)
        places = ("http://", "https://", "none in a stable place", "generated: ", "made: ")
        assert described.upstream.startswith(places)
        assert described.upstream.startswith("generated: ") == (described.generated is not None)
        assert described.upstream.startswith("made: ") == (described.made is not None)
        if described.generated is not None:
            module, _, function = described.upstream.removeprefix("generated: ").rpartition(".")
            assert callable(getattr(import_module(module), function))
        assert described.licence
        assert described.citation


@pytest.mark.parametrize(
    ("name", "near"), [("bostn", "boston"), ("concrete:55", "concrete:5"), ("Banana", "banana")]
)
def test_an_unknown_name_suggests_the_nearest_and_lists_all(name: str, near: str) -> None:
    with pytest.raises(DataError) as caught:
        REGISTRY.load(name)
    message = str(caught.value)
    assert message.startswith(f"unknown data set {name!r}; did you mean {near!r}? (known: airfoil")
    assert "\n" not in message


def test_importing_the_registry_reads_no_file_and_no_heavy_module() -> None:
    program = (
        "import sys, lzma, tomllib\n"
        "def refuse(*arguments): raise SystemExit('a file was read at import')\n"
        "lzma.decompress = tomllib.loads = tomllib.load = refuse\n"
        "import svgpbench_datasets.registry\n"
        "heavy = {'pandas', 'pyarrow', 'scipy', 'svgpbench', 'svgpbench_backends'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = python("-c", program, env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("[]", "", 0)


def test_a_changed_byte_in_a_shipped_file_is_refused(folder: Path) -> None:
    path = folder / "data" / "housing.data.xz"
    raw = lzma.decompress(path.read_bytes())
    path.write_bytes(lzma.compress(raw.replace(b"24.00", b"24.01", 1)))
    with pytest.raises(DataError, match=r"housing\.data\.xz has changed: sha256"):
        Registry(folder).load("boston")


def test_a_changed_number_with_a_matching_file_hash_is_refused(folder: Path) -> None:
    entry = REGISTRY.describe("boston")
    replace(folder, entry.fingerprint, "sha256:" + "1" * 64)
    with pytest.raises(DataError, match="'boston' does not hold the declared numbers"):
        Registry(folder).load("boston")
    assert Registry(folder).load("boston:no-rad").fingerprint != entry.fingerprint


def test_the_fingerprint_of_a_new_set_is_named(folder: Path) -> None:
    entry = REGISTRY.describe("boston")
    replace(folder, entry.fingerprint, "sha256:" + "0" * 64)
    says = f"'boston': its registry has a fingerprint of zeros; write {entry.fingerprint} in their"
    with pytest.raises(DataError, match=says):
        Registry(folder).load("boston")


@pytest.mark.parametrize("damage", [b"", b"not xz", b"\xfd7zXZ\x00\x00", None])
def test_a_damaged_or_missing_shipped_file_is_named(folder: Path, damage: bytes | None) -> None:
    path = folder / "data" / "sonar.all-data.xz"
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises(DataError, match=r"sonar\.all-data\.xz cannot be read|has changed"):
        Registry(folder).load("sonar")


def test_a_wrong_row_count_is_refused(folder: Path) -> None:
    replace(folder, "rows = 208", "rows = 207")
    with pytest.raises(DataError, match=r"sonar\.all-data\.xz has 208 rows where 207"):
        Registry(folder).load("sonar")


def test_a_label_outside_the_mapping_is_refused(folder: Path) -> None:
    replace(folder, "labels = { R = 0, M = 1 }", "labels = { R = 0, X = 1 }")
    with pytest.raises(DataError, match=r"'M', which is not among the labels R, X"):
        Registry(folder).load("sonar")


SPLIT = "split_cells = { day = ['/',"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rows = 208", "rows = 208\ncolour = 1", r"\[sonar\] unknown key 'colour'; did"),
        ("rows = 208", "rows = -1", r"\[sonar\] rows: Input should be greater than 0"),
        (
            'target = "label"',
            'target = "lable"',
            r"\[sonar\] not among the columns band_01, ",
        ),
        ("licence =", "license =", r"\[\w+\] unknown key 'license'; did you mean 'licence'\?$"),
        ("licence =", "# licence =", r"\[\w+\] missing key 'licence'$"),
        (
            'url = "http',
            'url = "ftp',
            r"\[airfoil:processed\] files\[0\]\.addresses\[0\]\.url: 'ftp.*' does not begin with http:// or",
        ),
        ("labels = { R = 0, M = 1 }", "", "labels belong to classification"),
        ("labels = { R = 0, M = 1 }", "labels = { R = 0, M = 0 }", "labels must be numbered"),
        ("labels = { R = 0, M = 1 }", "labels = { R = 0 }", "labels must be numbered"),
        ("labels = { R = 0, M = 1 }", 'classes = "2"', r"\[sonar\] unknown key 'classes'"),
        (
            'target = "label"',
            'target = ["label"]',
            r"\[sonar\] target: Input should be a valid str",
        ),
        ('outputs = ["y1', 'outputs = 3 # ["y1', r"\] outputs: Input should be a valid tuple"),
        ("[sonar.variants.jmlr]", "[sonar.variants]\njmlr = 3\n[x]", r"\[sonar:jmlr\] is not a ta"),
        ('aliases = ["diabetes"]', 'aliases = "diabetes"', r"\[pima\] aliases: give a list of"),
        (
            'path = "sonar.all-data.xz"',
            'path = "a/../x"',
            r"\[sonar\] files\[0\]\.path: String should m",
        ),
        (
            'path = "sonar.all-data.xz"',
            'path = ".locks/x"',
            r"\[sonar\] files\[0\]\.path: String should m",
        ),
        (
            "rows = 208",
            f"rows = 208\n{SPLIT} ['band_01', 'band_03']] }}",
            "'day' do not stand side",
        ),
        (
            "rows = 208",
            f"rows = 208\n{SPLIT} ['band_00', 'band_01']] }}",
            "'day' do not stand side",
        ),
        ("rows = 208", f"rows = 208\n{SPLIT} []] }}", "'day' do not stand side"),
        ("[sonar]", "[odd]\nvariants = 3\n[sonar]", r"\[odd\] variants: give a table of variants"),
        ('"CRIM",', '"CRIM", "CRIM",', "a column is named twice"),
        (
            'name = "sinusoid"',
            'name = "sinus"',
            r"no generator 'sinus' \(known: sinusoid, .*, gp-sample, sinc, ",
        ),
        ('generated = { name = "sinusoid", seed = 0 }', "", "either files with a reader, or"),
        ('reader = "csv"\nrows = 208', "rows = 208", "either files with a reader, or"),
    ],
)
def test_an_entry_that_is_not_of_the_form_is_refused(
    folder: Path, old: str, new: str, message: str
) -> None:
    replace(folder, old, new)
    with pytest.raises(DataError, match=message) as caught:
        Registry(folder).names()
    assert "\n" not in str(caught.value)


def test_a_registry_that_is_not_toml_is_refused(folder: Path) -> None:
    (folder / "registry.toml").write_text("[boston", encoding="utf-8")
    with pytest.raises(DataError, match=r"registry\.toml cannot be read"):
        Registry(folder).names()


def test_the_declaration_is_plain_toml() -> None:
    declared = tomllib.loads((PACKAGE / "registry.toml").read_text(encoding="utf-8"))
    assert set(declared["banana"]["variants"]) == {"full"}


def test_a_name_declared_in_two_files_is_refused(folder: Path) -> None:
    shutil.copy(PACKAGE / "registry" / "mnist.toml", folder / "registry")
    assert Registry(folder).names()[-1] == "mnist"
    shutil.copy(PACKAGE / "registry" / "mnist.toml", folder / "registry" / "other.toml")
    with pytest.raises(DataError, match=r"other\.toml: \[mnist\] is declared twice"):
        Registry(folder).names()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "parts = [60000, 10000]",
            "parts = [60000, 1000]",
            "parts of 61000 rows in all where 70000",
        ),
        ("parts = [60000, 10000]", "parts = [60000, 5000, 5000]", "4 files cannot make 3 parts"),
        ("train_rows = 60000", "train_rows = 70000", "train_rows leaves no test row"),
        ("train_rows = 60000", "train_rows = 60000, count = 2", "leave count out"),
        ("{ train_rows = 60000 }", "{ count = 2 }", "give either train_rows or masks"),
        ("pixel783", "pixel99999", "names no columns"),
        ("skip_lines = 0", "skip_lines = [0]", "skip_lines for 1 files where 4"),
        (
            'fingerprint = "',
            '# "',
            r"give a fingerprint \(zeros, then the one that `svgpbench data show`",
        ),
        ('fingerprint = "', 'unseen = true\nfingerprint = "', "unseen numbers have no fingerprint"),
    ],
)
def test_parts_splits_and_pins_are_checked(folder: Path, old: str, new: str, message: str) -> None:
    text = (PACKAGE / "registry" / "mnist.toml").read_text(encoding="utf-8")
    text = text.replace('reader = "idx"', 'reader = "idx"\nskip_lines = 0')
    assert old in text
    (folder / "registry" / "mnist.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        Registry(folder).names()
    assert str(caught.value).startswith("mnist.toml: [mnist]")
