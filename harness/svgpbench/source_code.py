"""Digests of source code, which show whether a result was made by the code that is installed.

A digest covers modules and what they import, directly or not, as far as the caller follows it. It changes
when a statement changes. Comments, docstrings and layout do not count, nor does the version of Python.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import os
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

LAYOUT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.INDENT, tokenize.DEDENT}
)
# from Python 3.12 on, an f-string is several tokens
STRING_STARTS = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
STRING_ENDS = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
NAMES_A_FILE = re.compile(r"[\w./-]{1,200}")


def statements(source: str) -> list[str]:
    """Return the statements of a source text, each with the depth of its indentation.

    Spaces and line breaks within a statement, comments and strings that stand alone are left out.
    Raises `SyntaxError` or `tokenize.TokenError` if it is no Python.
    """
    lines = source.splitlines(keepends=True)
    found: list[str] = []
    words: list[str] = []
    strings_only, depth, opened = True, 0, 0
    start = (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
        if token.type in STRING_STARTS:
            start = start if opened else token.start
            opened += 1
        elif token.type in STRING_ENDS:
            opened -= 1
            if not opened:
                # one word, as an f-string is one token before Python 3.12
                words.append(_between(lines, start, token.end))
                strings_only = False
        elif opened or token.type in LAYOUT:
            continue
        elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if not strings_only:
                found.append(f"{depth} {' '.join(words)}")
            words, strings_only = [], True
        else:
            words.append(token.string)
            strings_only &= token.type == tokenize.STRING
    return found


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    part = lines[start[0] - 1 : end[0]]
    part[-1] = part[-1][: end[1]]
    part[0] = part[0][start[1] :]
    return "".join(part)


class SourceCode:
    """The code of modules and of what they import. No module is imported for it.

    `follows` gets the top-level name and the specification of an imported module, and says whether the code
    of that module counts too. A string in a module that names a module or a file beside it counts as an
    import of it. `digest` is that of all the code, as 16 hexadecimal digits.
    """

    def __init__(
        self, modules: Iterable[str], follows: Callable[[str, ModuleSpec], bool] | None = None
    ) -> None:
        self.modules, self.follows = tuple(modules), follows
        self.code: dict[str, bytes] = {}  # by module or file
        self.tops: set[str] = set()  # top-level names of the followed modules
        waiting = list(self.modules)
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            # the packages of a module are run when it is imported
            for spec in (found := list(specifications(name))):
                if spec.name not in self.code:
                    self.code[spec.name] = _code_of(spec)
            if found and follows is not None and follows(found[0].name, found[0]):
                self.tops.add(found[0].name)
                waiting += self._imports(found[-1])
        hashed = hashlib.sha256()
        for name, code in sorted(self.code.items()):
            # with its length, so that code cannot move from one module to the next unseen
            hashed.update(f"{name} {len(code)}\n".encode() + code)
        self.digest = hashed.hexdigest()[:16]

    def read_again(self) -> SourceCode:
        """Return the code of the same modules as it is now."""
        return SourceCode(self.modules, self.follows)

    def _imports(self, spec: ModuleSpec) -> Iterator[str]:
        """Yield the followed modules that a module imports, and add the files that it names."""
        nodes = _nodes(_source_of(spec))
        strings = {
            x.value for x in nodes if isinstance(x, ast.Constant) and isinstance(x.value, str)
        }
        package = spec.name if spec.submodule_search_locations else spec.name.rpartition(".")[0]
        names = {*_imported(nodes, package), *_named_modules(strings, package)}
        for name in names:
            # as far as they exist: the last part may be a name that a module defines
            found = list(specifications(name))
            if found and self.follows is not None and self.follows(found[0].name, found[0]):
                yield found[-1].name
        folder = os.path.dirname(spec.origin or "")
        for text in strings:
            if folder and NAMES_A_FILE.fullmatch(text) and not text.startswith("/"):
                try:
                    content = spec.loader.get_data(os.path.join(folder, text))  # type: ignore[union-attr]
                except (OSError, AttributeError, ValueError):
                    continue  # no file
                self.code[f"{spec.name} {text}"] = content


def specifications(name: str) -> Iterator[ModuleSpec]:
    """Yield the specifications of a module's packages and its own, as far as they exist.

    Nothing is imported.
    """
    parts = name.split(".")
    try:
        spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError, AttributeError):
        return
    for index, _ in enumerate(parts):
        if index:
            if spec is None or spec.submodule_search_locations is None:
                return
            # `find_spec` of a dotted name would import the packages above it
            spec = PathFinder.find_spec(
                ".".join(parts[: index + 1]), list(spec.submodule_search_locations)
            )
        if spec is None:
            return
        yield spec


def _source_of(spec: ModuleSpec) -> str:
    """Return the source text of a module; empty if it has none."""
    try:
        if hasattr(spec.loader, "get_source"):
            return spec.loader.get_source(spec.name) or ""  # type: ignore[union-attr]
        # pytest's loader, of tests and of packages with a pytest plugin, returns bytes only
        content = spec.loader.get_data(spec.origin)  # type: ignore[union-attr]
        return importlib.util.decode_source(content) if str(spec.origin).endswith(".py") else ""
    except (ImportError, AttributeError, OSError, SyntaxError, TypeError, UnicodeDecodeError):
        return ""


def _code_of(spec: ModuleSpec) -> bytes:
    """Return the statements of a module, or the bytes of a compiled one."""
    if source := _source_of(spec):
        try:
            return "\n".join(statements(source)).encode()
        except (SyntaxError, tokenize.TokenError):
            return source.encode()
    try:
        content: bytes = spec.loader.get_data(spec.origin)  # type: ignore[union-attr]
    except (OSError, AttributeError, TypeError):
        return b""  # a namespace, or built in
    return content[16:] if str(spec.origin).endswith(".pyc") else content  # after size and time


def _imported(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    """Yield the absolute names that a module of `package` imports."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _named_modules(strings: Iterable[str], package: str) -> Iterator[str]:
    """Yield the modules of a package's own tree that strings name, as `import_module` takes them."""
    top = package.partition(".")[0]
    for text in strings:
        if top and re.fullmatch(rf"({top})?\.[A-Za-z_][\w.]*", text):
            yield package + text if text.startswith(".") else text


def _nodes(source: str) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return []


INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, whose versions a record has."""


def is_own_source(spec: ModuleSpec) -> bool:
    """Return True if a module lies where its user may edit it, as that of an editable package."""
    places = [spec.origin or "", *(spec.submodule_search_locations or ())]
    parts = [Path(place).parts for place in places if os.path.isabs(place)]
    standard = spec.name in sys.stdlib_module_names
    return not standard and any(INSTALLED.isdisjoint(part) for part in parts)
