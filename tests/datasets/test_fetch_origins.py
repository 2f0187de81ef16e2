"""Where files are kept and asked for: cache, mirrors, upstream."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faulty_server import Server, until
from wanted_files import CONTENT, IMPATIENT, ROADS, fetch_file, left_in, wanted

from svgpbench_datasets import DataError
from svgpbench_datasets.fetch.cache import cache_folder
from svgpbench_datasets.fetch.origins import Unavailable, mirrors_from_environment, origins

HERE = Path(__file__).parent


def test_the_cache_is_the_one_given_else_the_environments_else_the_systems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SVGPBENCH_DATA", str(tmp_path))
    assert cache_folder("~/x") == Path.home() / "x"
    assert cache_folder() == tmp_path
    monkeypatch.setenv("SVGPBENCH_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert cache_folder() == tmp_path / "xdg" / "svgpbench" / "data"


def test_a_home_folder_of_nobody_is_the_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVGPBENCH_DATA", "~no-such-user/data")
    with pytest.raises(DataError, match="cache folder ~no-such-user/data: no user has this home"):
        cache_folder()


def test_an_address_of_nonsense_is_asked_and_does_not_answer(server: Server, cache: Path) -> None:
    file = wanted(server.serve("/f", CONTENT))
    path = fetch_file(file, cache=cache, mirrors=["http://[bad/d"])
    assert path.read_bytes() == CONTENT


def test_mirrors_stand_between_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVGPBENCH_MIRROR", "/a b, https://c:8080/d ,,")
    assert mirrors_from_environment() == ("/a b", "https://c:8080/d")
    monkeypatch.delenv("SVGPBENCH_MIRROR")
    assert mirrors_from_environment() == ()


@pytest.mark.parametrize(
    "mirror",
    ["file:///tmp", "ftp://host/d", "/nowhere", "/tmp:/tmp", "", "http:d", "~no-such-user/d"],
)
def test_a_mirror_that_is_none_is_the_users_mistake(mirror: str, cache: Path) -> None:
    message = f"mirror {mirror!r} is neither a folder nor an http"
    with pytest.raises(DataError, match=message) as caught:
        fetch_file(wanted("http://localhost/f"), cache=cache, mirrors=[mirror])
    assert not isinstance(caught.value, Unavailable)
    assert not cache.exists()


def test_the_users_mirrors_come_before_upstream_in_their_order(tmp_path: Path) -> None:
    file = wanted("http://up/1", "http://up/2")
    asked = origins(file, ["https://m/d/", str(tmp_path)])
    assert [origin.name for origin in asked] == [
        "mirror https://m/d/",
        f"mirror {tmp_path}",
        "http://up/1",
        "http://up/2",
    ]
    base = "https://m/d/set/data.txt"
    assert asked[0].candidates == (f"{base}.xz", f"{base}.gz", base)


@pytest.mark.parametrize(
    ("ending", "compress"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)]
)
@pytest.mark.parametrize("over_http", [False, True])
def test_a_mirror_may_hold_the_file_plain_or_compressed(
    server: Server,
    cache: Path,
    tmp_path: Path,
    ending: str,
    compress: Callable[[bytes], bytes],
    over_http: bool,
) -> None:
    server.serve(f"/m/set/data.txt{ending}", compress(CONTENT))
    folder = tmp_path / "m/set"
    folder.mkdir(parents=True)
    (folder / f"data.txt{ending}").write_bytes(compress(CONTENT))
    mirror = f"{server.url}/m/" if over_http else str(tmp_path / "m")
    file = wanted(f"{server.url}/upstream")
    path = fetch_file(file, cache=cache, mirrors=[mirror])
    assert path.read_bytes() == CONTENT
    assert not server.asked("/upstream")
    assert bool(server.requests) == over_http
    assert left_in(cache) == {"set/data.txt"}


def test_whatever_goes_wrong_at_one_place_the_next_is_asked(
    server: Server, cache: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad/set"
    bad.mkdir(parents=True)
    (bad / "data.txt.xz").write_bytes(lzma.compress(b"other"))
    (tmp_path / "empty").mkdir()
    server.serve("/slow/set/data.txt.xz", CONTENT, delay_s=60)
    server.serve("/down/set/data.txt.xz", failures=[500] * 9)
    wrong = server.serve("/wrong", CONTENT[1:])
    mirrors = [f"{server.url}/{name}" for name in ("none", "slow", "down")]
    mirrors += [str(tmp_path / "empty"), str(tmp_path / "bad")]
    gone = f"{server.url}/gone"
    with pytest.raises(Unavailable) as caught:
        fetch_file(wanted(gone, wrong), cache=cache, mirrors=mirrors, name="set", limits=IMPATIENT)
    sha = hashlib.sha256(CONTENT).hexdigest()
    assert [(answer.place, answer.why[:38]) for answer in caught.value.answers] == [
        (f"mirror {mirrors[0]}", "HTTP 404 Not Found"),
        (f"mirror {mirrors[1]}", "connection failed (Read timed out.) (a"),
        (f"mirror {mirrors[2]}", "HTTP 500 Internal Server Error (attemp"),
        (f"mirror {mirrors[3]}", "has no set/data.txt"),
        (f"mirror {mirrors[4]}", "wrong content: expected sha256 " + sha[:7]),
        (gone, "HTTP 404 Not Found"),
        (wrong, "wrong content: expected sha256 " + sha[:7]),
    ]
    message = str(caught.value)
    assert message.startswith(f"set/data.txt could not be had (mirror {mirrors[0]}: HTTP 404 Not F")
    assert "svgpbench fetch set --from FILE" in message
    assert "\n" not in message
    assert left_in(cache) == set()
    right = server.serve("/right", CONTENT)
    file = wanted(gone, wrong, right)
    assert fetch_file(file, cache=cache, mirrors=mirrors, limits=IMPATIENT).read_bytes() == CONTENT


def test_a_mirrors_file_that_cannot_be_read_is_told_as_that(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/data.txt").symlink_to("/proc/self/mem")  # opens, and cannot be read
    with pytest.raises(Unavailable) as caught:
        fetch_file(wanted("http://nowhere.invalid/f"), cache=cache, mirrors=[str(tmp_path)])
    assert caught.value.answers[0].why == "it cannot be read (Input/output error)"


def test_a_file_without_an_address_is_not_downloaded(cache: Path) -> None:
    with pytest.raises(DataError, match=r"set/data\.txt declares no address and size"):
        fetch_file(wanted(), cache=cache)
    with pytest.raises(DataError, match=r"set/data\.txt declares no address and size"):
        fetch_file(wanted("http://up/1", bytes=None), cache=cache)


def test_a_cache_that_cannot_be_written_is_one_line(cache: Path, tmp_path: Path) -> None:
    cache.write_text("a file where the folder should be")
    (tmp_path / "set").mkdir()
    (tmp_path / "set/data.txt").write_bytes(CONTENT)
    with pytest.raises(DataError) as caught:
        fetch_file(wanted("http://up/1"), cache=cache, mirrors=[str(tmp_path)])
    assert str(caught.value).startswith(f"cache folder {cache} cannot be used (")
    assert "--cache or SVGPBENCH_DATA" in str(caught.value)
    assert "\n" not in str(caught.value)


PROGRAM = """
import sys
from dataclasses import replace
from pathlib import Path
from functools import partial
from wanted_files import FAST, entry, fetch_file, unseen, wanted
from svgpbench_datasets import DataError
from svgpbench_datasets.sources import check_form
def tell(progress):
    print(progress.doing, flush=True)
