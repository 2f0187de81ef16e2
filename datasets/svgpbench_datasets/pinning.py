"""Computing fingerprints and writing them into the registry files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from svgpbench_datasets.errors import DataError
from svgpbench_datasets.registry import Registry
from svgpbench_datasets.whole_files import whole_file

_SECTION = re.compile(r"\[([a-z0-9-]+)(?:\.variants\.([a-z0-9-]+))?\]\s*(?:#.*)?")
_FINGERPRINT = re.compile(r'fingerprint = "(sha256:[0-9a-f]{64})"')


@dataclass(frozen=True)
class Pin:
    """Fingerprint in a registry file, as written there and as computed from the numbers."""

    name: str
    file: Path
    written: str
    computed: str

    @property
    def agrees(self) -> bool:
        """True if the written fingerprint equals the computed one."""
        return self.written == self.computed


def pins(registry_of: Callable[[str], Registry], files: Iterable[Path]) -> Iterator[Pin]:
    """Compute each fingerprint written in the files, in order, if its data set is available offline.

    `registry_of` returns the registry that loads a data set, by name.
    """
    for file in files:
        for _, name, written in _fingerprints(file.read_text(encoding="utf-8").splitlines()):
            registry = registry_of(name)
            if registry.at_hand(name):
                computed = registry.load_unverified(name).fingerprint
                yield Pin(name, file, written, computed)


def write(pin: Pin) -> None:
    """Write the computed fingerprint into the registry file; raise `DataError` if that fails."""
    try:
        lines = pin.file.read_text(encoding="utf-8").splitlines(keepends=True)
        for index, name, written in _fingerprints(lines):
            if name == pin.name:
                # edited as text: tomllib cannot write, and the comments of the file stay
                lines[index] = lines[index].replace(written, pin.computed)
                with whole_file(pin.file) as draft:
                    draft.write_text("".join(lines), encoding="utf-8")
                return
    except OSError as error:
        raise DataError(f"{pin.file} cannot be written: {error.strerror or error}") from None
    raise DataError(f"{pin.file} has no fingerprint of {pin.name!r} any more")


def _fingerprints(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the line index, the data set name and the value of each fingerprint."""
    name = ""
    for index, line in enumerate(lines):
        if match := _SECTION.fullmatch(line.strip()):
            name = match[1] if match[2] is None else f"{match[1]}:{match[2]}"
        elif match := _FINGERPRINT.match(line):
            yield index, name, match[1]
