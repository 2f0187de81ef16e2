"""Mutants drawn by a seed from all that cosmic-ray makes of some modules, the trivial ones left out."""

from __future__ import annotations

import ast
import difflib
import hashlib
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec

ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
MASKS = {"BitAnd", "BitOr", "BitXor"}
IDENTITY = {"Is", "IsNot"}
SWAPPED = {"ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq"}
Place = tuple[int, int]  # line from 1, column from 0, in characters


@dataclass(frozen=True)
class Mutant:
    """One changed place in one file."""

    file: str  # relative to the root of the tree
    function: str
    operator: str
    line: int
    was: str  # the lines that change
    now: str
    text: str  # the whole file, changed

    @property
    def key(self) -> str:
        """The same as long as its lines are: a line above that moves it leaves it alone."""
        told = "\0".join((self.file, self.function, self.was, self.now))
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def draw(root: Path, files: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """So many mutants of the files, fewer where there are no more; first one of each place."""
    rng = random.Random(seed)
    places: dict[tuple[Path, Place], list[MutationSpec]] = {}
    for spec in _candidates([root / file for file in files]):
        places.setdefault((spec.module_path, spec.start_pos), []).append(spec)
    ranked = []
    for at in sorted(places):
        specs = sorted(places[at], key=lambda spec: (spec.operator_name, spec.occurrence))
        rng.shuffle(specs)
        ranked += [(turn, rng.random(), spec) for turn, spec in enumerate(specs)]
    ranked.sort(key=lambda one: one[:2])
    found: dict[str, Mutant] = {}
    for _, _, spec in ranked:
        if len(found) == count:
            break
        if (mutant := _made(root, spec)) is not None:
            found.setdefault(mutant.key, mutant)
    return sorted(found.values(), key=lambda mutant: (mutant.file, mutant.line, mutant.operator))


def _candidates(paths: Sequence[Path]) -> Iterator[MutationSpec]:
    with tempfile.TemporaryDirectory() as folder, use_db(f"{folder}/session.sqlite") as session:
        init(paths, session, {})
        specs = [item.mutations[0] for item in session.work_items]
    trivial = {path: TrivialPlaces(path.read_text(encoding="utf-8")) for path in paths}
    for spec in specs:
        operator = spec.operator_name.removeprefix("core/")
        if says_something(operator) and not trivial[spec.module_path].hold(operator, spec):
            yield spec


def says_something(operator: str) -> bool:
    """Whether an operator makes more than a type error, or the same again."""
    kind, _, rest = operator.partition("_")
    before, _, after = rest.partition("_")
    if kind == "ReplaceBinaryOperator":
        return {before, after} <= ARITHMETIC or {before, after} <= MASKS
    if kind == "ReplaceComparisonOperator":
        return {before, after} <= IDENTITY or not {before, after} & IDENTITY
    if kind == "ReplaceUnaryOperator":
        return before == "Delete"
    return kind != "RemoveDecorator"  # a cache, or an import that fails


def puts_names_in_order(operator: str) -> bool:
    """Whether an operator makes another comparison of a name than whether it is the same."""
    return operator.startswith("ReplaceComparison") and operator not in SWAPPED


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a string as it stands."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


class TrivialPlaces:
    """Where a change tells nothing of the tests: types, decorators and what messages say."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines()
        nodes = ast.walk(ast.parse(source))
        self._spans = [(*span, of) for node in nodes for span, of in self._in(node)]

    def hold(self, operator: str, spec: MutationSpec) -> bool:
        """Whether a mutation by an operator lies in such a place."""
        at = tuple(spec.start_pos)
        return any(start <= at < end and of(operator) for start, end, of in self._spans)

    def _in(self, node: ast.AST) -> Iterator[tuple[tuple[Place, Place], Callable[[str], bool]]]:
        """Places in a node, and which operators are trivial there."""
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield self._span(node.annotation), lambda operator: operator != "NumberReplacer"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # up to the body: the star before keywords is no product, nor is `->` a difference
            head = self._span(node)[0], self._span(node.body[0])[0]
            yield head, lambda operator: operator.startswith("ReplaceBinaryOperator")
            for decorator in node.decorator_list:
                yield self._span(decorator), lambda _: True
        if isinstance(node, ast.Compare) and any(map(is_text, (node.left, *node.comparators))):
            yield self._span(node), puts_names_in_order
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: it only raises
            yield self._span(node.value), lambda _: True
        if isinstance(node, ast.Raise | ast.JoinedStr):
            yield self._span(node), lambda _: True

    def _span(self, node: ast.expr | ast.stmt) -> tuple[Place, Place]:
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._place(node.lineno, node.col_offset), self._place(end_line, end)

    def _place(self, line: int, offset: int) -> Place:
        # ast counts bytes, cosmic-ray characters
        return line, len(self._lines[line - 1].encode()[:offset].decode())


def _made(root: Path, spec: MutationSpec) -> Mutant | None:
    """The mutant; None where the file then means the same or nothing."""
    source = spec.module_path.read_text(encoding="utf-8")
    operator = get_operator(spec.operator_name)(**spec.operator_args)
    text = mutate_code(source, operator, spec.occurrence)
    try:
        if text is None or ast.dump(ast.parse(text)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    lines = list(difflib.unified_diff(source.splitlines(), text.splitlines(), n=0))[2:]
    was, now = ("\n".join(x[1:] for x in lines if x.startswith(mark)) for mark in "-+")
    return Mutant(
        file=str(spec.module_path.relative_to(root)),
        function=spec.definition_name or "",
        operator=spec.operator_name.removeprefix("core/"),
        line=spec.start_pos[0],
        was=was,
        now=now,
        text=text,
    )
