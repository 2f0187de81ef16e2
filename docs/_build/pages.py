"""What MkDocs does not do by itself: the README as first page, formulas, files beyond docs/, the site's pages in the search."""

from __future__ import annotations

import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation

ROOT = Path(__file__).parents[2]
FROM_ROOT = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
PAPERS = ("adam2021", "kobe2021", "salimbeni2018", "cheng2017", "titsias2025")
FROM_RESULTS = {f"{name}.md": f"results/{name}/printed-beside-ours.md" for name in PAPERS}
BEYOND_DOCS = FROM_ROOT | FROM_RESULTS
"""The file of each page that lies elsewhere in the repository."""
FORMULAS: dict[str, list[str]] = {}
"""MathML by page, in the order of its marks."""

SHIM = "https://unpkg.com/iframe-worker/shim"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)]*)?\)")
DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+)\$(?![\w$])")
FORMULA = re.compile(r"FORMULA(\d+)END")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Pages that lie elsewhere, and the file behind each link that leaves docs/."""
    for name, source in BEYOND_DOCS.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    wanted: set[Path] = set()
    for page in files.documentation_pages():
        base = _folder_of(page.src_uri)
        for _, _, target, _ in LINK.findall(page.content_string):
            found = _beyond(base, target)
            if found is not None and found.is_file():
                wanted.add(found)
    for path in sorted(wanted):
        name = f"files/{path.relative_to(ROOT).as_posix()}"
        files.append(File.generated(config, _plain(name), content=path.read_bytes()))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, **_: Any) -> Navigation:
    """The site of `svgpbench report`, where it was made."""
    if _report(config) is not None:
        nav.items.insert(1, Link("All claims, methods and data", "report/index.html"))
    return nav


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they are in the site, and formulas as MathML; code stays as it is."""
    base = _folder_of(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        picture, words, target, _ = found.groups()
        whole = _beyond(base, target)
        if whole is None:
            return _to_a_page(base, found)
        if whole.is_dir():
            return words  # a folder of the repository is no page
        return f"{picture}[{words}]({_plain(f'files/{whole.relative_to(ROOT).as_posix()}')})"

    kept = FORMULAS[page.file.src_uri] = []
    pieces = CODE.split(LINK.sub(link, markdown))
    return "".join(x if at % 2 else _without_formulas(x, kept) for at, x in enumerate(pieces))


def on_page_content(html_text: str, page: Any, **_: Any) -> str:
    """Formulas as MathML, once Markdown has had its way with the words around them."""
    return FORMULA.sub(lambda found: FORMULAS[page.file.src_uri][int(found[1])], html_text)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The search of a page opened from the file system, without a script from elsewhere."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace(SHIM, f"{up}assets/iframe-worker.js")


def on_post_build(config: MkDocsConfig) -> None:
    """The site's pages beside these, found by the same search."""
    out = Path(config.site_dir)
    shutil.copy(Path(__file__).parent / "iframe-worker.js", out / "assets")
    if (report := _report(config)) is None:
        return
    shutil.copytree(report, out / "report", dirs_exist_ok=True)
    index = out / "search" / "search_index.json"
    known = json.loads(index.read_text("utf-8"))
    for path in sorted((out / "report").rglob("*.html")):
        whole = path.read_text("utf-8")
        text = _Text()
        text.feed(whole)
        up = "../" * len(path.relative_to(out).parts[:-1])
        back = f'<li><a href="{up}index.html">Docs and search</a></li>'
        path.write_text(whole.replace("</ul>\n</nav>", f"{back}</ul>\n</nav>", 1), "utf-8")
        where = path.relative_to(out).as_posix()
        known["docs"].append({"location": where, "title": text.title, "text": html.escape(text.words)})
    index.write_text(json.dumps(known), "utf-8")


def _report(config: MkDocsConfig) -> Path | None:
    """The folder that `svgpbench report` wrote; None where it did not."""
    folder = ROOT / config.extra["report"]
    return folder if (folder / "index.html").is_file() else None


def _folder_of(page: str) -> Path:
    """The folder that the links of a page start from."""
    return (ROOT / BEYOND_DOCS[page]).parent if page in BEYOND_DOCS else ROOT / "docs"


def _beyond(base: Path, target: str) -> Path | None:
    """The file or folder of the repository that a link means, where that is no page; None for all others."""
    if not target or ":" in target:
        return None
    path = (base / target).resolve()
    if not path.exists():
        raise PluginError(f"link to {target}: there is no such file")
    if path.parent == ROOT / "docs" or path.relative_to(ROOT).as_posix() in BEYOND_DOCS.values():
        return None
    return path


def _to_a_page(base: Path, found: re.Match[str]) -> str:
    """A link to another page, wherever the two lie; a link to elsewhere as it is."""
    picture, words, target, place = found.groups()
    if not target or ":" in target:
        return found.group()
    whole = (base / target).resolve().relative_to(ROOT).as_posix()
    pages = {source: name for name, source in BEYOND_DOCS.items()}
    inside = pages.get(whole, whole.removeprefix("docs/"))
    return f"{picture}[{words}]({inside}{place or ''})"


def _plain(name: str) -> str:
    """The name of a file as it is served: text of a program opens in the browser."""
    return name if name.endswith((".png", ".json", ".parquet", ".svg")) else f"{name}.txt"


def _without_formulas(text: str, kept: list[str]) -> str:
    """The text with a mark in place of each formula, which is kept."""

    def mark(latex: str, display: Literal["block", "inline"]) -> str:
        kept.append(convert(latex.strip(), display=display))
        return f"FORMULA{len(kept) - 1}END"

    text = DISPLAYED.sub(lambda found: mark(found[1], "block"), text)
    return INLINE.sub(lambda found: mark(found[1], "inline"), text)


class _Text(HTMLParser):
    """The title and the words of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.title, self.words = "", ""
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("script", "style", "title", "nav"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside == ["title"]:
            self.title += data.strip()
        elif not self._inside:
            self.words += f" {' '.join(data.split())}"
