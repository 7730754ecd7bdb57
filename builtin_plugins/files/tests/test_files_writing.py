"""file_write: the old content or the new, whole, whatever happens."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkeel import ToolError
from toolkeel_files import writing

pytestmark = pytest.mark.requirement("G4")


@pytest.fixture(params=["nameless", "hidden"])
def draft(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of writing aside: a file without a name, and a hidden one."""
    if request.param == "hidden":
        monkeypatch.setattr(writing, "NAMELESS", False)
    elif not writing.NAMELESS:
        pytest.skip("this system has no nameless files")
    return request.param


@pytest.mark.usefixtures("draft")
class TestEitherWayOfWritingAside:
    def test_a_new_file_is_made_with_its_folders(self, call: Callable[..., str], workspace: Path) -> None:
        assert call("file_write", "a/b/c.txt", "one\ntwo\n") == "created a/b/c.txt: 8 bytes, 2 lines"
        assert (workspace / "a/b/c.txt").read_text() == "one\ntwo\n"
        assert [path.name for path in (workspace / "a/b").iterdir()] == ["c.txt"]

    def test_a_new_file_has_the_permissions_of_any_new_file(self, call: Callable[..., str], workspace: Path) -> None:
        (workspace / "plain").touch()
        call("file_write", "a.txt", "x")
        assert (workspace / "a.txt").stat().st_mode == (workspace / "plain").stat().st_mode

    def test_an_existing_file_is_not_replaced_by_create(self, call: Callable[..., str], workspace: Path) -> None:
        (workspace / "a.txt").write_text("old")
        with pytest.raises(ToolError, match=r"a.txt: the file exists already \(3 bytes\). file_edit changes a part"):
            call("file_write", "a.txt", "new")
        assert (workspace / "a.txt").read_text() == "old"

    def test_a_file_that_appears_at_the_last_moment_is_not_replaced_by_create(
        self, call: Callable[..., str], workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def sync(_opened: int) -> None:
            (workspace / "a.txt").write_text("someone else's")

        monkeypatch.setattr(writing.os, "fsync", sync)
        with pytest.raises(ToolError, match=r"a.txt: cannot be written: file exists. Nothing was changed"):
            call("file_write", "a.txt", "new")
        assert [(path.name, path.read_text()) for path in workspace.iterdir()] == [("a.txt", "someone else's")]

    def test_overwriting_replaces_all_and_says_what_was_there(self, call: Callable[..., str], workspace: Path) -> None:
        (workspace / "a.txt").write_text("old text")
        answer = call("file_write", "a.txt", "new", mode="overwrite")
        assert answer == "overwrote a.txt: 3 bytes, 1 line, before 8 bytes"
        assert (workspace / "a.txt").read_text() == "new"
        assert [path.name for path in workspace.iterdir()] == ["a.txt"]

    def test_overwriting_keeps_permissions_owner_and_attributes(
        self, call: Callable[..., str], workspace: Path
    ) -> None:
        path = workspace / "run.sh"
        path.write_text("old")
        path.chmod(0o4751)
        if os.geteuid() == 0:
            os.chown(path, 1234, 5678)
            path.chmod(0o4751)
        attributes = hasattr(os, "setxattr")
        try:
            os.setxattr(path, "user.note", b"kept")
        except (AttributeError, OSError):
            attributes = False
        before = path.stat()
        call("file_write", "run.sh", "new", mode="overwrite")
        after = path.stat()
        assert stat.S_IMODE(after.st_mode) == 0o751  # a write ends setuid
        assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
        if attributes:
            assert os.getxattr(path, "user.note") == b"kept"

    def test_a_link_stays_a_link_and_its_file_is_written(self, call: Callable[..., str], workspace: Path) -> None:
        (workspace / "real.txt").write_text("old")
        (workspace / "link").symlink_to("real.txt")
        assert call("file_write", "link", "new", mode="overwrite").startswith("overwrote real.txt")
        assert (workspace / "link").is_symlink()
        assert (workspace / "real.txt").read_text() == "new"

    def test_a_failed_write_leaves_all_as_it_was(self, workspace: Path, draft: str) -> None:
        """The system stops the write in the middle, as a full disk does: the process may write no more than 64 KiB."""
        (workspace / "a.txt").write_text("old")
        script = f"""
        import resource
        from pathlib import Path
        from types import SimpleNamespace
        from toolkeel_files import writing
        from toolkeel_files.settings import Settings
        from toolkeel_files.tools import FileTools
        writing.NAMELESS = {draft == "nameless"}
        tools = FileTools(Settings.model_validate({{}}))
        context = SimpleNamespace(workspaces=(Path({str(workspace)!r}),))
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        for path, mode in (("a.txt", "overwrite"), ("made/on/the/way.txt", "create"), ("a.txt", "append")):
            try:
                tools.file_write(context, path, "x" * 1_000_000, mode)
            except Exception as error:
                print(error)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.splitlines() == [
            "a.txt: cannot be written: file too large. Nothing was changed",
            "made/on/the/way.txt: cannot be written: file too large. Nothing was changed",
            "a.txt: cannot be written: file too large. Nothing was changed",
        ]
        assert [(path.name, path.read_text()) for path in workspace.iterdir()] == [("a.txt", "old")]

    def test_a_killed_write_leaves_the_old_or_the_new_whole(self, workspace: Path, draft: str) -> None:
        script = f"""
        from pathlib import Path
        from types import SimpleNamespace
        from toolkeel_files import writing
        from toolkeel_files.settings import Settings
        from toolkeel_files.tools import FileTools
        writing.NAMELESS = {draft == "nameless"}
        tools = FileTools(Settings.model_validate({{}}))
        context = SimpleNamespace(workspaces=(Path({str(workspace)!r}),))
        number = 0
        while True:
            letter = "ab"[number % 2]
            tools.file_write(context, "a.txt", letter * 300_000, "overwrite")
            tools.file_edit(context, "a.txt", letter * 300_000, letter.upper() * 300_000)
            print(number, flush=True)
            number += 1
        """
        chance = random.Random(7)
        whole = {letter * 300_000 for letter in "abAB"}
        for _ in range(12):
            process = subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(script)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 9)):
                assert process.stdout.readline(), process.communicate()[1]
            for _ in range(chance.randrange(20_000)):
                pass  # somewhere in the middle of the next write
            process.kill()
            process.communicate()
            assert (workspace / "a.txt").read_text() in whole
            for path in workspace.iterdir():
                if path.name != "a.txt":  # killed between getting its name and its place: a draft, as its name says
                    assert path.name.endswith(".toolkeel-draft")
                    path.unlink()


def test_appending_adds_to_the_end(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    assert call("file_write", "a.txt", "two\n", mode="append") == "appended 4 bytes to a.txt: now 8 bytes"
    assert (workspace / "a.txt").read_text() == "one\ntwo\n"
    assert call("file_write", "new.txt", "x", mode="append") == "created new.txt: 1 byte, 1 line"


def test_appending_follows_the_encoding_of_the_file(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("eins\n".encode("utf-16"))
    call("file_write", "a.txt", "zwölf\n", mode="append")
    assert (workspace / "a.txt").read_bytes().decode("utf-16") == "eins\nzwölf\n"
    (workspace / "b.txt").write_bytes(b"\0\1\2")
    with pytest.raises(ToolError, match="no text"):
        call("file_write", "b.txt", "x", mode="append")


def test_content_over_the_limit_is_refused_before_anything_is_made(
    caller: Callable[..., Callable[..., str]], workspace: Path
) -> None:
    with pytest.raises(ToolError, match="more than the 10 bytes of one call"):
        caller(workspace, write_bytes=10)("file_write", "new/a.txt", "x" * 11)
    assert list(workspace.iterdir()) == []


def test_content_that_is_no_unicode_is_refused(call: Callable[..., str], workspace: Path) -> None:
    with pytest.raises(ToolError, match="surrogate"):
        call("file_write", "a.txt", "\ud800")
    assert list(workspace.iterdir()) == []


def test_a_file_that_may_not_be_written_stays(workspace: Path) -> None:
    """Moving a new file over it would be allowed by the folder; its own permissions count all the same."""
    (workspace / "a.txt").write_text("old")
    (workspace / "a.txt").chmod(0o444)
    workspace.chmod(0o777)
    for folder in workspace.parents:
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)  # for nobody, who runs the rest where we are root
    script = f"""
    import os
    from pathlib import Path
    from types import SimpleNamespace
    from toolkeel_files.settings import Settings
    from toolkeel_files.tools import FileTools
    tools = FileTools(Settings.model_validate({{}}))
    if os.geteuid() == 0:
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
    context = SimpleNamespace(workspaces=(Path({str(workspace)!r}),))
    try:
        print(tools.file_write(context, "a.txt", "new", "overwrite"))
    except Exception as error:
        print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.stdout == "a.txt: cannot be written: permission denied. Nothing was changed\n", done.stderr
    assert (workspace / "a.txt").read_text() == "old"
