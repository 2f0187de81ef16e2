"""Write a folder of plain Markdown that any docs engine can build: `prepare.py REPORT OUT`.

The README becomes the first page, formulas become MathML, and links to files beyond docs/ lead to copies.
REPORT is the folder that `svgpbench report` wrote; its pages go to OUT/report.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Literal

from latex2mathml.converter import convert

ROOT = Path(__file__).parents[2]
FROM_ROOT = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
PAPERS = tuple(x.parent.name for x in (ROOT / "harness" / "svgpbench_papers").glob("*/paper.toml"))
FROM_RESULTS = {f"{name}.md": f"results/{name}/printed-beside-ours.md" for name in PAPERS}
BEYOND_DOCS = FROM_ROOT | FROM_RESULTS
"""Pages whose source is not in docs/, each with its path in the repository."""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)]*)?\)")
DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+)\$(?![\w$])")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
TEXT_OF_MATHML = re.compile(r"(?<=>)[^<]+")


def prepare(report: Path, out: Path) -> None:
    """Write the folder `out` anew."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "docs", out, ignore=shutil.ignore_patterns("_build"))
    sources = {path.name: path for path in (ROOT / "docs").glob("*.md")}
    sources |= {name: ROOT / source for name, source in BEYOND_DOCS.items()}
    for name, source in sources.items():
        (out / name).write_text(prepared(source.read_text("utf-8"), source.parent, out), "utf-8")
    (out / "assets").mkdir()
    shutil.copy(Path(__file__).with_name("iframe-worker.js"), out / "assets")
    shutil.copytree(report, out / "report")
    for path in (out / "report").rglob("*.html"):
        up = "../" * len(path.relative_to(out).parts[:-1])
        back = f'<li><a href="{up}index.html">Docs</a></li></ul>\n</nav>'
        path.write_text(path.read_text("utf-8").replace("</ul>\n</nav>", back, 1), "utf-8")


def prepared(markdown: str, folder: Path, out: Path) -> str:
    """Return a page with links as they are in the site and formulas as MathML; code is unchanged.

    Args:
        markdown: text of the page.
        folder: folder that its links start from.
        out: folder to which linked files beyond docs/ are copied.
    """

    def link(found: re.Match[str]) -> str:
        picture, words, target, place = found.groups()
        if not target or ":" in target:
            return found.group()
        path = (folder / target).resolve()
        name = path.relative_to(ROOT).as_posix()
        if not path.exists():
            raise SystemExit(f"link to {target} in a page of {folder}: there is no such file")
        if page := _page(path, name):
            return f"{picture}[{words}]({page}{place or ''})"
        if path.is_dir():
            return words  # a folder of the repository is no page
        copy = Path("files", _served(name))
        (out / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, out / copy)
        return f"{picture}[{words}]({copy.as_posix()})"

    pieces = CODE.split(LINK.sub(link, markdown))
    return "".join(x if i % 2 else _with_mathml(x) for i, x in enumerate(pieces))


def _page(path: Path, name: str) -> str | None:
    """Return the name in the site of a page or of a file in docs/, or None for other files."""
    for page, source in BEYOND_DOCS.items():
        if source == name:
            return page
    return path.name if path.parent == ROOT / "docs" else None


def _served(name: str) -> str:
    """Return the name under which a file is served: a program's text opens in the browser."""
    return name if name.endswith((".png", ".json", ".parquet", ".svg")) else f"{name}.txt"


def _with_mathml(text: str) -> str:
    def mathml(latex: str, display: Literal["block", "inline"]) -> str:
        # Markdown must not read `*`, `_` or `|` in a formula, nor take one at a line's start for a block
        plain = TEXT_OF_MATHML.sub(_escaped, convert(latex.strip(), display=display))
        return f"<span>{plain}</span>"

    text = DISPLAYED.sub(lambda found: mathml(found[1], "block"), text)
    return INLINE.sub(lambda found: mathml(found[1], "inline"), text)


def _escaped(found: re.Match[str]) -> str:
    return re.sub(r"[][*_`|\\~^]", lambda x: f"&#{ord(x[0])};", found[0])


if __name__ == "__main__":
    prepare(Path(sys.argv[1]).absolute(), Path(sys.argv[2]))
