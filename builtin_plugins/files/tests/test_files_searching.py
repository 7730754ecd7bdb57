"""code_search: linear, bounded, and what it leaves out."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkeel import ToolError
from toolkeel_files.patterns import Ignored

pytestmark = pytest.mark.requirement("G4")


def found(answer: str) -> list[str]:
    return answer.splitlines()[1:]


@pytest.fixture
def filled(workspace: Path) -> Path:
    for path, text in {
        "a.py": "import os\n\ndef needle():\n    pass\n",
        "b.txt": "no\nneedle and Needle\n",
        "src/c.py": "x = 1\nneedle(x)\n",
        "node_modules/d.js": "needle\n",
        ".git/config": "needle\n",
        ".env": "needle\n",
        ".github/e.yml": "needle\n",
    }.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    (workspace / "g.bin").write_bytes(b"needle\0\1")
    return workspace


def test_matches_come_with_path_and_line_and_a_summary(call: Callable[..., str], filled: Path) -> None:
    assert call("code_search", "needle").splitlines() == [
        "[4 matches in 4 files; 4 files searched, 78 bytes; left out: 1 binary, 1 ignored, 2 protected]",
        ".github/e.yml:1: needle",
        "a.py:3: def needle():",
        "b.txt:2: needle and Needle",
        "src/c.py:2: needle(x)",
    ]


def test_nothing_found_says_how_much_was_searched(call: Callable[..., str], filled: Path) -> None:
    assert call("code_search", "nowhere").startswith("[no match; 4 files searched")


def test_context_lines_are_shown_once_and_groups_are_set_apart(call: Callable[..., str], workspace: Path) -> None:
    lines = ["1", "hit", "3", "4", "hit", "6", "7", "8", "9", "hit"]
    (workspace / "a").write_text("\n".join(lines))
    assert found(call("code_search", "hit", around=1)) == [
        "a-1- 1", "a:2: hit", "a-3- 3", "a-4- 4", "a:5: hit", "a-6- 6", "--", "a-9- 9", "a:10: hit",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "options", "lines"),
    [
        (r"^needle", {"regex": True}, [".github/e.yml:1", "b.txt:2", "src/c.py:2"]),
        (r"needle\(", {"regex": True}, ["a.py:3", "src/c.py:2"]),
        (r"\)$", {"regex": True}, ["src/c.py:2"]),
        (r"os\s+def", {"regex": True}, []),
        ("NEEDLE(", {"ignore_case": True}, ["a.py:3", "src/c.py:2"]),
        ("needle(", {"glob": "*.py"}, ["a.py:3", "src/c.py:2"]),
        ("needle(", {"glob": "src/"}, ["src/c.py:2"]),
        ("needle", {"path": "src"}, ["src/c.py:2"]),
        ("needle", {"path": "a.py"}, ["a.py:3"]),
        ("needle", {"path": "node_modules"}, ["node_modules/d.js:1"]),
        ("needle", {"ignored": True, "glob": "*.js"}, ["node_modules/d.js:1"]),
        ("os\n\ndef", {}, ["a.py:1"]),
    ],
)
def test_what_is_asked_for_is_found(
    call: Callable[..., str], filled: Path, query: str, options: dict[str, object], lines: list[str]
) -> None:
    assert [line.split(": ")[0] for line in found(call("code_search", query, **options))] == lines


def test_an_expression_that_is_none_is_an_error_that_says_what_may_be(call: Callable[..., str], filled: Path) -> None:
    with pytest.raises(ToolError, match=r"no regular expression: missing \).*RE2 has no look-around"):
        call("code_search", "(a", regex=True)
    with pytest.raises(ToolError, match="empty"):
        call("code_search", "")


def test_an_expression_that_would_explode_elsewhere_stays_linear(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_text("a" * 50_000)
    started = time.monotonic()
    assert call("code_search", "(a+)+$b|(a|aa)+c", regex=True).startswith("[no match")
    assert time.monotonic() - started < 2


def test_a_long_line_is_cut_around_the_match(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_text("é" * 50_000 + "needle" + "é" * 50_000)
    [line] = found(call("code_search", "needle"))
    assert "needle" in line
    assert line.startswith("a.txt:1: …é")
    assert line.endswith("é…")
    assert len(line) < 320


def test_matches_are_bounded_and_say_so(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n" * 50)
    answer = call("code_search", "x", limit=10)
    assert answer.startswith("[10 matches in 1 file")
    assert "stopped after 10 matches: narrow the query, the path or the glob]" in answer
    assert len(found(answer)) == 10
    assert "stopped" not in call("code_search", "x", limit=50)


def test_bytes_are_bounded_and_say_so(caller: Callable[..., Callable[..., str]], workspace: Path) -> None:
    for number in range(10):
        (workspace / f"{number}.txt").write_text("x" * 1_000)
    answer = caller(workspace, search_bytes=3_000)("code_search", "y")
    assert answer == (
        "[no match; 3 files searched, 3,000 bytes; "
        "stopped after 3,000 bytes, in 2.txt: narrow the query, the path or the glob]"
    )


def test_time_is_bounded_and_says_so(caller: Callable[..., Callable[..., str]], workspace: Path) -> None:
    for number in range(10):
        (workspace / f"{number}.txt").write_text("x")
    answer = caller(workspace, seconds=0.000_001)("code_search", "y")
    assert "stopped after 1e-06 s" in answer


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_every_unicode_encoding_is_searched(call: Callable[..., str], workspace: Path, encoding: str) -> None:
    (workspace / "a.txt").write_bytes("eins\r\nGrüße\r\n".encode(encoding))
    assert found(call("code_search", "Grüße")) == ["a.txt:2: Grüße"]
    assert found(call("code_search", "^eins$", regex=True)) == ["a.txt:1: eins"]


def test_a_large_file_is_searched_in_pieces_with_right_line_numbers(call: Callable[..., str], workspace: Path) -> None:
    lines = 700_000
    (workspace / "a.log").write_bytes(b"".join(b"line %07d of a log that is long\n" % n for n in range(1, lines + 1)))
    assert found(call("code_search", "line 0699999")) == ["a.log:699999: line 0699999 of a log that is long"]
    assert [line.split(":")[1] for line in found(call("code_search", "000000 of"))] == [
        str(number) for number in range(1_000_000, lines + 1, 1_000_000)
    ]
    hits = found(call("code_search", "00000 of", limit=1_000))
    assert [line.split(":")[1] for line in hits] == [
        "100000",
        "200000",
        "300000",
        "400000",
        "500000",
        "600000",
        "700000",
    ]


def test_a_hard_link_to_outside_is_not_searched(call: Callable[..., str], workspace: Path) -> None:
    outside = workspace.parent / "secret.txt"
    outside.write_text("needle")
    os.link(outside, workspace / "hard")
    assert call("code_search", "needle").startswith("[no match; 0 files searched, 0 bytes; left out: 1 hard links")


def test_pipes_and_links_are_passed_over(call: Callable[..., str], workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "out").symlink_to("/etc")
    assert call("code_search", "root").startswith("[no match; 0 files searched")


def test_several_folders_are_searched_and_named(caller: Callable[..., Callable[..., str]], tmp_path: Path) -> None:
    base = tmp_path.resolve()
    for name in ("api", "web"):
        (base / name / "src").mkdir(parents=True)
        (base / name / "src" / "m.py").write_text("needle")
    call = caller(base / "api", base / "web")
    assert found(call("code_search", "needle")) == ["api:src/m.py:1: needle", "web:src/m.py:1: needle"]
    assert found(call("code_search", "needle", path="web:src")) == ["web:src/m.py:1: needle"]


IGNORES = {
    ".gitignore": "*.log\n!keep.log\n/build/\nsub/*.tmp\n\n# a comment\n\\#x\ntrailing \n[z-a]\n**/cache/\ndoc/**/x\n",
    "sub/.gitignore": "!special.log\n*.py\n/only_here\n",
    "sub/deep/.gitignore": "!back.py\n",
}
FILES = (
    "a.log", "keep.log", "a.txt", "build/x", "sub/build/x", "sub/a.tmp", "a.tmp", "sub/deep/a.tmp", "sub/special.log",
    "sub/other.log", "sub/m.py", "m.py", "sub/deep/m.py", "sub/deep/back.py", "sub/only_here", "only_here", "#x",
    "trailing", "cache/a", "sub/cache/b", "doc/a/b/x", "doc/x", "x", "sub/deep/special.log",
)  # fmt: skip


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_what_gitignore_files_leave_out_is_what_git_leaves_out(call: Callable[..., str], workspace: Path) -> None:
    for path, text in (*IGNORES.items(), *((path, "needle\n") for path in FILES)):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    subprocess.run(["git", "init", "-q", workspace], check=True)
    listed = subprocess.run(
        ["git", "-C", workspace, "ls-files", "-z", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    kept = sorted(path for path in listed if path in FILES)
    assert sorted(line.rpartition(":1: ")[0] for line in found(call("code_search", "needle"))) == kept
    below = sorted(path for path in kept if path.startswith("sub/"))
    assert sorted(line.rpartition(":1: ")[0] for line in found(call("code_search", "needle", path="sub"))) == below


def test_a_folder_that_is_ignored_is_searched_when_it_is_asked_for(call: Callable[..., str], workspace: Path) -> None:
    (workspace / ".gitignore").write_text("build/\n")
    (workspace / "build" / "x").mkdir(parents=True)
    (workspace / "build" / "x" / "a.txt").write_text("needle")
    assert found(call("code_search", "needle")) == []
    assert found(call("code_search", "needle", path="build")) == ["build/x/a.txt:1: needle"]
    assert found(call("code_search", "needle", path="build/x")) == ["build/x/a.txt:1: needle"]
    assert found(call("code_search", "needle", ignored=True)) == ["build/x/a.txt:1: needle"]


@given(st.lists(st.text(st.sampled_from("ab*?[]!/\\#. {}\n-"), max_size=8), max_size=4))
def test_no_rules_of_a_gitignore_file_are_too_odd(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.getbasetemp() / "rules"
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("\n".join(lines))
    opened = os.open(folder, os.O_RDONLY)
    try:
        ignored = Ignored()
        ignored.enter(opened, "")
        assert ignored.ignores("a/b", folder=False) in (True, False)
    finally:
        os.close(opened)


def test_a_repository_of_five_thousand_files_is_searched_in_about_a_second(
    call: Callable[..., str], workspace: Path
) -> None:
    text = "def function(argument):\n    return argument + 1\n\n" * 60
    for folder in range(100):
        (workspace / f"package_{folder:03}").mkdir()
        for number in range(50):
            (workspace / f"package_{folder:03}" / f"module_{number:02}.py").write_text(text)
    (workspace / ".gitignore").write_text(
        "*.pyc\n__pycache__/\n/build/\n*.egg-info/\n" + "".join(f"/x{n}/\n" for n in range(50))
    )
    (workspace / "package_099" / "last.py").write_text("needle_42\n")
    best = 60.0
    for _ in range(3):
        started = time.monotonic()
        assert found(call("code_search", r"needle_\d+", regex=True)) == ["package_099/last.py:1: needle_42"]
        best = min(best, time.monotonic() - started)
    assert best < 2  # about 0.3 s on a machine with nothing else to do


def test_a_gitignore_of_any_size_costs_no_search(tmp_path: Path) -> None:
    from toolkeel_files.patterns import Ignored

    (tmp_path / ".gitignore").write_text("".join(f"some/folder/*/file{number}*.txt\n" for number in range(5_000)))
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        ignored = Ignored()
        ignored.enter(folder, "")
    finally:
        os.close(folder)
    assert ignored.ignores("some/folder/a/file7b.txt", folder=False)
    assert not ignored.ignores("other.txt", folder=False)
