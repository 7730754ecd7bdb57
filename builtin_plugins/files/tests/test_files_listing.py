"""file_list: sorted, bounded, links shown as links."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkeel import ToolError

pytestmark = pytest.mark.requirement("G4")


@pytest.fixture
def filled(workspace: Path) -> Path:
    for folder in ("src/deep", "node_modules/x", ".git"):
        (workspace / folder).mkdir(parents=True)
    for name in ("b.txt", "a.py", "src/m.py", "src/deep/n.ts", "node_modules/x/i.js", ".hidden", ".env", ".git/config"):
        (workspace / name).write_text("x" * 3)
    return workspace


def test_a_folder_is_listed_sorted_with_sizes(call: Callable[..., str], filled: Path) -> None:
    assert call("file_list").splitlines() == [
        "[.: 4 entries; 3 hidden entries left out]",
        "a.py  (3 bytes)",
        "b.txt  (3 bytes)",
        "node_modules/",
        "src/",
    ]


def test_hidden_entries_are_shown_on_request_and_protected_ones_marked(call: Callable[..., str], filled: Path) -> None:
    lines = call("file_list", hidden=True).splitlines()
    assert lines[1:4] == [".env  (protected)", ".git/  (protected)", ".hidden  (3 bytes)"]


def test_all_levels_are_listed_but_not_what_is_skipped_or_protected(call: Callable[..., str], filled: Path) -> None:
    lines = call("file_list", depth=0, hidden=True).splitlines()
    assert "node_modules/  (not entered)" in lines
    assert lines[-4:] == ["src/", "src/deep/", "src/deep/n.ts  (3 bytes)", "src/m.py  (3 bytes)"]
    assert not any("config" in line for line in lines)
    assert call("file_list", "node_modules").splitlines() == ["[node_modules: 1 entry]", "node_modules/x/"]


def test_depth_counts_levels(call: Callable[..., str], filled: Path) -> None:
    assert "src/deep/" in call("file_list", depth=2).splitlines()
    assert "n.ts" not in call("file_list", depth=2)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "src/m.py"]),
        ("src/*.py", ["src/m.py"]),
        ("src/**/*.ts", ["src/deep/n.ts"]),
        ("*.{py,ts}", ["a.py", "src/deep/n.ts", "src/m.py"]),
        ("!*.py", ["b.txt", "src/deep/n.ts"]),
        ("./a.*", ["a.py"]),
        ("nothing", []),
        ("#x", []),
    ],
)
def test_a_pattern_looks_at_all_levels(call: Callable[..., str], filled: Path, pattern: str, found: list[str]) -> None:
    lines = call("file_list", pattern=pattern).splitlines()[1:]
    assert [line.partition("  ")[0] for line in lines if not line.split("  ")[0].endswith("/")] == found


@pytest.mark.parametrize("pattern", ["{a,b}" * 30, "x" * 2_000, "***[z-a]"])
def test_a_pattern_that_is_none_or_explodes_is_refused(call: Callable[..., str], filled: Path, pattern: str) -> None:
    with pytest.raises(ToolError, match="pattern"):
        call("file_list", pattern=pattern)


def test_links_are_shown_with_where_they_lead_and_never_followed(call: Callable[..., str], filled: Path) -> None:
    (filled / "in").symlink_to("src")
    (filled / "out").symlink_to("/etc")
    (filled / "gone").symlink_to("missing")
    lines = call("file_list", depth=0).splitlines()
    assert "in -> src" in lines
    assert "out -> /etc  (not followed: it leads out of the workspace or nowhere)" in lines
    assert "gone -> missing  (to nothing)" in lines
    assert not any(line.startswith(("out/", "in/")) for line in lines)


def test_special_files_are_named_for_what_they_are(call: Callable[..., str], workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    assert call("file_list").splitlines()[1:] == ["pipe  (a named pipe)"]


def test_a_long_listing_says_where_it_stopped(call: Callable[..., str], workspace: Path) -> None:
    for number in range(30):
        (workspace / f"{number:02}.txt").touch()
    lines = call("file_list", limit=10).splitlines()
    assert lines[0] == "[.: 10 entries; stopped after 10 entries, before 10.txt: narrow the path or the pattern]"
    assert len(lines) == 11


def test_a_listing_ends_in_time_and_says_so(caller: Callable[..., Callable[..., str]], workspace: Path) -> None:
    for number in range(300):
        (workspace / str(number)).mkdir()
    answer = caller(workspace, seconds=0.000_001)("file_list", depth=0)
    assert "stopped after 1e-06 s" in answer.splitlines()[0]


def test_names_that_do_not_print_are_quoted_so_that_they_can_be_sent_back(
    call: Callable[..., str], workspace: Path
) -> None:
    (workspace / "new\nline.txt").write_text("ok")
    assert call("file_list").splitlines()[1:] == ['"new\\nline.txt"  (2 bytes)']
    assert call("file_read", "new\nline.txt") == "ok"
    (workspace / "👩\u200d💻.txt").write_text("ok")
    assert '"👩\\u200d💻.txt"  (2 bytes)' in call("file_list").splitlines()


def test_names_in_another_encoding_are_counted(call: Callable[..., str], workspace: Path) -> None:
    try:
        os.close(os.open(os.fsencode(workspace) + b"/\xff", os.O_CREAT | os.O_WRONLY))
    except OSError:
        pytest.skip("this disk takes UTF-8 names only")
    assert call("file_list") == "[.: 0 entries; 1 left out (named in another encoding than UTF-8)]"


def test_a_file_is_not_listed(call: Callable[..., str], filled: Path) -> None:
    with pytest.raises(ToolError, match=r"a.py: this is not a folder. file_read reads a file"):
        call("file_list", "a.py")


def test_every_workspace_folder_is_listed_by_name(caller: Callable[..., Callable[..., str]], tmp_path: Path) -> None:
    base = tmp_path.resolve()
    for name in ("api", "web"):
        (base / name).mkdir()
        (base / name / f"{name}.txt").touch()
    assert caller(base / "api", base / "web")("file_list").splitlines() == [
        "[api:.: 1 entry]",
        "api:api.txt  (0 bytes)",
        "[web:.: 1 entry]",
        "web:web.txt  (0 bytes)",
    ]
