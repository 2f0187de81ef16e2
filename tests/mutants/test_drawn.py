"""The drawing of mutants, and what is kept of those that survive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray")

from drawing import Mutant, draw, says_something
from drawn import MODULES, read_modules
from fault_files import ROOT
from killing import Verdict, read_verdicts, write_verdicts
from survivors import Survivor, merged, read_survivors, write_survivors

SOURCE = '''"""A module."""

from functools import lru_cache


@lru_cache(maxsize=1)
def θ_of(a: int | None, *, ß: float | None = None) -> float | None:
    if a is None:
        raise ValueError(f"{1 + 2} is not {a}" + "!")
    return a + 1.5


def named(a: str) -> bool:
    return a == "name"
'''


@pytest.fixture
def mutants(tmp_path: Path) -> list[Mutant]:
    (tmp_path / "module.py").write_text(SOURCE)
    return draw(tmp_path, ["module.py"], 1000, 0)


def test_types_decorators_and_messages_are_left_alone(mutants: list[Mutant]) -> None:
    assert {mutant.line for mutant in mutants} == {8, 10, 14}
    of_names = {mutant.operator for mutant in mutants if mutant.line == 14}
    assert of_names == {"ReplaceComparisonOperator_Eq_NotEq"}
    operators = {mutant.operator for mutant in mutants}
    assert {"AddNot", "ReplaceComparisonOperator_Is_IsNot", "NumberReplacer"} <= operators
    assert "ReplaceBinaryOperator_Add_Sub" in operators
    assert all(mutant.text != SOURCE and mutant.was != mutant.now for mutant in mutants)


def test_a_seed_draws_the_same_again_and_each_place_before_any_twice(
    tmp_path: Path, mutants: list[Mutant]
) -> None:
    assert draw(tmp_path, ["module.py"], 1000, 0) == mutants
    some = draw(tmp_path, ["module.py"], 5, 1)
    assert len(some) == 5 < len(mutants)
    assert {mutant.line for mutant in some} == {mutant.line for mutant in mutants}
    assert len({mutant.key for mutant in mutants}) == len(mutants)


@pytest.mark.parametrize(
    ("operator", "kept"),
    [
        ("ReplaceBinaryOperator_Add_Sub", True),
        ("ReplaceBinaryOperator_Add_LShift", False),
        ("ReplaceBinaryOperator_BitAnd_BitOr", True),
        ("ReplaceComparisonOperator_Gt_GtE", True),
        ("ReplaceComparisonOperator_Eq_Is", False),
        ("ReplaceUnaryOperator_Delete_Not", True),
        ("ReplaceUnaryOperator_USub_Not", False),
        ("RemoveDecorator", False),
    ],
)
def test_type_errors_and_repetitions_are_not_drawn(operator: str, kept: bool) -> None:
    assert says_something(operator) is kept


def test_words_are_kept_and_what_is_noticed_now_goes(tmp_path: Path, mutants: list[Mutant]) -> None:
    path = tmp_path / "survivors.toml"
    first, second, third = mutants[:3]
    write_survivors(merged({}, [first, second], [third]), path)
    kept = read_survivors(path)
    assert list(kept) == [x.key for x in sorted((first, second), key=lambda x: (x.was, x.now))]
    kept[first.key] = replace(kept[first.key], word='equivalent: "a" is never\\0')
    write_survivors(merged(kept, [third], [first, second]), path)
    after = read_survivors(path)
    assert set(after) == {first.key, third.key}
    assert after[first.key].word == kept[first.key].word
    assert after[third.key] == Survivor.of(third)


def test_verdicts_are_read_back_and_outlast_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "build" / "verdicts.jsonl"
    assert read_verdicts(path) == {}
    verdicts = {"a": Verdict("killed", "test_x.py::test", 1.5), "b": Verdict("survived")}
    write_verdicts(path, verdicts)
    assert read_verdicts(path) == verdicts

    def interrupted(file: Path, text: str, encoding: str) -> None:
        file.write_bytes(text[:10].encode(encoding))
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_verdicts(path, {"c": Verdict("killed")})
    assert read_verdicts(path) == verdicts


def test_modules_and_their_tests_exist() -> None:
    for file, tests in read_modules(MODULES).items():
        assert (ROOT / file).exists(), file
        for test in tests:
            assert (ROOT / test.partition("::")[0]).exists(), test


def test_every_survivor_is_of_a_line_that_is_there_and_has_been_read() -> None:
    for survivor in read_survivors().values():
        assert survivor.was in (ROOT / survivor.file).read_text(encoding="utf-8"), survivor
        kind, _, rest = survivor.word.partition(": ")
        assert kind in {"equivalent", "test"} and rest, survivor
        if kind == "test":
            path, _, name = rest.partition("::")
            assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(), rest
