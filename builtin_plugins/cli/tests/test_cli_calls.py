"""`tools`, `call` and `explain`, through the real process."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

Toolkeel = Any

LOGS = """
from toolkeel import hookimpl, tool

@tool(effect="read", inline=True)
def loud(size: int = 0) -> str:
    "Answer at length."
    LOG.info("asked for %d", size)
    LOG.debug("in detail \\x1b[31m")
    return "line \\n" * size

@hookimpl
async def plugin_start(context):
    global LOG
    LOG = context.log

@hookimpl
def register_tools():
    return loud
"""


def test_the_log_is_shown_as_often_as_verbose_is_said(toolkeel: Toolkeel) -> None:
    toolkeel.extension("talk", LOGS)
    assert toolkeel("call", "loud").err == ""
    once = toolkeel("call", "loud", "-v").err
    assert "INFO    toolkeel.talk: asked for 0" in once
    assert "in detail" not in once
    twice = toolkeel("-v", "call", "loud", "--verbose").err
    assert "DEBUG   toolkeel.talk: in detail" in twice
    assert "\x1b" not in twice


def test_with_json_the_log_is_json_too(toolkeel: Toolkeel) -> None:
    toolkeel.extension("talk", LOGS)
    ended = toolkeel("call", "loud", "--json", "-v")
    assert ended.json["status"] == "completed"
    lines = [json.loads(line)["log"] for line in ended.err.splitlines()]
    assert {"level": "INFO", "name": "toolkeel.talk", "text": "asked for 0"} in lines


def test_call_prints_a_result_whole_and_a_preview_only_where_it_is_asked_for(toolkeel: Toolkeel) -> None:
    toolkeel.extension("talk", LOGS)
    whole = toolkeel("call", "loud", "size=20000")
    assert whole.out.count("line") == 20_000
    assert whole.err == ""
    shortened = toolkeel("call", "loud", "size=20000", "--preview")
    assert shortened.out.count("line ") < 20_000
    assert "ends with this command" in shortened.err


def test_a_call_of_what_no_active_plugin_has_names_the_plugins_that_do_not_run(toolkeel: Toolkeel) -> None:
    toolkeel.extension("talk", LOGS, enabled=False)
    assert "plugin talk is listed: an operator has not enabled it" in toolkeel("call", "loud", code=4).err
    assert "plugin talk" not in toolkeel("call", "calc", "expression=1").err


def test_tools_shows_one_tool_with_its_parameters(toolkeel: Toolkeel) -> None:
    shown = toolkeel("tools", "regex").out
    assert "linear time (RE2 syntax)" in shown
    row = next(line for line in shown.splitlines() if line.startswith("pattern"))
    assert row.split()[1:3] == ["string", "(required)"]
    assert toolkeel("tools", "regex", "--json").json["name"] == "regex"
    assert [each["name"] for each in toolkeel("tools", "regex", "--format", "anthropic").json] == ["regex"]
    assert "Nearest: regex" in toolkeel("tools", "regexp", code=1).err


HOSTILE = "a\x1b]0;x\x07\x9b31m\u202eb"


@pytest.mark.parametrize("more", [(), ("--json",), ("--trace",)])
def test_no_control_character_reaches_a_terminal(toolkeel: Toolkeel, more: tuple[str, ...]) -> None:
    for command in (("call", HOSTILE), ("explain", HOSTILE), ("config", HOSTILE), ("plugins", "disable", HOSTILE)):
        master, terminal = pty.openpty()
        with subprocess.Popen(
            [SCRIPT, *command, *more], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
            cwd=toolkeel.folder, env=toolkeel.environment(),
        ):  # fmt: skip
            os.close(terminal)
            seen = b""
            while part := _read(master):
                seen += part
        os.close(master)
        text = seen.decode()
        assert text
        assert not any(bad in text for bad in ("\x1b]", "\x07", "\x9b", "\u202e")), (command, seen)


@pytest.mark.parametrize("command", [("tools",), ("plugins",), ("doctor",), ("explain", "calc"), ("tools", "regex")])
def test_a_narrow_terminal_breaks_no_word(toolkeel: Toolkeel, command: tuple[str, ...]) -> None:
    master, terminal = pty.openpty()
    with subprocess.Popen(
        [SCRIPT, *command], stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL,
        cwd=toolkeel.folder, env=toolkeel.environment({"COLUMNS": "45"}),
    ):  # fmt: skip
        os.close(terminal)
        seen = b""
        while part := _read(master):
            seen += part
    os.close(master)
    words = set(seen.decode().split())
    whole = {"tools": "arithmetic", "plugins": "active", "doctor": "packages", "explain": "registry"}
    assert {"regex": "Inline"}.get(command[-1], whole[command[0]]) in {word.strip(".,") for word in words}


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


SCRIPT = Path(sysconfig.get_path("scripts")) / "toolkeel"

OPTIONAL = """
from toolkeel import hookimpl, tool

