"""`plugins`, and the commands that plugins add, through the real process."""

from __future__ import annotations

import json
from typing import Any

import pytest

Toolkeel = Any

GREET = """
from toolkeel import hookimpl, tool

@tool(effect="read", inline=True)
def greet(name: str) -> str:
    "Greet somebody."
    return f"hello {name}"

@hookimpl
def register_tools():
    return greet
"""

COMMANDS = """
from toolkeel import ToolError, hookimpl
from toolkeel_cli import Command, Options

def hello(options: Options, name: str = "you", fail: bool = False):
    "Say hello to somebody."
    if fail:
        raise ToolError("no voice", where="throat", remedy="Drink tea")
    print(f"hello {name}, {options.agent}")
    return 7 if name == "seven" else None

async def wave():
    import trio
    await trio.sleep(0)
    print("waves")

@hookimpl
def cli_commands():
    return Command("hello", "Say hello", hello, (Command("wave", "Wave", wave),)), Command("tools", "Taken", hello)
"""


def test_a_quarantined_plugin_is_listed_with_stage_reason_and_remedy(toolkeel: Toolkeel) -> None:
    toolkeel.extension("broken", "import nowhere_at_all\n")
    ended = toolkeel("plugins")
    assert "broken is quarantined at import" in ended.out
    assert "nowhere_at_all" in ended.out
    assert "remedy: Install the package that has 'nowhere_at_all'" in ended.out
    info = {info["name"]: info for info in toolkeel("plugins", "--json").json["plugins"]}
    assert info["broken"]["state"] == "quarantined"
    assert info["basics"]["state"] == "active"
    assert toolkeel("call", "calc", "expression=1").out == "1\n"


def test_a_plugin_that_fails_for_a_session_is_listed_as_quarantined(toolkeel: Toolkeel) -> None:
    toolkeel.extension("late", "from toolkeel import hookimpl\n@hookimpl\ndef register_tools():\n    return 1 / 0\n")
    assert "late is quarantined at register" in toolkeel("plugins").out


@pytest.mark.requirement("K4")
def test_a_plugin_folder_runs_only_while_its_content_has_the_approved_hash(toolkeel: Toolkeel) -> None:
    folder = toolkeel.extension("greeter", GREET, enabled=False)
    assert "greeter is listed" in toolkeel("plugins").out
    assert "greet" not in toolkeel("tools").out
    refused = toolkeel("plugins", "enable", "greeter", code=2).err
    digest = toolkeel("plugins", "hash", folder).out.strip()
    assert f"toolkeel plugins enable greeter --hash {digest}" in refused
    wrong = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    assert "its content hash is" in toolkeel("plugins", "enable", "greeter", "--hash", wrong, code=3).err
    toolkeel("plugins", "enable", "greeter", "--hash", digest)
    assert toolkeel("call", "greet", "name=ann").out == "hello ann\n"
    (folder / "plugin.py").write_text(GREET + "\n# changed\n")
    assert "its content changed since it was enabled" in toolkeel("plugins").out
    toolkeel("call", "greet", "name=ann", code=4)


def test_turning_plugins_off_and_on_keeps_the_rest_of_the_settings_file(toolkeel: Toolkeel) -> None:
    path = toolkeel.settings("# mine\nkernel:\n  workers: 4  # few\n")
    assert "calc" not in toolkeel("plugins", "disable", "basics").out
    assert toolkeel("tools", "--json", "--only", "basics", code=None)
    assert "calc" not in toolkeel("tools").out
    assert path.read_text() == '# mine\nkernel:\n  disable: ["basics"]\n  workers: 4  # few\n'
    toolkeel("plugins", "enable", "basics")
    assert path.read_text() == "# mine\nkernel:\n  workers: 4  # few\n"
    assert "calc" in toolkeel("tools").out


def test_turning_a_plugin_off_and_on_leaves_nothing_behind_and_takes_no_comment_along(toolkeel: Toolkeel) -> None:
    toolkeel("plugins", "disable", "basics")
    toolkeel("plugins", "enable", "basics")
    path = toolkeel.state / "config.yaml"
    assert path.read_text() == ""
    path.write_text("kernel:\n  # what is off here\n  disable: [basics]  # too slow\n")
    toolkeel("plugins", "enable", "basics")
    assert path.read_text() == "kernel:\n  # what is off here\n  disable: []  # too slow\n"


def test_turning_off_a_folder_that_changed_takes_its_approval_back(toolkeel: Toolkeel) -> None:
    folder = toolkeel.extension("greeter", GREET)
    (folder / "plugin.py").write_text(GREET + "\n# changed\n")
    ended = toolkeel("plugins", "disable", "greeter")
    assert "its hash is taken out of kernel.enable" in ended.err
    assert "remedy" not in ended.out
    assert "greeter" not in (toolkeel.state / "config.yaml").read_text()
    (folder / "plugin.py").write_text(GREET)
    assert "an operator has not enabled it" in toolkeel("plugins").out


def test_turning_off_a_folder_that_is_gone_takes_its_approval_back(toolkeel: Toolkeel) -> None:
    folder = toolkeel.extension("greeter", GREET)
    folder.rename(toolkeel.home / "elsewhere")
    assert "kernel.enable" in toolkeel("plugins", "disable", "greeter").err
    assert "greeter" not in (toolkeel.state / "config.yaml").read_text()
    toolkeel("plugins", "disable", "greeter", code=3)


