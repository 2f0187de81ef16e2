"""Skips that are not listed, or not due, fail a session; those that are, it counts."""

from __future__ import annotations

from pathlib import Path

import listed_skips
import pytest
from listed_skips import CONDITIONS, Listed, read_listed

pytest_plugins = ["pytester"]

CONFTEST = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from listed_skips import Listed, SkipsAreListed

LISTED = [
    Listed("the mirror has no (?P<path>\\\\S+)", "the mirror lacks it"),
    Listed("no mirror is named", "no mirror"),
    Listed("backend '(?P<backend>\\\\w+)' is missing", "no framework"),
]

def pytest_configure(config):
    config.pluginmanager.register(SkipsAreListed(LISTED))
"""


def run(
    pytester: pytest.Pytester, reason: str, *arguments: str, whole_module: bool = False
) -> pytest.RunResult:
    """A session of one test that passes and two that are skipped, with what is said of it."""
    skipped = f"pytest.skip({reason!r}, allow_module_level=True)\n" if whole_module else ""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        test_one="def test_passes(): pass",
        test_two=f"import pytest\n{skipped}\n"
        '@pytest.mark.parametrize("x", [1, 2])\n'
        f"def test_skips(x): pytest.skip({reason!r})\n",
    )
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


WITH_AND_WITHOUT_WORKERS = pytest.mark.parametrize(
    "workers", [(), ("-n", "2")], ids=["one", "xdist"]
)


@WITH_AND_WITHOUT_WORKERS
def test_a_skip_that_is_listed_and_due_is_counted(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.delenv("SVGPBENCH_MIRROR", raising=False)
    result = run(pytester, "no mirror is named", *workers)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*skipped, by reason*", "    2  no mirror is named"])


@WITH_AND_WITHOUT_WORKERS
def test_a_listed_skip_that_is_not_due_here_fails_the_session(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SVGPBENCH_MIRROR", str(pytester.path))
    result = run(pytester, "no mirror is named", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*NOT LISTED, OR NOT DUE HERE: no mirror is named", "*test_skips?1?"]
    )


@pytest.mark.parametrize(
    "reason", ["not today", "no mirror is named, and more", "backend 'numpy' is missing"]
)
def test_any_other_skip_fails_the_session(pytester: pytest.Pytester, reason: str) -> None:
    result = run(pytester, reason)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"    2  NOT LISTED, OR NOT DUE HERE: {reason}"])


@WITH_AND_WITHOUT_WORKERS
def test_a_module_that_is_skipped_whole_counts(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = run(pytester, "not today", *workers, whole_module=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["    1  NOT LISTED, OR NOT DUE HERE: not today"])


def test_a_file_that_a_mirror_has_is_not_excused(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = pytester.mkdir("mirror")
    monkeypatch.setenv("SVGPBENCH_MIRROR", str(mirror))
    assert run(pytester, "the mirror has no a.csv").ret == pytest.ExitCode.OK
    (mirror / "a.csv.xz").touch()
    assert run(pytester, "the mirror has no a.csv").ret == pytest.ExitCode.TESTS_FAILED


def test_a_failing_session_keeps_its_own_exit_code(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_three="def test_fails(): assert False")
    assert run(pytester, "not today").ret == pytest.ExitCode.TESTS_FAILED
    assert run(pytester, "not today", "-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED


@WITH_AND_WITHOUT_WORKERS
def test_a_test_that_fails_for_a_missing_framework_is_skipped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    needs = "backend 'torch' is missing"
    planted = (
        f"listed_skips.framework_missing = lambda name: {needs!r} if name == 'torch' else None"
    )
    pytester.makeconftest(f"{CONFTEST}\nimport listed_skips\n{planted}\n")
    pytester.makepyfile(
        "import pytest\n"
        "def test_message(): raise ValueError(\"error: backend 'torch' is missing\")\n"
        "def test_import(): raise ModuleNotFoundError('gone', name='torch')\n"
        "@pytest.fixture\ndef broken(): raise ModuleNotFoundError('gone', name='torch')\n"
        "def test_setup(broken): pass\n"
        "def test_other(): raise ModuleNotFoundError('gone', name='jax')\n"
        "def test_wrong(): assert 1 == 2\n"
        "@pytest.mark.xfail(strict=True)\ndef test_passes_unexpectedly(): pass\n"
    )
    # the session in this process replaces the function: this puts it back
    monkeypatch.setattr(listed_skips, "framework_missing", listed_skips.framework_missing)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *workers)
    result.assert_outcomes(skipped=3, failed=3)
    result.stdout.fnmatch_lines([f"    3  {needs}"])


def test_every_row_of_the_list_has_a_condition_that_is_known() -> None:
    listed = read_listed(Path(__file__).with_name("skips.toml"))
    assert listed
    assert {row.when for row in listed} <= set(CONDITIONS)
    assert len({row.reason for row in listed}) == len(listed)
    assert not any(Listed(row.reason, row.when).due("any other words") for row in listed)
