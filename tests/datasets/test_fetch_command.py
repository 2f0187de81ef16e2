"""`svgpbench fetch` as a user runs it: another package's data sets, a server that misbehaves."""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

from faulty_server import Server
from interpreter import Done, python
from wanted_files import CONTENT, PAGE, ROADS, entry, left_in, unseen, wanted

Run = Callable[..., Done]


def test_a_download_with_everything_it_prints(
    server: Server, cache: Path, declare: Callable[..., None], fetch: Run
) -> None:
    file = wanted(server.serve("/f", CONTENT, break_after=100_000), path="far/data.txt")
    lost = wanted(f"{server.url}/lost", content=b"lost", path="lost/data.txt")
    declare(far=[file], again=[file], lost=[lost])
    planned = fetch("boston", "far", "again", "--dry-run")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert "housing.data.xz" in planned.stdout
    assert "needs no download" in planned.stdout
    assert planned.stdout.count(f"\nfar/data.txt from {server.url}/f\n") == 1  # on a line, once
    assert f"1 to download, at most 300 kB, to {cache}" in planned.stdout
    assert server.requests == []
    assert not cache.exists()

    done = fetch("lost", "far", "again", "boston", "--json")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "lost/data.txt: " + f"{server.url}/lost: HTTP 404 Not Found",
        f"error: lost/data.txt could not be had ({server.url}/lost: HTTP 404 Not Found); get "
        "it by other means, then run `svgpbench fetch lost --from FILE`, or name a mirror with "
        "--mirror or SVGPBENCH_MIRROR",
        "far/data.txt: downloading 300 kB",
        "far/data.txt: broke off after 100,000 of 300,000 bytes; trying again",
        "far/data.txt: downloading 300 kB",
    ]
    content = json.loads(done.stdout)
    assert content["cache"] == str(cache)
    states = [(row["name"], row["state"], row["at"]) for row in content["files"]]
    at = str(cache / "far/data.txt")
    assert states[:3] == [
        ("lost", "failed", None),
        ("far", "fetched", at),
        ("again", "fetched", at),
    ]
    assert states[3] == ("boston", "shipped", None)
    answer = {"place": f"{server.url}/lost", "why": "HTTP 404 Not Found"}
    assert content["files"][0]["answers"] == [answer]
    assert server.sent("/f") == len(CONTENT) + 100_000
    assert left_in(cache) == {"far/data.txt"}


def test_a_mirror_and_a_cache_from_options_go_before_the_environments(
    server: Server, cache: Path, tmp_path: Path, declare: Callable[..., None], fetch: Run
) -> None:
    declare(far=[wanted(f"{server.url}/upstream", path="far/data.txt")])
    server.serve("/m/far/data.txt", CONTENT)
    (tmp_path / "empty").mkdir()
    elsewhere = tmp_path / "elsewhere"
    options = ("--mirror", tmp_path / "empty", "--mirror", f"{server.url}/m", "--cache", elsewhere)
    done = fetch("far", *options, SVGPBENCH_MIRROR="/nowhere")
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "far/data.txt").read_bytes() == CONTENT
    assert not cache.exists()
    assert {request.path.partition("/far")[0] for request in server.requests} == {"/m"}


def test_an_archive_downloaded_by_hand_is_taken(
    cache: Path, tmp_path: Path, declare: Callable[..., None], fetch: Run
) -> None:
    file = wanted("http://nowhere.invalid/a.zip", member="in/data.txt", path="far/data.txt")
    declare(far=[file])
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        archive.writestr("in/data.txt", CONTENT)
    done = fetch("far", "--from", tmp_path / "mine.zip")
    assert (done.returncode, done.stderr) == (0, "")
    assert "was fetched" in done.stdout
    assert left_in(cache) == {"far/data.txt"}


def test_the_command_says_what_every_dead_address_answered_and_what_to_do(
    cache: Path, declare: Callable[..., None], fetch: Run
) -> None:
    dead = ["http://127.0.0.1:9/one", "http://127.0.0.1:9/two"]
    declare(roads=entry(unseen(*dead)), arm=entry(unseen(), name="arm"))
    done = fetch("roads", "arm", "boston")
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 2
    assert all(re.search(rf"{url}: connection failed \([^)]*refused\)", errors[0]) for url in dead)
    assert "`svgpbench fetch roads --from FILE`" in errors[0]
    assert "(no place is known that serves it); get it by other means" in errors[1]
    assert "`svgpbench fetch arm --from FILE`" in errors[1]
    assert done.stdout.count("could not be had") == 2
    assert "needs no download" in done.stdout
    planned = fetch("arm", "--dry-run")
    assert "by hand: svgpbench fetch arm --from FILE" in planned.stdout
    assert left_in(cache) == set()