def test_a_plugin_kept_out_by_an_option_is_told_in_the_words_of_the_option(toolkeel: Toolkeel) -> None:
    listed = {info["name"]: info for info in toolkeel("plugins", "--json", "--only", "basics").json["plugins"]}
    assert listed["files"]["remedy"] == "Name it in --only, or leave --only out"
    shown = toolkeel("plugins", "--disable", "files").out
    assert "remedy: Leave it out of --disable" in shown
    assert "--set" not in shown


def test_turning_a_plugin_off_writes_the_settings_whatever_this_run_loads(toolkeel: Toolkeel) -> None:
    toolkeel("plugins", "disable", "files", "--only", "cli")
    assert "file_read" not in toolkeel("tools").out
    toolkeel("plugins", "enable", "files", "--only", "cli")
    assert "file_read" in toolkeel("tools").out


def test_a_plugin_without_any_hook_is_noted_in_the_list_and_warned_of_by_doctor(toolkeel: Toolkeel) -> None:
    toolkeel.extension("forgetful", "def register_tools():\n    return ()\n")
    assert "note:   it implements no hook" in toolkeel("plugins").out
    checks = toolkeel("doctor", "--json").json["checks"]
    told = {check["name"]: check for check in checks if check["outcome"] == "warning"}
    assert "it implements no hook" in told["plugin forgetful"]["found"]


def test_what_the_kernel_has_to_say_is_shown_in_the_list_and_by_doctor(toolkeel: Toolkeel) -> None:
    toolkeel.settings("kernel:\n  disable: [nobody]\n")
    assert "names no plugin: 'nobody'" in toolkeel("plugins").out
    assert "names no plugin: 'nobody'" in toolkeel("doctor").out


def test_turning_on_what_another_layer_turns_off_names_that_layer(toolkeel: Toolkeel) -> None:
    ended = toolkeel("plugins", "enable", "basics", env={"TOOLKEEL_KERNEL__DISABLE": "[basics]"}, code=3)
    assert "TOOLKEEL_KERNEL__DISABLE" in ended.err


def test_an_unknown_plugin_is_refused_naming_those_that_were_found(toolkeel: Toolkeel) -> None:
    assert "Found: basics, cli, files, outputs" in toolkeel("plugins", "disable", "nobody", code=3).err
    assert "Did you mean 'basics'?" in toolkeel("plugins", "disable", "basic", code=3).err


@pytest.mark.requirement("K3")
def test_a_plugin_adds_commands_of_its_own(toolkeel: Toolkeel) -> None:
    toolkeel.extension("voice", COMMANDS)
    assert toolkeel("hello", "--name", "ann", "--agent", "sam").out == "hello ann, sam\n"
    assert toolkeel("hello", "wave").out == "waves\n"
    assert "Say hello to somebody" in toolkeel("hello", "--help").out
    assert toolkeel("hello", "--name", "seven", code=7).out
    listed = toolkeel("--help")
    assert "hello" in listed.out
    assert "the command 'tools' of plugin 'voice' is left out" in listed.err


def test_an_error_of_a_plugins_command_is_shown_like_toolkeels_own(toolkeel: Toolkeel) -> None:
    toolkeel.extension("voice", COMMANDS)
    err = toolkeel("hello", "--fail", code=1).err
    assert "error: no voice" in err
    assert "throat" in err
    assert "Drink tea" in err
    told = json.loads(toolkeel("hello", "--fail", "--json", code=1).err.splitlines()[-1])["error"]
    assert told["what"] == "no voice"


def test_a_plugin_that_fails_to_give_its_commands_stops_no_other(toolkeel: Toolkeel) -> None:
    code = "from toolkeel import hookimpl\n@hookimpl\ndef cli_commands():\n    return 1 / 0\n"
    toolkeel.extension("mute", code)
    toolkeel.extension("voice", COMMANDS)
    assert toolkeel("hello").out == "hello you, main\n"
    wrong = "from toolkeel import hookimpl\n@hookimpl\ndef cli_commands():\n    return 'hello'\n"
    toolkeel.extension("text", wrong)
    ended = toolkeel("--help")
    assert "doctor" in ended.out
    assert "plugin 'text'" in ended.err


def test_a_command_that_cannot_be_used_hides_no_other_and_says_why_when_it_is_run(toolkeel: Toolkeel) -> None:
    code = (
        "from toolkeel import hookimpl\nfrom toolkeel_cli import Command\n"
        "def odd(thing: 'Nowhere'): ...\n"
        "@hookimpl\ndef cli_commands():\n"
        "    return Command('lost', 'Lost', 'nowhere_at_all:run'), Command('odd', 'Odd', odd)\n"
    )
    toolkeel.extension("careless", code)
    listed = toolkeel("--help").out
    assert {"demo", "lost", "odd"} <= set(listed.split())
    assert "No module named 'nowhere_at_all'" in toolkeel("lost", code=1).err
    assert "the command cannot be used" in toolkeel("odd", code=1).err
