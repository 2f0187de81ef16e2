"""A fifth paper that another package shows: a copy of one of ours under a name of its own."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from svgpbench.papers import paper_folders

FIFTH = "fifth2030"


def installed(site: Path, names: str, monkeypatch: pytest.MonkeyPatch, computed: str = "") -> None:
    """Another package whose entry points name something as papers, and what computes their claims."""
    info = site / "their_papers-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-papers\nVersion: 1\n")
    entries = f"[svgpbench.papers]\ntheirs = {names}\n"
    if computed:
        entries += f"[svgpbench.computed]\n{FIFTH} = {computed}\n"
    (info / "entry_points.txt").write_text(entries)
    monkeypatch.delitem(sys.modules, "their_papers", raising=False)
    monkeypatch.syspath_prepend(str(site))


def fifth_paper(of: str, site: Path, monkeypatch: pytest.MonkeyPatch, code: str = "") -> Path:
    """Install a copy of a paper, and code that computes its claims if any; the copy's folder."""
    theirs = site / "their_papers" / FIFTH
    shutil.copytree(Path(str(paper_folders()[of])), theirs)
    (theirs.parent / "__init__.py").write_text(code, encoding="utf-8")
    for file in theirs.glob("*.toml"):  # the claims' ids, and not the experiment's name
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(rf"{of}-(?=\d\d)", f"{FIFTH}-", text), encoding="utf-8")
    computed = "their_papers:CLAIMS" if code else ""
    installed(site, "their_papers", monkeypatch, computed)
    return theirs
