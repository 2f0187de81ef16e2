"""Environments of peers, made once in a folder of the user's cache. One is either complete or absent."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from svgpbench.errors import UserError

FOLDER_VARIABLE = "SVGPBENCH_PEERS"
COMPLETE = ".complete"
NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
PIP_STEPS = ("Collecting", "Downloading", "Building", "Installing")

Tell = Callable[[str], None]


def environments_folder() -> Path:
    """Return the folder of the environments: SVGPBENCH_PEERS, or a folder of the user's cache."""
    if folder := os.environ.get(FOLDER_VARIABLE):
        return Path(folder).expanduser().absolute()
    return user_cache_path("svgpbench", appauthor=False) / "peers"


def find_base_python(versions: Sequence[str]) -> str | None:
    """Return this Python if its version is among `versions` or these are empty, else the first on PATH.

    Returns None if there is none.
    """
    if not versions or "{}.{}".format(*sys.version_info) in versions:
        return sys.executable
    return next(filter(None, (shutil.which(f"python{version}") for version in versions)), None)


def find_environment(
    name: str,
    requirements: Sequence[str],
    contents: str = "",
    constraints: Path | None = None,
    base: str = sys.executable,
) -> Path | None:
    """Return the Python of an existing complete environment, or None."""
    folder = _folder(name, requirements, contents, constraints, base)
    python = _python(folder)
    return python if (folder / COMPLETE).is_file() and python.exists() else None


def make_environment(
    name: str,
    requirements: Sequence[str],
    tell: Tell,
    contents: str = "",
    constraints: Path | None = None,
    base: str = sys.executable,
) -> Path:
    """Return the Python of an environment that has `requirements`, and make it if it does not exist.

    Args:
        name: first part of the name of its folder.
        requirements: requirements that pip installs.
        tell: called with one line of text at each step.
        contents: digest of what `requirements` refer to by path; another digest is another environment.
        constraints: file of versions that pip must keep to.
        base: Python that makes the environment.

    Raises:
        UserError: if it cannot be made; nothing of it is left.
    """
    folder = _folder(name, requirements, contents, constraints, base)
    lock = _locked(name, folder, tell)
    try:
        # under the lock: another process may have made it while this one waited
        if python := find_environment(name, requirements, contents, constraints, base):
            return python
        shutil.rmtree(folder, ignore_errors=True)  # left by a process that was killed
        try:
            tell(f"{name}: making its environment in {folder}")
            _run(name, (base, "-m", "venv", str(folder)), tell)
            install = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input")
            options = ("--progress-bar", "off", *requirements)
            if constraints is not None:
                options += ("--constraint", str(constraints))
            _run(name, (str(_python(folder)), *install, *options), tell)
            # last of all: a folder without this file is made again, however far its process came
            (folder / COMPLETE).touch()
        # Ctrl-C too: nothing half made stays in the cache
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    finally:
        lock.release()
    return _python(folder)


def _locked(name: str, folder: Path, tell: Tell) -> FileLock:
    # beside the folder: inside, it would be deleted with it while others wait for it
    lock = FileLock(f"{folder}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        tell(f"{name}: another process makes its environment")
        lock.acquire()
    except OSError as error:
        raise UserError(
            f"{folder.parent}: peers' environments cannot be made there ({error.strerror}); "
            f"name another folder in {FOLDER_VARIABLE}"
        ) from None
    return lock


def _folder(
    name: str, requirements: Sequence[str], contents: str, constraints: Path | None, base: str
) -> Path:
    # this Python may be upgraded under the same path; another is known by its path alone
    version = sys.version if base == sys.executable else ""
    made_of = "\n".join([version, base, contents, *requirements])
    if constraints is not None:
        made_of += f"\n{constraints.read_text('utf-8')}"
    digest = hashlib.sha256(made_of.encode()).hexdigest()[:12]
    return environments_folder() / f"{name}-{digest}"


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _run(name: str, command: Sequence[str], tell: Tell) -> None:
    # PYTHONPATH would put this environment's packages before the peer's own
    inherited = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
    error = last = ""
    with subprocess.Popen(
        command,
        env=inherited,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in map(str.strip, process.stdout):
            last = line or last
            if line.startswith("ERROR: "):
                error = error or line.removeprefix("ERROR: ")
            if line.startswith(PIP_STEPS):
                tell(f"{name}: {line}")
    if process.returncode:
        raise UserError(
            f"no environment for peer {name!r}: {error or last}; "
            "name a python that has it by --peer-python"
        )
