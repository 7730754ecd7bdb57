"""The plugin in a kernel: what it offers, its settings, its answers through all stages."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from toolkeel import Text
from toolkeel.testing import check_plugin, kernel_with
from toolkeel_files.plugin import Files
from toolkeel_files.tools import FileTools

pytestmark = pytest.mark.requirement("G4")

NAMES = ["code_search", "file_edit", "file_list", "file_read", "file_write"]


async def test_a_session_with_a_workspace_is_offered_the_tools_and_one_without_none(workspace: Path) -> None:
    async with kernel_with(Files, workspaces=[workspace]) as kit:
        assert sorted(tool.name for tool in kit.offer.tools) == NAMES
        assert {tool.group for tool in kit.offer.tools} == {"fs"}
        assert {tool.name: tool.effect for tool in kit.offer.tools} == {
            "code_search": "read",
            "file_edit": "write",
            "file_list": "read",
            "file_read": "read",
            "file_write": "destructive",
        }
    async with kernel_with(Files) as kit:
        assert not kit.offer.tools


async def test_the_plugin_promises_nothing_that_it_does_not_keep(workspace: Path) -> None:
    assert await check_plugin(Files) == []


async def test_a_refusal_is_a_failed_call_that_the_model_can_read(workspace: Path) -> None:
    async with kernel_with(Files, workspaces=[workspace]) as kit:
        answer = await kit.call("file_read", path="../x")
        assert answer.status == "failed"
        assert "leads out of the workspace folder" in answer.text


async def test_edits_come_as_json(workspace: Path) -> None:
    (workspace / "a.txt").write_text("a b")
    async with kernel_with(Files, workspaces=[workspace]) as kit:
        edits = [{"old": "a", "new": "c"}, {"old": "b", "new": "d"}]
        answer = await kit.call("file_edit", path="a.txt", edits=edits)
        assert answer.status == "completed", answer.text
        assert (workspace / "a.txt").read_text() == "c d"


async def test_an_operator_protects_further_names_and_exempts_others(workspace: Path) -> None:
    for name in (".env", "customers.csv", "notes.md", "safe.pem"):
        (workspace / name).write_text("text")
    settings = {"protected": ["Customers.*"], "read_only": ["notes.md"], "unprotected": ["safe.pem"]}
    async with kernel_with(Files, settings={"plugins": {"files": settings}}, workspaces=[workspace]) as kit:
        assert (await kit.call("file_read", path="safe.pem")).status == "completed"
        assert (await kit.call("file_read", path="notes.md")).status == "completed"
        for tool, path in (("file_read", ".env"), ("file_read", "customers.csv"), ("file_write", "CUSTOMERS.csv")):
            arguments = {"path": path} | ({"content": "x"} if tool == "file_write" else {})
            [answer] = await kit.batch([(tool, arguments)])
            assert "is protected" in answer.text
        answer = await kit.call("file_write", path="notes.md", content="x", mode="overwrite")
        assert "protected from writing" in answer.text


async def test_a_link_to_a_protected_name_is_no_way_around(workspace: Path) -> None:
    (workspace / ".env").write_text("TOKEN=1")
    (workspace / "config").symlink_to(".env")
    (workspace / ".git").mkdir()
    (workspace / "repo").symlink_to(".git")
    async with kernel_with(Files, workspaces=[workspace]) as kit:
        for tool, arguments in (
            ("file_read", {"path": "config"}),
            ("file_write", {"path": "config", "content": "x", "mode": "overwrite"}),
            ("file_write", {"path": "repo/hooks/post-checkout", "content": "x"}),
            ("file_list", {"path": "repo"}),
            ("code_search", {"query": "TOKEN", "path": "config"}),
        ):
            [answer] = await kit.batch([(tool, arguments)])
            assert "is protected" in answer.text, answer.text
    assert (workspace / ".env").read_text() == "TOKEN=1"


async def test_a_cancelled_search_ends_its_thread(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread asks whether anybody still waits: with a limit of a minute, it is gone long before."""
    for number in range(3_000):
        (workspace / f"{number}.txt").write_text("x\n" * 2_000)
    begun, ended = threading.Event(), threading.Event()
    search = FileTools.code_search

    @functools.wraps(search)
    def watched(*arguments: Any, **named: Any) -> Text:
        begun.set()
        try:
            return search(*arguments, **named)
        finally:
            ended.set()

    monkeypatch.setattr(FileTools, "code_search", watched)
    settings = {"plugins": {"files": {"seconds": 60}}}
    async with kernel_with(Files, settings=settings, workspaces=[workspace]) as kit:
        with trio.move_on_after(60) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: kit.call("code_search", query="y", limit=1))
                assert await trio.to_thread.run_sync(begun.wait, 30)
                scope.cancel()
        assert await trio.to_thread.run_sync(ended.wait, 30)


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    heavy = {"re2", "pathspec", "toolkeel_files.tools"}
    script = f"import sys, toolkeel_files.plugin; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
