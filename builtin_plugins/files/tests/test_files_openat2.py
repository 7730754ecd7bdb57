"""Opening by the Linux kernel, and going on without it where it is missing or forbidden."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from toolkeel_files import openat2

pytestmark = [
    pytest.mark.requirement("G4"),
    pytest.mark.skipif(not openat2.usable(), reason="this system has no openat2"),
]


def attempt(folder: Path, path: str) -> int:
    """The error number of an attempt, 0 when it opened."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.close(openat2.open_beneath(opened, path, os.O_RDONLY))
    except OSError as error:
        return error.errno or -1
    finally:
        os.close(opened)
    return 0


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("a.txt", 0),
        ("sub/../a.txt", 0),
        ("link", errno.ELOOP),
        ("link_folder/b.txt", errno.ELOOP),
        ("../a.txt", errno.EXDEV),
        ("sub/../../x", errno.EXDEV),
        ("/etc/passwd", errno.EXDEV),
        ("missing", errno.ENOENT),
    ],
)
def test_the_kernel_keeps_an_opening_beneath_and_off_links(tmp_path: Path, path: str, code: int) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "sub" / "b.txt").write_text("b")
    (tmp_path / "link").symlink_to("a.txt")
    (tmp_path / "link_folder").symlink_to("sub")
    assert attempt(tmp_path, path) == code


def test_a_system_call_that_does_not_exist_counts_as_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openat2, "_NUMBER", 9_999)
    assert not openat2.usable()


FORBID = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))
steps = (
    struct.pack("HBBI", 0x20, 0, 0, 0),            # load the number of the system call
    struct.pack("HBBI", 0x15, 0, 1, 437),          # openat2?
    struct.pack("HBBI", 0x06, 0, 0, 0x00050001),   # answer EPERM
    struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000),   # anything else goes on
)
code = ctypes.create_string_buffer(b"".join(steps))
program = Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
def forbid():
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
        raise SystemExit("cannot set a filter here")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_container_that_forbids_the_call_is_opened_part_by_part(tmp_path: Path, when: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("inside")
    (tmp_path / "out").symlink_to("/etc")
    use = f"""
    from types import SimpleNamespace
    from pathlib import Path
    {"forbid()" if when == "before" else ""}
    from toolkeel_files import openat2
    from toolkeel_files.settings import Settings
    from toolkeel_files.tools import FileTools
    {"forbid()" if when == "after" else ""}
    assert not openat2.usable()
    tools = FileTools(Settings.model_validate({{}}))
    context = SimpleNamespace(workspaces=(Path({str(tmp_path.resolve())!r}),))
    print(tools.file_read(context, "sub/../sub/a.txt").content.decode())
    print(tools.file_write(context, "new/b.txt", "b"))
    try:
        tools.file_read(context, "out/passwd")
    except Exception as error:
        print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", FORBID + textwrap.dedent(use)], capture_output=True, text=True, timeout=60, check=False
    )
    if "cannot set a filter" in done.stderr:
        pytest.skip("no system call filters here")
    assert done.stdout.splitlines() == [
        "inside",
        "created new/b.txt: 1 byte, 1 line",
        "out/passwd: out is a link that leads out of the workspace folder. Stay inside the workspace",
    ], done.stderr
