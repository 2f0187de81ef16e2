"""This interpreter in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

Done = subprocess.CompletedProcess[str]


def python(*arguments: str | Path, **how: Any) -> Done:
    """Run Python with these arguments; its exit code and what it prints, as text."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)
