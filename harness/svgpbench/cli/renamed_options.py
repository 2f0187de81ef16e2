"""Options that were renamed. Their old names still work in this version, with a warning."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

RENAMED: Final = {
    "learn": {"--out": "--figure"},
    "scaling": {"--N": "--n", "--b": "--batch", "--from-record": "--load"},
    "speed": {"--from-records": "--load"},
    "survive": {"--limit": "--timeout", "--out": "--figure"},
}
"""New name of each renamed option, by command."""


def with_new_names(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with today's names of options, and warn on stderr of each old one."""
    command = next((word for word in arguments if not word.startswith("-")), "")
    new_names = RENAMED.get(command, {})
    words = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if new := new_names.get(name):
            print(
                f"warning: {name} of svgpbench {command} is now {new}; "
                "the next version does not know the old name",
                file=sys.stderr,
            )
        words.append(f"{new_names.get(name, name)}{equals}{value}")
    return words
