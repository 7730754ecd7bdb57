"""Several workspace folders: which one a path means, and the resource keys that follow from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolkeel import Key, Scope, Tool, ToolError
from toolkeel.testing import kernel_with
from toolkeel_files.plugin import Files
from toolkeel_files.settings import Settings
from toolkeel_files.tools import FileTools

TOOLS = {tool.name: tool for tool in FileTools(Settings.model_validate({})).tools()}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path.resolve()
    for folder in ("api/src", "web/src", "other/api"):
        (base / folder).mkdir(parents=True)
    (base / "api/src/only_api.py").write_text("api")
    (base / "web/src/only_web.py").write_text("web")
    for folder in ("api", "web"):
        (base / folder / "both.txt").write_text(folder)
    return base


@pytest.fixture
def call(caller: Callable[..., Callable[..., str]], base: Path) -> Callable[..., str]:
    return caller(base / "api", base / "web", base / "other/api")


@pytest.mark.requirement("G4")
class TestWhichFolderAPathMeans:
    def test_a_relative_path_means_the_first_folder_that_holds_it(self, call: Callable[..., str]) -> None:
        assert call("file_read", "both.txt") == "api"
        assert call("file_read", "src/only_web.py") == "web"

    def test_a_path_may_name_its_folder(self, call: Callable[..., str], base: Path) -> None:
        assert call("file_read", "web:both.txt") == "web"
        assert call("file_read", str(base / "web/both.txt")) == "web"
        assert call("file_write", "api#2:new.txt", "x") == "created api#2:new.txt: 1 byte, 1 line"
        assert (base / "other/api/new.txt").read_text() == "x"

    def test_a_new_file_goes_to_the_first_folder_and_the_answer_says_so(
        self, call: Callable[..., str], base: Path
    ) -> None:
        assert call("file_write", "src/new.py", "x") == "created api:src/new.py: 1 byte, 1 line"
        assert (base / "api/src/new.py").exists()

    def test_a_file_is_written_where_it_is_read(self, call: Callable[..., str], base: Path) -> None:
        call("file_write", "src/only_web.py", "new", mode="overwrite")
        call("file_edit", "src/only_web.py", old="new", new="newer")
        assert (base / "web/src/only_web.py").read_text() == "newer"
        assert not (base / "api/src/only_web.py").exists()

    def test_what_no_folder_holds_is_missing_in_all(self, call: Callable[..., str]) -> None:
        with pytest.raises(ToolError, match="nope: none of the workspace folders api, web, api#2 holds this path"):
            call("file_read", "nope")

    def test_no_folder_is_a_way_into_another(self, call: Callable[..., str], base: Path) -> None:
        (base / "api/to_web").symlink_to(base / "web")
        for path in ("web:../api/both.txt", "../web/both.txt", "to_web/both.txt", "web:/../../api/both.txt"):
            with pytest.raises(ToolError, match="leads out"):
                call("file_read", path)
        with pytest.raises(ToolError, match="in no workspace folder"):
            call("file_read", str(base / "webs/both.txt"))

    def test_a_folder_inside_another_is_meant_by_its_own_paths(
        self, caller: Callable[..., Callable[..., str]], base: Path
    ) -> None:
        call = caller(base, base / "web")
        assert call("file_write", str(base / "web/new.txt"), "x") == "created web:new.txt: 1 byte, 1 line"

    def test_a_session_without_folders_has_no_file_to_touch(self, caller: Callable[..., Callable[..., str]]) -> None:
        with pytest.raises(ToolError, match="no workspace folder"):
            caller()("file_read", "a.txt")

    @pytest.mark.parametrize("kind", ["missing", "link", "file"])
    def test_a_workspace_folder_that_is_no_folder_any_more_is_an_error(
        self, caller: Callable[..., Callable[..., str]], base: Path, kind: str
    ) -> None:
        if kind == "link":
            (base / "ws").symlink_to(base / "api")
        if kind == "file":
            (base / "ws").touch()
        with pytest.raises(ToolError, match="ws: the workspace folder cannot be opened"):
            caller(base / "ws")("file_read", "both.txt")


def keys(tool: str, arguments: Mapping[str, Any], *folders: Path) -> list[Key]:
    found: Tool = TOOLS[tool]
    function = found.reads if found.effect == "read" else found.writes
    assert function is not None
    given: Iterable[Key] = function(arguments, Scope(workspaces=folders))
    return list(given)


def key(path: Path) -> Key:
    return ("file", *path.parts)


@pytest.mark.requirement("K9")
class TestResourceKeys:
    @pytest.mark.parametrize("tool", ["file_read", "file_write", "file_edit"])
    @pytest.mark.parametrize(
        "path", ["both.txt", "./src/../both.txt", "link", "{base}/api/both.txt", "api:both.txt", "dir_link/../both.txt"]
    )
    def test_every_spelling_of_a_file_is_one_key(self, base: Path, tool: str, path: str) -> None:
        (base / "api/link").symlink_to("both.txt")
        (base / "api/dir_link").symlink_to("src")
        found = keys(tool, {"path": path.replace("{base}", str(base))}, base / "api")
        assert found == [key(base / "api/both.txt")]

    def test_a_file_that_does_not_exist_has_the_key_that_it_will_have(self, base: Path) -> None:
        (base / "api/dir_link").symlink_to("src")
        path = {"path": "dir_link/made/new.py"}
        assert keys("file_write", path, base / "api") == [key(base / "api/src/made/new.py")]

    def test_a_search_overlaps_with_every_file_in_its_folder(self, base: Path) -> None:
        [folder] = keys("code_search", {"query": "x", "path": "src"}, base / "api")
        [file] = keys("file_write", {"path": "src/only_api.py"}, base / "api")
        assert file[: len(folder)] == folder
        roots = [key(base / "api"), key(base / "web")]
        assert keys("file_list", {}, base / "api", base / "web") == roots

    def test_a_path_with_several_meanings_has_a_key_for_each_that_may_come_true(self, base: Path) -> None:
        folders = (base / "api", base / "web")
        assert keys("file_read", {"path": "both.txt"}, *folders) == [key(base / "api/both.txt")]
        both = [key(base / "api/src/only_web.py"), key(base / "web/src/only_web.py")]
        assert keys("file_read", {"path": "src/only_web.py"}, *folders) == both
        assert keys("file_write", {"path": "new"}, *folders) == [key(base / "api/new"), key(base / "web/new")]

    def test_a_path_that_will_be_refused_touches_at_most_the_workspace(self, base: Path) -> None:
        for path in ("a\0b", "/etc/passwd", "\ud800"):
            assert keys("file_write", {"path": path}, base / "api")[0][: len(key(base))] in (key(base), ())

    async def test_calls_of_one_batch_see_each_other_in_order_on_the_same_file_alone(self, base: Path) -> None:
        os.symlink("a.txt", base / "api/link")
        async with kernel_with(Files, workspaces=[base / "api"]) as kit:
            answers = await kit.batch(
                [
                    ("file_write", {"path": "a.txt", "content": "one\n"}),
                    ("file_read", {"path": "a.txt"}),
                    ("file_edit", {"path": "link", "old": "one", "new": "two"}),
                    ("code_search", {"query": "two"}),
                    ("file_write", {"path": "./src/../a.txt", "content": "three\n", "mode": "append"}),
                    ("file_read", {"path": str(base / "api/a.txt")}),
                    ("file_list", {}),
                ]
            )
            texts = [answer.text for answer in answers]
            assert [answer.status for answer in answers] == ["completed"] * 7, texts
            assert texts[1].strip() == "one"
            assert "a.txt:1: two" in texts[3]
            assert texts[5].split() == ["two", "three"]
            assert "a.txt  (10 bytes)" in texts[6]