@tool(effect="read", optional=True, inline=True)
def secret_door() -> str:
    "Open it."
    return "open"

@hookimpl
def register_tools():
    return secret_door
"""


def test_tools_names_each_offered_tool_with_effect_and_plugin(toolkeel: Toolkeel) -> None:
    lines = toolkeel("tools").out.splitlines()
    rows = {line.split()[0]: line.split()[1:3] for line in lines[1:]}
    assert lines[0].split()[:3] == ["tool", "effect", "plugin"]
    assert rows["calc"] == ["read", "basics"]
    assert rows["file_edit"] == ["write", "files"]
    assert rows["read_output"] == ["read", "outputs"]


def test_tools_as_json_hold_schema_and_reason(toolkeel: Toolkeel) -> None:
    tools = {tool["name"]: tool for tool in toolkeel("tools", "--json").json["tools"]}
    assert tools["calc"]["parameters"]["required"] == ["expression"]
    assert "basics" in tools["calc"]["reason"]


@pytest.mark.parametrize(
    ("form", "name", "schema"),
    [
        ("openai", ("function", "name"), ("function", "parameters")),
        ("responses", ("name",), ("parameters",)),
        ("anthropic", ("name",), ("input_schema",)),
    ],
)
def test_tools_print_the_list_that_a_models_api_takes(
    toolkeel: Toolkeel, form: str, name: tuple[str, ...], schema: tuple[str, ...]
) -> None:
    def at(entry: Any, path: tuple[str, ...]) -> Any:
        for step in path:
            entry = entry[step]
        return entry

    entries = toolkeel("tools", "--format", form).json
    assert {at(entry, name) for entry in entries} >= {"calc", "file_read", "read_output"}
    assert all(at(entry, schema)["type"] == "object" for entry in entries)


def test_a_withheld_tool_is_told_with_its_setting(toolkeel: Toolkeel) -> None:
    toolkeel.extension("door", OPTIONAL)
    assert "secret_door" not in toolkeel("tools").out
    shown = toolkeel("tools", "--withheld").out
    assert "secret_door is optional and no policy names it" in shown
    assert "kernel.optional" in shown
    assert "secret_door" in toolkeel("tools", "--set", "kernel.optional=[secret_door]").out


def test_a_call_prints_its_result_and_nothing_else(toolkeel: Toolkeel) -> None:
    ended = toolkeel("call", "calc", '{"expression": "0.1 + 0.2"}')
    assert ended.out == "0.3\n"
    assert ended.err == ""


def test_arguments_come_as_json_as_pairs_or_on_standard_input(toolkeel: Toolkeel) -> None:
    assert toolkeel("call", "calc", "expression=6 * 7").out == "42\n"
    assert toolkeel("call", "calc", "-", stdin='{"expression": "6 * 7"}').out == "42\n"


def test_a_pair_is_json_where_it_reads_as_json_and_text_on_demand(toolkeel: Toolkeel) -> None:
    (toolkeel.folder / "a.txt").write_text("one\ntwo\nthree\n")
    answer = toolkeel("call", "--json", "file_read", "path=a.txt", "limit=2", "numbers=true").json
    assert answer["arguments"] == {"path": "a.txt", "limit": 2, "numbers": True}
    assert answer["repairs"] == []
    repaired = toolkeel("call", "--json", "file_read", "path=a.txt", "limit:=2").json
    assert repaired["arguments"]["limit"] == 2
    assert [repair["path"] for repair in repaired["repairs"]] == ["limit"]


def test_a_repair_is_noted_beside_the_result(toolkeel: Toolkeel) -> None:
    (toolkeel.folder / "a.txt").write_text("one\ntwo\n")
    ended = toolkeel("call", "file_read", "path=a.txt", "offset:=2")
    assert "two" in ended.out
    assert "repaired offset" in ended.err


def test_the_exit_code_tells_a_failed_from_a_refused_call(toolkeel: Toolkeel) -> None:
    failed = toolkeel("call", "calc", "expression=1 / 0", code=1)
    assert failed.out == ""
    assert "failed:" in failed.err
    refused = toolkeel("call", "cal", "expression=1", code=4)
    assert refused.out == ""
    assert "Nearest: calc" in refused.err


def test_the_command_line_that_cannot_be_read_exits_with_2(toolkeel: Toolkeel) -> None:
    assert "neither a JSON object nor name=value" in toolkeel("call", "calc", "6*7", code=2).err
    assert "Missing argument" in toolkeel("call", code=2).err
    assert "nearest: tools" in toolkeel("tols", code=2).err
    assert "--set takes PATH=VALUE" in toolkeel("tools", "--set", "kernel.workers", code=2).err
    assert "is no folder" in toolkeel("tools", "-w", "nowhere", code=2).err
    assert "No such option" in toolkeel("tools", "--nonsense", code=2).err


def test_wrong_settings_exit_with_3_and_name_file_line_and_remedy(toolkeel: Toolkeel) -> None:
    path = toolkeel.settings("kernel:\n  wrokers: 4\n")
    err = toolkeel("tools", code=3).err
    assert f"{path}:2: kernel.wrokers" in err
    assert "Did you mean 'kernel.workers'?" in err


def test_errors_are_json_too_where_json_is_asked_for(toolkeel: Toolkeel) -> None:
    for arguments, code in (
        (["call", "--json"], 2),
        (["tools", "--json", "--set", "kernel.workers=none"], 3),
        (["--json", "nonsense"], 2),
    ):
        ended = toolkeel(*arguments, code=code)
        told = json.loads(ended.err)["error"]
        assert told["exit_code"] == code
        assert told["what"]
        assert ended.out == ""


def test_options_count_before_and_behind_the_command(toolkeel: Toolkeel) -> None:
    before = toolkeel("--json", "--only", "basics", "tools").json["tools"]
    behind = toolkeel("tools", "--json", "--only", "basics").json["tools"]
    assert before == behind
    assert {tool["plugin"] for tool in before} == {"basics"}


def test_disabling_on_the_command_line_leaves_out_what_the_settings_disable_too(toolkeel: Toolkeel) -> None:
    toolkeel.settings("kernel:\n  disable: [files]\n")
    tools = toolkeel("tools", "--json", "--disable", "outputs").json["tools"]
    assert {tool["plugin"] for tool in tools} == {"basics"}


def test_the_current_folder_is_the_workspace_but_never_a_home(toolkeel: Toolkeel) -> None:
    (toolkeel.folder / "a.txt").write_text("here")
    assert toolkeel("call", "file_read", "path=a.txt").out == "here\n"
    toolkeel.folder = toolkeel.home
    assert "file_read" not in toolkeel("tools").out
    assert "file_read" in toolkeel("tools", "-w", toolkeel.home).out
    (toolkeel.state / "plugins").mkdir(parents=True)
    toolkeel.folder = toolkeel.state / "plugins"
    assert "file_read" not in toolkeel("tools").out


def test_workspaces_come_from_the_settings_where_none_is_named(toolkeel: Toolkeel) -> None:
    other = toolkeel.home / "other"
    other.mkdir()
    (other / "b.txt").write_text("there")
    toolkeel.settings(f"workspaces: [{other}]\n")
    assert toolkeel("call", "file_read", "path=b.txt").out == "there\n"


def test_explain_says_that_a_tool_is_offered(toolkeel: Toolkeel) -> None:
    ended = toolkeel("explain", "calc")
    assert ended.out.startswith("calc is offered, given by plugin basics")


@pytest.mark.requirement("K15")
def test_explain_names_the_rule_and_the_setting_that_decided(toolkeel: Toolkeel) -> None:
    toolkeel.extension("door", OPTIONAL)
    refused = toolkeel("explain", "secret_door", "--json", code=4).json
    assert refused["offered"] is False
    assert [(step["stage"], step["setting"]) for step in refused["steps"]] == [
        ("registry", ""),
        ("optional", "kernel.optional"),
    ]
    allowed = toolkeel("explain", "secret_door", "--json", "--set", "kernel.optional=[door]").json
    assert allowed["offered"] is True
    assert all(step["passed"] for step in allowed["steps"])


def test_explain_names_the_nearest_tools_to_an_unknown_one(toolkeel: Toolkeel) -> None:
    assert "nearest: calc" in toolkeel("explain", "cacl", code=4).out


def test_a_pipe_gets_no_colours_and_no_folded_lines(toolkeel: Toolkeel) -> None:
    for command in (["tools"], ["plugins"], ["doctor"], ["config"], ["explain", "calc"]):
        assert "\x1b" not in toolkeel(*command, env={"TERM": "xterm-256color"}, code=None).out
    widest = max(toolkeel("tools").out.splitlines(), key=len)
    assert len(widest) > 80


def test_a_terminal_shows_control_characters_instead_of_obeying_them(toolkeel: Toolkeel) -> None:
    (toolkeel.folder / "evil.txt").write_bytes(b"before \x1b]0;title\x07 after")
    shown = on_a_terminal(toolkeel, "call", "file_read", "path=evil.txt")
    assert b"\x1b]0;" not in shown
    assert b"before " in shown


def test_a_terminal_gets_colours_unless_it_asks_for_none(toolkeel: Toolkeel) -> None:
    assert b"\x1b[" in on_a_terminal(toolkeel, "plugins")
    assert b"\x1b[" not in on_a_terminal(toolkeel, "plugins", NO_COLOR="1", TERM="dumb")


def on_a_terminal(toolkeel: Toolkeel, *arguments: str, **environment: str) -> bytes:
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [SCRIPT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        cwd=toolkeel.folder,
        env=toolkeel.environment({"TERM": "xterm-256color", **environment}),
    ) as running:
        os.close(follower)
        parts: list[bytes] = []
        while part := _read(leader):
            parts.append(part)
        running.wait(timeout=60)
    os.close(leader)
    return b"".join(parts)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # a terminal whose other end is closed
        return b""