cache, url, readers_id, kind = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
file = {"sha256": wanted, "form": unseen}[kind](url)
how = {"limits": replace(FAST, silence_s=20), "accept": partial(check_form, entry(unseen(url)))}
if readers_id:
    import os
    os.setgid(readers_id)
    os.setuid(readers_id)
try:
    print(fetch_file(file, cache=cache, on_progress=tell, **how))
except DataError as error:
    print(error)
"""


def started(cache: Path, url: str, user: int = 0, kind: str = "sha256") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(cache), url, str(user), kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )


@pytest.mark.parametrize(
    ("kind", "content", "path"),
    [("sha256", CONTENT, "set/data.txt"), ("form", ROADS, "roads/roads.txt")],
    ids=["sha256", "form"],  # pytest 8.0 would name them by all their bytes
)
def test_two_processes_at_once_download_once(
    server: Server, cache: Path, kind: str, content: bytes, path: str
) -> None:
    gate = threading.Event()
    url = server.serve("/f", content, gate=gate)
    first = started(cache, url, kind=kind)
    assert until(lambda: server.asked("/f"), within_s=30)
    second = started(cache, url, kind=kind)
    assert second.stdout is not None
    assert "waiting" in second.stdout.readline()
    gate.set()
    outputs = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert [output.splitlines()[-1] for output in outputs] == [str(cache / path)] * 2
    assert len(server.requests) == 1
    assert server.sent("/f") == len(content)


def test_a_killed_download_lets_go_of_its_lock_and_leaves_nothing(
    server: Server, cache: Path
) -> None:
    url = server.serve("/f", CONTENT, delay_s=0.05, piece=50_000)
    first = started(cache, url)
    assert until(lambda: server.sent("/f") >= 100_000)
    first.kill()
    first.communicate()
    assert not (cache / "set/data.txt").exists()
    assert fetch_file(wanted(url), cache=cache).read_bytes() == CONTENT
    assert left_in(cache) == {"set/data.txt"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_full_disk_is_one_line_and_not_the_places_fault(cache: Path, tmp_path: Path) -> None:
    for folder in (cache, tmp_path):
        (folder / "set").mkdir(parents=True)
    (tmp_path / "set/data.txt").write_bytes(CONTENT)
    (cache / "set/.data.txt.unverified").symlink_to("/dev/full")
    with pytest.raises(DataError) as caught:
        fetch_file(wanted("http://up/f"), cache=cache, mirrors=[str(tmp_path)])
    assert str(caught.value) == (
        f"cache folder {cache} cannot be used (No space left on device); name another with "
        "--cache or SVGPBENCH_DATA"
    )
    assert left_in(cache) == set()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach: pytest's own lie below one that is closed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")
def test_a_read_only_cache_serves_what_it_has_and_refuses_the_rest(
    server: Server, open_folder: Path
) -> None:
    url, cache = server.serve("/f", CONTENT), open_folder
    cache.chmod(0o555)
    user = 65534 if os.getuid() == 0 else 0  # nothing is read-only to root
    output = started(cache, url, user).communicate(timeout=20)[0]
    assert output.startswith(f"cache folder {cache} cannot be used (Permission denied at {cache}/")
    assert len(output.splitlines()) == 1
    cache.chmod(0o755)
    path = fetch_file(wanted(url), cache=cache)
    path.parent.chmod(0o555)
    cache.chmod(0o555)
    try:
        assert started(cache, url, user).communicate(timeout=20)[0].strip() == str(path)
    finally:
        cache.chmod(0o755)
        path.parent.chmod(0o755)
