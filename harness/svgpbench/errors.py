"""The two kinds of failure that the harness tells apart."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_LISTED = 30


def on_one_line(text: str) -> str:
    r"""The text with what does not print escaped, as in `a\x85b`."""
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)


class UserError(ValueError):
    """A mistake in what the user gave: one line saying what, where and what to do; exit code 2.

    Names from files stand in it: what in them would break the line, or the terminal, is escaped.
    """

    def __init__(self, message: str) -> None:
        super().__init__(on_one_line(message))


class NoAutodiffError(UserError):
    """What `value_and_grad` of a backend without autodiff raises: what asked for it is left out by name."""

    def __init__(self, backend: str) -> None:
        super().__init__(
            f"backend {backend!r} has no autodiff: only steps with a gradient in closed form run on it"
        )


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that nothing answers to, with the nearest one that exists."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    more = [f"... {len(names)} in all"] if len(names) > MOST_LISTED else []
    known_names = ", ".join([*names[:MOST_LISTED], *more]) or "none"
    return UserError(f"unknown {kind} {name!r}{hint} (known: {known_names})")
