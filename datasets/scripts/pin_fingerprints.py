"""Compare the fingerprints in registry files with the data at hand; with `--write`, correct them.

    python datasets/scripts/pin_fingerprints.py datasets/svgpbench_datasets/registry/*.toml

Zeros stand for a fingerprint that is not known yet. The registry is found as `svgpbench fetch` finds it: its
package is installed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from svgpbench.plugins import registry_of
from svgpbench_datasets.whole_files import whole_file

_SECTION = re.compile(r"\[([a-z0-9-]+)(?:\.variants\.([a-z0-9-]+))?\]\s*(?:#.*)?")
_FINGERPRINT = re.compile(r'fingerprint = "(sha256:[0-9a-f]{64})"')


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if a fingerprint differs and is not corrected, else 0; a mistake exits with code 2."""
    parser = argparse.ArgumentParser(description="Compare fingerprints with the data at hand.")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="registry files")
    parser.add_argument("--write", action="store_true", help="correct them in the files")
    chosen = parser.parse_args(arguments)
    found: list[bool] = []
    try:
        for file in chosen.files:
            found += compare(file, write=chosen.write)
    except (OSError, ValueError) as error:  # `UserError` and `DataError` are ValueErrors
        parser.error(str(error))
    if not found:
        listed = ", ".join(map(str, chosen.files))
        parser.error(f"no fingerprint of a data set at hand in {listed}; name a registry file")
    return int(not all(found) and not chosen.write)


def compare(file: Path, *, write: bool) -> list[bool]:
    """Print and return, for each fingerprint of a set at hand, whether it is that of the numbers."""
    # edited as text: tomllib cannot write, and the comments of the file stay
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    name = ""
    agree: list[bool] = []
    for index, line in enumerate(lines):
        if match := _SECTION.fullmatch(line.strip()):
            name = match[1] if match[2] is None else f"{match[1]}:{match[2]}"
        elif match := _FINGERPRINT.match(line):
            registry = registry_of(name)
            if registry.at_hand(name):
                computed = registry.load_unverified(name).fingerprint
                agree.append(match[1] == computed)
                print("same   " if agree[-1] else "DIFFERS", name, computed)
                lines[index] = line.replace(match[1], computed)
    if write and not all(agree):
        with whole_file(file) as draft:
            draft.write_text("".join(lines), encoding="utf-8")
    return agree


if __name__ == "__main__":
    raise SystemExit(main())
