"""The judge of faults, on a project of one function and one test."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fault_files import Fault, StaleError, read_faults, span
from killing import Verdict, over_copies
from run import judge, matches
from tree_copies import TreeCopy

SOURCE = '''"""A package."""


class Sum:
    def of(self, a: int, b: int) -> int:
        if a > 100:
            return b + a
        return a + b


def of(a: int, b: int) -> int:
    return a + b
'''
TEST = """import svgpbench


def test_sum():
    assert svgpbench.Sum().of(1, 2) == 3
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> TreeCopy:
    """A copy of a small checkout; a file that git ignores and the results stay behind."""
    root = tmp_path_factory.mktemp("project")
    files = {
        "harness/svgpbench/__init__.py": SOURCE,
        "tests/test_sum.py": TEST,
        "results/large.json": "{}",
        "ignored/notes": "",
        ".gitignore": "ignored/\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(("git", "init", "--quiet"), cwd=root, check=True)
    return TreeCopy.of(root, tmp_path_factory.mktemp("copy").resolve())


def fault(old: str, new: str, function: str = "Sum.of") -> Fault:
    return Fault(
        area="sums",
        file="harness/svgpbench/__init__.py",
        function=function,
        old=old,
        new=new,
        says=f"{old} becomes {new} | and so on",
        tests=("tests/test_sum.py",),
    )


@pytest.mark.parametrize(
    ("change", "status", "by"),
    [
        (fault("return a + b", "return a - b"), "killed", "tests/test_sum.py::test_sum"),
        (fault("return b + a", "return b - a"), "survived", ""),
        (fault("return a + b", "while True: pass"), "killed", "timeout"),
        (fault("a: int, b: int", "a, b=unknown"), "broken", "name 'unknown' is not defined"),
        (fault("return a * b", "return a"), "stale", "stands 0 times in Sum.of"),
        (fault("return", "raise"), "stale", "stands 2 times in Sum.of"),
        (fault("return a + b", "return a", "Product.of"), "stale", "Product.of is defined 0 times"),
    ],
    ids=lambda value: value.new if isinstance(value, Fault) else None,
)
def test_a_fault_is_killed_or_not(copy: TreeCopy, change: Fault, status: str, by: str) -> None:
    verdict = judge(copy, change, limit=6.0 if by == "timeout" else 60.0)
    assert (verdict.status, by in verdict.by) == (status, True), verdict
    assert (copy.folder / change.file).read_text() == SOURCE


def test_the_copy_is_what_is_imported_and_holds_the_records_that_tests_read(copy: TreeCopy) -> None:
    copy.check()
    assert (copy.folder / "results").is_dir()
    assert not (copy.folder / "ignored").exists()


def test_every_item_gets_its_own_verdict_and_no_copy_does_two_at_once(copy: TreeCopy) -> None:
    busy: set[Path] = set()

    def do(at: TreeCopy, item: int) -> Verdict:
        assert at.folder not in busy
        busy.add(at.folder)
        time.sleep(0.01)
        busy.remove(at.folder)
        return Verdict("killed", str(item))

    made = [copy, TreeCopy(copy.folder / "another")]
    found = dict(over_copies(made, range(8), do))
    assert {item: verdict.by for item, verdict in found.items()} == {i: str(i) for i in range(8)}


def test_a_function_of_a_class_is_not_the_one_of_the_module() -> None:
    assert span(SOURCE, "Sum.of") == (4, 8)
    assert span(SOURCE, "of") == (10, 12)
    with pytest.raises(StaleError, match="defined 0 times"):
        span(SOURCE, "Sum.of.a")


def test_tests_of_an_area_come_before_those_of_a_fault(tmp_path: Path) -> None:
    entry = "[[fault]]\nfile = 'a.py'\nfunction = ''\nold = 'a'\nnew = 'b'\nsays = 'c'\n"
    (tmp_path / "x.toml").write_text(f"tests = ['t.py', 'u.py']\n{entry}tests = ['v.py', 't.py']")
    (tmp_path / "y.toml").write_text(f"tests = ['t.py']\n{entry}")
    assert [(x.area, x.tests) for x in read_faults(tmp_path)] == [
        ("x", ("t.py", "u.py", "v.py")),
        ("y", ("t.py",)),
    ]


def test_faults_are_chosen_by_area_or_else_by_text() -> None:
    change = fault("a", "b")
    assert matches(change, "becomes b") and matches(change, "Sum.of")
    assert not matches(change, "batches")  # an area, which its file is not of
    assert matches(replace(change, area="batches"), "batches")


def test_a_verdict_on_another_fault_test_or_file_does_not_hold(tmp_path: Path) -> None:
    change = fault("a", "b")
    path = tmp_path / change.file
    path.parent.mkdir(parents=True)
    path.write_text("a")
    key = change.judged_as(tmp_path)
    assert change.judged_as(tmp_path) == key
    for other in (
        replace(change, new="c"),
        replace(change, tests=("x.py",)),
        replace(change, k=""),
    ):
        assert other.judged_as(tmp_path) != key
    path.write_text("a = 1")
    assert change.judged_as(tmp_path) != key
