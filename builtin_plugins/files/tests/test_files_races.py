"""Races that are run for real: another process swaps files, links and folders while the tools work."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from toolkeel import ToolError

pytestmark = [
    pytest.mark.requirement("G4"),
    pytest.mark.skipif(sys.platform != "linux", reason="the swapping process exchanges names by a Linux call"),
]

ROUNDS = 3_000
LIMIT = 20.0
"""Seconds after which a race that has not shown both outcomes is given up."""

SWAP_FILE = """
import os, sys
ws, outside = sys.argv[1:]
print("ready", flush=True)
while True:
    os.symlink(outside + "/secret.txt", ws + "/.next"); os.replace(ws + "/.next", ws + "/{name}")
    open(ws + "/.next", "w").write("inside"); os.replace(ws + "/.next", ws + "/{name}")
"""

SWAP_FOLDER = """
import ctypes, os, sys
ws, outside = sys.argv[1:]
os.symlink(outside, ws + "/link")
exchange = ctypes.CDLL(None).renameat2
d, link = os.fsencode(ws + "/d"), os.fsencode(ws + "/link")
print("ready", flush=True)
while exchange(-100, d, -100, link, 2) == 0:
    pass
"""

SWAP_DEEP = """
import os, sys
ws, outside = sys.argv[1:]
print("ready", flush=True)
while True:
    os.rename(ws + "/d/e", ws + "/e"); os.rename(ws + "/e", ws + "/d/e")
"""


@contextmanager
def swapping(script: str, workspace: Path, outside: Path) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", script, workspace, outside], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
        assert process.poll() is None, "the swapping stopped"
    finally:
        process.kill()
        process.communicate()


def race(attempt: Callable[[int], str]) -> tuple[list[str], list[str]]:
    """Answers and refusals of many attempts; goes on until there are some of both."""
    answers: list[str] = []
    refusals: list[str] = []
    end = time.monotonic() + LIMIT
    round_ = 0
    while round_ < ROUNDS or not (answers and refusals):
        round_ += 1
        try:
            answers.append(attempt(round_))
        except ToolError as error:
            refusals.append(str(error))
        if time.monotonic() > end:
            break
    return answers, refusals


@pytest.fixture
def outside(workspace: Path) -> Path:
    folder = workspace.parent / "outside"
    (folder / "e").mkdir(parents=True)
    for path in (folder / "secret.txt", folder / "a.txt", folder / "e" / "a.txt"):
        path.write_text("SECRET")
    return folder


@pytest.fixture
def folders(workspace: Path) -> Path:
    (workspace / "d" / "e").mkdir(parents=True)
    for path in (workspace / "d" / "a.txt", workspace / "d" / "e" / "a.txt"):
        path.write_text("inside")
    return workspace


def untouched(outside: Path) -> bool:
    files = {path: path.read_text() for path in outside.rglob("*") if path.is_file()}
    return set(files.values()) == {"SECRET"} and len(files) == 3


def test_a_file_that_is_swapped_for_a_link_is_never_read_through_it(
    call: Callable[..., str], workspace: Path, outside: Path
) -> None:
    (workspace / "a.txt").write_text("inside")
    with swapping(SWAP_FILE.format(name="a.txt"), workspace, outside):
        answers, refusals = race(lambda _: call("file_read", "a.txt"))
    assert set(answers) <= {"inside", "[a.txt is empty]"}
    assert answers
    assert refusals


def test_a_file_that_is_swapped_for_a_link_is_never_written_through_it(
    call: Callable[..., str], workspace: Path, outside: Path
) -> None:
    (workspace / "a.txt").write_text("inside")
    with swapping(SWAP_FILE.format(name="a.txt"), workspace, outside):
        answers, refusals = race(lambda number: call("file_write", "a.txt", f"{number}", mode="overwrite"))
    assert answers
    assert refusals
    assert untouched(outside)


def test_a_folder_that_is_swapped_for_a_link_is_never_read_through_it(
    call: Callable[..., str], folders: Path, outside: Path
) -> None:
    with swapping(SWAP_FOLDER, folders, outside):
        for path in ("d/a.txt", "d/e/../e/a.txt"):
            answers, refusals = race(lambda _, path=path: call("file_read", path))
            assert set(answers) == {"inside"}
            assert refusals


def test_a_folder_that_is_swapped_for_a_link_is_never_written_through_it(
    call: Callable[..., str], folders: Path, outside: Path
) -> None:
    with swapping(SWAP_FOLDER, folders, outside):
        answers, refusals = race(lambda number: call("file_write", "d/e/new.txt", f"{number}", mode="overwrite"))
    assert answers
    assert refusals
    assert untouched(outside)


def test_folders_made_on_the_way_are_never_made_through_a_link(
    call: Callable[..., str], folders: Path, outside: Path
) -> None:
    with swapping(SWAP_FOLDER, folders, outside):
        answers, refusals = race(lambda number: call("file_write", f"d/{number}/x/new.txt", "x"))
    assert answers
    assert refusals
    assert untouched(outside)
    assert sorted(path.name for path in outside.iterdir()) == ["a.txt", "e", "secret.txt"]


def test_a_folder_that_is_swapped_for_a_link_is_never_listed_or_searched_through_it(
    call: Callable[..., str], folders: Path, outside: Path
) -> None:
    (outside / "only_outside.txt").write_text("SECRET")
    with swapping(SWAP_FOLDER, folders, outside):
        for _ in range(ROUNDS // 3):
            assert "only_outside" not in call("file_list", depth=0)
            assert "SECRET" not in call("code_search", "SECRET").partition("\n")[2]


def test_a_folder_that_is_moved_while_dots_climb_out_of_it_gives_nothing_from_above(
    call: Callable[..., str], folders: Path, outside: Path
) -> None:
    (folders / "a.txt").write_text("top")
    with swapping(SWAP_DEEP, folders, outside):
        answers, _ = race(lambda _: call("file_read", "d/e/../a.txt"))
    assert set(answers) <= {"inside"}
    assert answers


def test_the_workspace_folder_itself_swapped_for_a_link_is_not_followed(
    caller: Callable[..., Callable[..., str]], folders: Path, outside: Path
) -> None:
    call = caller(folders / "d")
    with swapping(SWAP_FOLDER, folders, outside):
        answers, refusals = race(lambda _: call("file_read", "a.txt"))
    assert set(answers) == {"inside"}
    assert refusals