def test_the_command_prints_the_sha256_that_it_found(
    server: Server, tmp_path: Path, declare: Callable[..., None], fetch: Run
) -> None:
    declare(roads=entry(unseen(server.serve("/roads", ROADS))), arm=entry(unseen(), name="arm"))
    found = hashlib.sha256(ROADS).hexdigest()
    words = f"no sha256 is published, this one was found:\n{found}  roads/roads.txt\n"
    done = fetch("roads")
    assert done.returncode == 0, done.stderr
    assert "was fetched, told by its form" in done.stdout
    assert words in done.stdout
    (row,) = json.loads(fetch("roads", "--json").stdout)["files"]
    assert (row["state"], row["told_by"]) == ("cached", "form")
    assert (row["sha256"], row["sha256_is"]) == (found, "found")
    (tmp_path / "mine").write_bytes(PAGE)
    refused = fetch("arm", "--from", tmp_path / "mine", "--cache", tmp_path / "other")
    assert refused.returncode == 2
    assert "is not what is wanted (as roads/roads.txt: not of the declared form" in refused.stderr
    (tmp_path / "mine").write_bytes(ROADS)
    taken = fetch("arm", "--from", tmp_path / "mine", "--cache", tmp_path / "other")
    assert (taken.returncode, taken.stderr) == (0, "")
    assert found in taken.stdout


def test_a_set_that_is_made_is_told_how_and_is_not_there_before(cache: Path, fetch: Run) -> None:
    absent = fetch("walker-stand-in", "sinc")
    assert absent.returncode == 1
    assert "make it: `python datasets/scripts/make_walker.py` in a clone" in absent.stdout
    assert "is drawn from its seed when it is loaded" in absent.stdout
    (cache / "walker").mkdir(parents=True)
    (cache / "walker" / "walker.parquet").touch()
    there = fetch("walker-stand-in", "--json")
    assert there.returncode == 0
    (row,) = json.loads(there.stdout)["without_files"]
    assert row == {"name": "walker-stand-in", "at_hand": True, "how": "was made"}


MISTAKES = [
    ((), "name a data set, or give --experiment or --all"),
    (("bostn",), "unknown data set 'bostn'; did you mean 'boston'?"),
    (("--experiment", "adam2021-fig33"), "did you mean 'adam2021-fig3'?"),
    (("far", "--mirror", "file:///tmp"), "mirror 'file:///tmp' is neither a folder nor an http"),
    (("far", "--mirror", "/nowhere"), "mirror '/nowhere' is neither a folder nor an http"),
    (("far", "--from", "nothing"), "--from nothing: no such file"),
    (("far", "--from", "other"), "--from other is not what is wanted (as far/data.txt: wrong cont"),
    (("far", "boston", "--from", "other"), "--from is for one data set, not for 2"),
    (("boston", "--from", "other"), "boston comes with the package: --from is not needed"),
    (("sinc", "--from", "other"), "sinc has no files: --from is not needed"),
    (("far", "--from", "other", "--dry-run"), "--from downloads nothing"),
    (("far", "--cache", "other"), "cache folder other cannot be used ("),
]


def test_a_mistake_is_one_line_and_exit_code_two(
    cache: Path, tmp_path: Path, declare: Callable[..., None]
) -> None:
    declare(far=[wanted("http://nowhere.invalid/f", content=b"1", path="far/data.txt")])
    (tmp_path / "other").write_bytes(b"2")
    program = "import sys, json; from svgpbench.cli.application import exit_code\n"
    program += "print([exit_code(['fetch', *a]) for a in json.loads(sys.argv[1])])"
    many = python(
        *("-c", program, json.dumps([arguments for arguments, _ in MISTAKES])),
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": f"{tmp_path / 'package'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        | {"SVGPBENCH_DATA": str(cache), "SVGPBENCH_MIRROR": ""},
    )
    assert many.stdout.strip() == str([2] * len(MISTAKES)), many.stderr
    lines = many.stderr.splitlines()
    assert len(lines) == len(MISTAKES)
    for line, (_, message) in zip(lines, MISTAKES, strict=True):
        assert line.startswith("error: ")
        assert message in line
    assert left_in(cache) == set()
