"""Checks of the folder of a site, and its replacement by a complete new one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from svgpbench.atomic import refuse_unwritable
from svgpbench.errors import UserError

MARK = ".svgpbench-site"
"""Marker file of a folder that is a site and may be replaced."""

NEEDED = ("jinja2",)


def check_site_folder(out: Path) -> None:
    """Raise `UserError` if a package is missing, or `out` is a file or has files other than a site's."""
    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        raise UserError(
            f"a site needs {', '.join(absent)}: install with `pip install 'svgpbench[site]'`"
        )
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out}: is no folder; name a new one")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise UserError(f"--out {out}: has files that are no site's; name a new folder")
    refuse_unwritable(out.absolute().parent, f"--out {out}")


@contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """Yield a new folder that replaces `out` on exit, or is deleted after an exception.

    Raises `UserError` as `check_site_folder` does, and if the folder cannot be written.
    """
    check_site_folder(out)
    out = out.absolute()
    # beside `out`, since a rename does not cross file systems
    draft = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    old = draft.with_suffix(".old")
    try:
        draft.mkdir(parents=True)
        yield draft
        # last, so that what a killed run leaves behind is never taken for a site
        (draft / MARK).touch()
        # the old site steps aside, since no folder can be renamed onto one that has files
        if out.exists():
            out.rename(old)
        try:
            draft.rename(out)
        except OSError:
            # a replacement that failed must not leave the user without any site
            if old.exists():
                old.rename(out)
            raise
    except OSError as error:
        raise UserError(f"--out {out} cannot be written ({error.strerror})") from None
    finally:
        for folder in (draft, old):
            shutil.rmtree(folder, ignore_errors=True)
