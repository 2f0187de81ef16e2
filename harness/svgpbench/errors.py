"""Errors of the user, and the message for an unknown name."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable

MOST_LISTED = 30


def on_one_line(text: str) -> str:
    r"""Escape the characters of a text that are not printable, as in `a\x85b`; blanks of any width stay."""
    return "".join(
        x if x.isprintable() or unicodedata.category(x) == "Zs" else ascii(x)[1:-1] for x in text
    )


def without_controls(text: str) -> str:
    """Escape the characters that are not printable in each line of a text, such as those of a name."""
    return "\n".join(map(on_one_line, text.split("\n")))


class UserError(ValueError):
    """Mistake in the user's input. Its one line says what is wrong, where, and what to do; exit code 2.

    Messages may contain names from files, so characters that are not printable are escaped.
    """

    def __init__(self, message: str) -> None:
        super().__init__(on_one_line(message))


class UnsettledWarning(UserWarning):
    """A training ended while its bound still moved by more than the region of practical equivalence."""


class DataWarning(UserWarning):
    """An input that numbers the rows, or a target for which scores say little."""


class RecordsWarning(UserWarning):
    """Lines of benchmark records that do not count: they are damaged, or other code made them."""


class NotRecordedError(UserError):
    """Error of a figure of a score that no record has."""


class NoAutodiffError(UserError):
    """Error of `value_and_grad` on a backend without autodiff."""

    def __init__(self, backend: str) -> None:
        super().__init__(
            f"backend {backend!r} has no autodiff: only steps with a gradient in closed form run on it"
        )


PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "letters, digits and . _ -, a letter or digit first",
    r"^[a-z0-9-]+-\d\d$": "the paper's name, - and two digits",
    r"^[a-z][a-z0-9_]*$": "small letters, digits and _, a letter first",
}
"""Patterns of names in files, in words."""


def must_be(message: str) -> str:
    """Return a message of Pydantic on a wrong value in plain words: `must be an integer`."""
    if "match pattern" in message:
        pattern = message.split("'")[1]
        return f"must be of {PATTERNS.get(pattern, pattern)}"
    # also "Tuple should have at least 1 item after validation, not 0"
    message = re.sub(r"^\w+ should (be|have)\b", r"must \1", message)
    message = re.sub(r" after validation, not \d+$", "", message)
    message = message.replace("an object", "a table")  # JSON's word, where the user has TOML
    return re.sub(r"\ba valid (?=[aeiou])", "an ", message).replace(" valid ", " ")


def refuse_unknown(kind: str, names: Iterable[str], valid_names: Iterable[str]) -> None:
    """Raise the error of `unknown` for the first of the names that is not valid."""
    valid = list(valid_names)
    for name in names:
        if name not in valid:
            raise unknown(kind, name, valid)


def select(kind: str, names: Iterable[str] | None, valid_names: Iterable[str]) -> list[str]:
    """Return `names`, or all valid names by default. Raises `UserError` for an unknown name."""
    valid = list(valid_names)
    refuse_unknown(kind, names or (), valid)
    return list(dict.fromkeys(names)) if names else valid


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is nearest to a misspelt one; empty if none is near."""
    names = sorted(known)
    # at the 0.6 of difflib 'cupy' is near 'numpy': so low only with the same first letter
    alike = [one for one in names if one[:1] == name[:1]]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    return next(iter(near or difflib.get_close_matches(name, alike, n=1)), "")


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Return the error for an unknown name, with the nearest known name and up to 30 known names."""
    names = sorted(known)
    near = nearest(name, names)
    hint = f"; did you mean {near!r}?" if near else ""
    more = [f"... {len(names)} in all"] if len(names) > MOST_LISTED else []
    shown = [repr(one) if "," in one else one for one in names[:MOST_LISTED]]
    known_names = ", ".join([*shown, *more]) or "none"
    return UserError(f"unknown {kind} {name!r}{hint} (known: {known_names})")
