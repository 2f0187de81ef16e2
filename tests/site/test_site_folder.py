"""Where a site may be put, and what is said where it may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_site import judged

from svgpbench.errors import UserError
from svgpbench.site import building, folder
from svgpbench.site.building import build_site
from svgpbench.site.folder import MARK


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The folder of a site that was made before."""
    out = tmp_path / "site"
    out.mkdir()
    (out / MARK).touch()
    (out / "index.html").write_text("the one before")
    return out


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.tex").write_text("years of work")
    with pytest.raises(UserError, match="has files that are no site's"):
        build_site([], tmp_path, out)
    assert [path.name for path in out.iterdir()] == ["chapter.tex"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.write_text("a file")
    with pytest.raises(UserError, match="is no folder"):
        build_site([], tmp_path, out)


def test_a_package_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "NEEDED", ("jinja2", "no_such_package"))
    with pytest.raises(UserError, match=r"needs no_such_package: .*svgpbench\[site\]"):
        build_site([], tmp_path, tmp_path / "site")


def test_a_site_that_fails_leaves_the_one_before(
    tmp_path: Path, before: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results" / "speed").mkdir(parents=True)

    def fails(fields: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(building, "method_facts", fails)
    with pytest.raises(UserError, match="No space left"):
        build_site(judged(tmp_path / "results"), tmp_path / "results", before)
    assert (before / "index.html").read_text() == "the one before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "site"]


def test_a_site_that_cannot_be_moved_into_place_leaves_the_one_before(
    tmp_path: Path, before: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.suffix == ".tmp":
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(UserError, match="Input/output error"), folder.replaced(before):
        pass
    assert (before / "index.html").read_text() == "the one before"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
