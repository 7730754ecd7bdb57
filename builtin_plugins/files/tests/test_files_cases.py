"""The path cases with known answers, on a real tree full of links, with either way of opening."""

from __future__ import annotations

import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkeel import ToolError

pytestmark = pytest.mark.requirement("G4")

CASES = Path(__file__).resolve().parents[3] / "tests" / "cases"
LINES: list[dict[str, Any]] = [json.loads(line) for line in (CASES / "paths.jsonl").read_text().splitlines()]

NOT_HERE = {
    "delete": "no tool deletes",
    "rename": "no tool renames",
    "mklink": "no tool makes links",
    "extract": "no tool unpacks archives",
    "manifest": "manifests are read by the kernel",
    "race": "raced for real in test_files_races",
}
"""Operations that no file tool does."""

MORE = [
    # names that only look odd: what exists is read
    *[("read", path, True) for path in (
        "sp ace.txt", "ünï.txt", "a..b.txt", "new\nline.txt", "%2e%2e", "back\\slash.txt", "colon:x.txt", "~",
        "dir//b.txt", "./dir/./b.txt", "dir/deep/../../a.txt", "dir/link_up_in", "dir_in/b.txt", "dir_in/../a.txt",
        "{ROOT}//a.txt", "{ROOT}/dir/../a.txt", "{ROOT}/link_abs_in", ".../../a.txt",
    )],
    *[("read", path, False) for path in (
        "", ".", "..", "/", "//etc/passwd", "{ROOT}", "{ROOT}/", "{ROOT}/..", "a.txt/", "a.txt/.", "a.txt/..",
        "a.txt/../a.txt", "link_in/", "missing/../a.txt", "fifo", "hard", "dangling", "link_root",
        "link_root/etc/passwd", "link_proc", "link_cwd/a.txt", "dirlink_out", "dirlink_out/../ws/a.txt",
        "../ws/a.txt", "{ROOT}/../ws/a.txt", ".git/config", ".GIT/config", ".git/../.git/config", ".git/../a.txt",
        ".env.", ".ENV", "．env", ".en\u200dv", ".env::$DATA", "．．/outside/secret.txt", "..／outside／secret.txt",
        "..＼outside＼secret.txt", ".. /outside/secret.txt", "dir\\..\\..\\outside\\secret.txt",
        "C:\\Windows\\win.ini", "file:///etc/passwd", "a.txt\n", "\u202ea.txt", "a.txt\0", "\ud800", "x" * 300,
        "/dev/null", "/proc/self/fd/0", "plugins/p1/skills/../../../outside/secret.txt",
    )],
    *[("write", path, True) for path in (
        "new.txt", "made/on/the/way.txt", "dir/new.txt", "link_in", "dir_in/new.txt", "dir/link_up_in",
        "link_abs_in", "{ROOT}/abs.txt", "...x", ".../new.txt", "naïve.txt", "日本.txt", "👩\u200d💻.txt", "$types.ts",
        ".github/x.yml",
    )],
    *[("write", path, False) for path in (
        "", ".", "dir", "dir/", "new/", "new/.", "new/..", "..", "../x", "made/../../x", "new/../x",
        "dirlink_out/x", "link_out_rel", "link_chain", "link_loop", "link_root/tmp/x", "link_cwd/x",
        "plugins/p1/skills/x", "hard", "fifo", "sock", ".env", ".env.local", ".Env", "deep/.env", "key.pem",
        "KEY.PEM", "id_rsa", ".ssh/config", ".git", ".git/hooks/pre-commit", "sub/.git/hooks/x", "GIT~1/config",
        ".git./config", ".git /config", ".gıt\u2060/config\0", ".vscode/tasks.json", ".toolkeel/config.yaml",
        "a\u202etxt.exe", "a\u200b.txt", "a\nb.txt", "a\x7f.txt", "..\\x", "a\\b.txt", "C:x", "C:/x", "c:\\x",
        "a.txt::$DATA", "CON", "nul.txt", "dir/aux", "COM1.log", "x.", "x ", "~/.ssh/id_rsa", "${HOME}/x",
        "%TEMP%/x", "..%2fx", "%2e%2e/x", "x/%2e%2e%2fy", "{ROOT}-evil/x", "/etc/x",
    )],
    *[("list", path, True) for path in (".", "./", "dir", "dir/", "dir_in", "{ROOT}", "{ROOT}/dir", "...")],
    *[("list", path, False) for path in (
        "..", "/", "a.txt", "dirlink_out", "link_root", "link_cwd", ".git", "plugins/p1/skills", "link_loop",
        "fifo",
    )],
]  # fmt: skip
"""Cases beyond the file: what each guard here is for, and what it must let by."""


def tree(base: Path) -> Path:
    base.mkdir(parents=True)
    before, sys.argv = sys.argv, ["paths_fixture.py", str(base)]
    try:
        runpy.run_path(str(CASES / "paths_fixture.py"))
    finally:
        sys.argv = before
    return base


def everything(base: Path) -> dict[str, object]:
    """The whole tree as data: what is where, and what is in it."""
    found: dict[str, object] = {}
    for path in sorted(base.rglob("*")):
        at = str(path.relative_to(base))
        if path.is_symlink():
            found[at] = ("link", str(path.readlink()))
        elif path.is_file():
            found[at] = path.read_bytes()
        else:
            found[at] = oct(path.lstat().st_mode)
    return found


def attempt(call: Callable[..., str], op: str, path: str) -> str:
    if op == "read":
        return call("file_read", path)
    if op == "list":
        return call("file_list", path)
    return call("file_write", path, "WRITTEN", mode="overwrite")


def check(call: Callable[..., str], base: Path, op: str, path: str, allow: bool) -> None:
    root = base / "ws"
    path = path.replace("{ROOT}", str(root))
    before = everything(base)
    started = time.monotonic()
    if allow:
        answer = attempt(call, op, path)
        assert "SECRET" not in answer
        if op == "read":
            assert answer == "ok"
        if op == "write":
            at = root / path
            assert at.read_text() == "WRITTEN"
            assert at.resolve().is_relative_to(root)
    else:
        with pytest.raises(ToolError) as refused:
            attempt(call, op, path)
        assert "SECRET" not in str(refused.value)
        assert "\n" not in str(refused.value)
        assert everything(base) == before
    assert time.monotonic() - started < 5
    after = everything(base)
    assert {at: what for at, what in after.items() if not at.startswith("ws/")} == {
        at: what for at, what in before.items() if not at.startswith("ws/")
    }


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tree(tmp_path.resolve() / "base")


@pytest.mark.parametrize("case", [line for line in LINES if line["op"] not in NOT_HERE], ids=lambda case: case["id"])
def test_a_path_case_is_answered_as_known(
    case: dict[str, Any], base: Path, caller: Callable[..., Callable[..., str]]
) -> None:
    check(caller(base / "ws"), base, case["op"], case["path"], case["allow"])


@pytest.mark.parametrize(
    ("op", "path", "allow"), MORE, ids=lambda value: ascii(value) if isinstance(value, str) else None
)
def test_a_further_path_is_answered_as_intended(
    op: str, path: str, allow: bool, base: Path, caller: Callable[..., Callable[..., str]]
) -> None:
    check(caller(base / "ws"), base, op, path, allow)


def test_every_operation_of_the_cases_is_tried_or_left_to_others_by_name() -> None:
    assert {line["op"] for line in LINES} - {"read", "write", "list"} <= set(NOT_HERE)


def test_the_case_of_an_absolute_canary_left_nothing_behind() -> None:
    assert not Path("/tmp/canary_evil").exists()
