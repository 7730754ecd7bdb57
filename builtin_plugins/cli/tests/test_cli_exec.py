"""`exec`, through the real process: responses in, tool result messages out."""

from __future__ import annotations

import json
import signal
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest

from toolkeel_cli.running import PATIENCE
from toolkeel_cli.wire import read_response

Toolkeel = Any
SCRIPT = Path(sysconfig.get_path("scripts")) / "toolkeel"
RECORDED = Path(__file__).parents[3] / "tests" / "wire"

SLOW = """
import os, time
from pathlib import Path
import trio
from toolkeel import hookimpl, tool

LOG = Path(os.environ["HOME"]) / "log"

def log(text):
    with LOG.open("a") as file:
        file.write(text + "\\n")

@tool(effect="read")
async def nap() -> str:
    "Sleep."
    log("napping")
    try:
        await trio.sleep_forever()
    except trio.Cancelled:
        log("nap was told")
        raise

@tool(effect="read")
def block() -> str:
    "Block a thread."
    log("blocking")
    time.sleep(600)

@tool(effect="read")
def quick() -> str:
    "Answer."
    return "done"

@hookimpl
def register_tools():
    return nap, block, quick

@hookimpl
async def on_call_changed(event):
    log(f"{event.record.tool} {event.record.status}")
"""


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.json").read_bytes()


def response(*calls: tuple[str, dict[str, Any]]) -> bytes:
    content = [
        {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(calls)
    ]
    return json.dumps({"role": "assistant", "content": content}).encode()


@pytest.fixture
def notes(toolkeel: Toolkeel) -> str:
    (toolkeel.folder / "notes").mkdir()
    (toolkeel.folder / "notes" / "todo.txt").write_text("order tape\n")
    return "order tape\n"


@pytest.mark.parametrize("name", ["openai_chat_parallel", "openai_responses_parallel", "anthropic_parallel"])
def test_a_response_of_each_form_is_run_and_answered_in_its_form(toolkeel: Toolkeel, notes: str, name: str) -> None:
    messages = toolkeel("exec", stdin=recorded(name)).json
    if name.startswith("anthropic"):
        [message] = messages
        assert message["role"] == "user"
        contents = [block["content"] for block in message["content"]]
        assert not any("is_error" in block for block in message["content"])
    else:
        key = "content" if name.startswith("openai_chat") else "output"
        contents = [message[key] for message in messages]
    assert contents == ["3881.25", notes, "18446744073709551616"]


def test_a_tool_that_is_not_there_is_answered_with_the_nearest_names(toolkeel: Toolkeel) -> None:
    [message] = toolkeel("exec", stdin=recorded("anthropic_unknown_tool")).json
    refused, computed = message["content"]
    assert refused["is_error"] is True
    assert "file_read" in refused["content"]
    assert computed == {"type": "tool_result", "tool_use_id": computed["tool_use_id"], "content": "42"}


def test_broken_arguments_fail_their_own_call_only(toolkeel: Toolkeel) -> None:
    messages = toolkeel("exec", stdin=recorded("openai_chat_broken_arguments")).json
    contents = [message["content"] for message in messages]
    assert len(contents) == 5
    assert contents[1] == "4"
    assert all("calc" in contents[index] for index in (2, 3))


def test_a_response_without_calls_prints_an_empty_list_and_says_so(toolkeel: Toolkeel) -> None:
    ended = toolkeel("exec", stdin=recorded("openai_chat_no_calls"))
    assert ended.json == []
    assert "no tool calls" in ended.err
    assert "the model refused" in toolkeel("exec", stdin=recorded("openai_responses_refusal")).err


@pytest.mark.parametrize("name", ["openai_chat_hundred_calls", "anthropic_hundred_calls"])
def test_a_hundred_calls_are_answered_in_order(toolkeel: Toolkeel, name: str) -> None:
    messages = toolkeel("exec", stdin=recorded(name)).json
    contents = [each["content"] for each in (messages if len(messages) > 1 else messages[0]["content"])]
    assert contents == [str(number * number) for number in range(100)]


def test_calls_that_share_an_id_are_both_answered(toolkeel: Toolkeel) -> None:
    ended = toolkeel("exec", stdin=recorded("openai_chat_duplicate_ids"))
    assert [message["content"] for message in ended.json] == ["3", "7", "11"]
    assert "repeats the id" in ended.err


def test_a_call_that_was_cut_off_writes_nothing(toolkeel: Toolkeel) -> None:
    ended = toolkeel("exec", stdin=recorded("openai_responses_incomplete"))
    assert "was not run" in ended.json[1]["output"]
    assert not (toolkeel.folder / "report.md").exists()


def test_input_that_is_no_response_exits_with_2_and_names_the_place(toolkeel: Toolkeel) -> None:
    broken = b'{"choices": [{"message": {"tool_calls": [{"id": 7, "function": {"name": "calc"}}]}}]}'
    err = toolkeel("exec", stdin=broken, code=2).err
    assert "choices[0].message.tool_calls[0].id" in err
    assert "the input is empty" in toolkeel("exec", stdin=b"", code=2).err
    assert "Rate limit reached" in toolkeel("exec", stdin=recorded("openai_error"), code=2).err


def test_a_failed_call_is_a_result_unless_strict_is_asked_for(toolkeel: Toolkeel) -> None:
    failing = response(("calc", {"expression": "1 / 0"}))
    assert toolkeel("exec", stdin=failing).json[0]["content"][0]["is_error"] is True
    assert toolkeel("exec", "--strict", stdin=failing, code=1).json
    assert toolkeel("exec", "--strict", stdin=response(("calc", {"expression": "1"}))).json


def test_lines_keep_one_session_so_that_a_large_result_is_read_on(toolkeel: Toolkeel) -> None:
    (toolkeel.folder / "long.txt").write_text("".join(f"line {number}\n" for number in range(5_000)))
    process = toolkeel.start("exec", "--lines")
    assert process.stdin is not None
    assert process.stdout is not None

    def turn(line: bytes) -> Any:
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    first = turn(response(("file_read", {"path": "long.txt", "limit": 5_000})))[0]["content"][0]["content"]
    assert first.startswith("[LARGE OUTPUT: file_read")
    ref = first.partition("ref ")[2].partition("]")[0]
    assert turn(b"{oops")["error"]["what"].startswith("not JSON")
    found = turn(response(("read_output", {"ref": ref, "mode": "search", "query": "line 4321"})))
    assert "line 4321" in found[0]["content"][0]["content"]
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2  # one line could not be read
    assert err == b""


def test_with_lines_whatever_one_line_holds_the_next_is_answered(toolkeel: Toolkeel) -> None:
    call = b'{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"calc","arguments":%s}}]}}]}'
    lines = [
        call % b'"{\\"expression\\":\\"\xff\\"}"',
        b'{"content":[{"type":"tool_use","id":"a","name":"calc","input":{},"toolset_name":1e99999}]}',
        b'{"content":[{"type":"tool_use","id":"a","name":"calc","input":{},"toolset_name":'
        + b"[" * 5000
        + b"]" * 5000
        + b"}]}",
        b'{"output":[{"type":"message","content":[{"type":"output_text","text":1e99999}]}]}',
        call % b"1e99999",
        call % b'"\\ud800"',
        response(("calc", {"expression": "6 * 7"})),
    ]
    ended = toolkeel("exec", "--lines", stdin=b"\n".join(lines), code=None)
    answers = [json.loads(line) for line in ended.out.splitlines()]
    assert len(answers) == len(lines)
    assert answers[0]["error"]["what"].startswith("not UTF-8 at line 1, column ")
    assert answers[1]["error"]["where"] == "toolset_name"
    assert answers[-1][0]["content"][0]["content"] == "42"
    assert ended.code in (1, 2)
    assert "fault of toolkeel" not in ended.out


@pytest.mark.parametrize(
    ("escape", "shown"), [("\\ud800", "\ufffd"), ("\\ud83d\\ude00", "\U0001f600"), ("\\\\ud800", "\\ud800")]
)
def test_half_a_surrogate_pair_in_a_response_stops_none_of_its_calls(escape: str, shown: str) -> None:
    blocks = f'{{"type":"text","text":"cut {escape}"}},{{"type":"tool_use","id":"a","name":"{escape}","input":{{}}}}'
    text = f'{{"content":[{blocks}]}}'
    assert [call.name for call in read_response(text.encode()).tool_calls] == [shown]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cancels_what_runs_and_exits_with_130(toolkeel: Toolkeel, stop: signal.Signals) -> None:
    toolkeel.extension("slow", SLOW)
    process = toolkeel.start("exec")
    process.stdin.write(response(("nap", {}), ("block", {}), ("quick", {})))
    process.stdin.close()
    process.stdin = None
    wait_for(toolkeel.home / "log", "napping", "blocking")
    process.send_signal(stop)
    out, err = process.communicate(timeout=20)  # the blocked thread would hold it for ten minutes
    log = (toolkeel.home / "log").read_text().splitlines()
    assert process.returncode == 130, err
    assert out == b""
    assert b"Traceback" not in err
    assert "nap was told" in log
    assert {"nap cancelled", "block cancelled"} <= set(log)


STUCK = """
import os, time
from pathlib import Path
from toolkeel import hookimpl

@hookimpl
async def plugin_start(context):
    (Path(os.environ["HOME"]) / "log").write_text("stuck")
    time.sleep(600)
"""


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_also_what_blocks_the_loop_and_a_second_one_at_once(
    toolkeel: Toolkeel, stop: signal.Signals, signals: int
) -> None:
    toolkeel.extension("stuck", STUCK, enabled=False)
    digest = toolkeel("plugins", "hash", toolkeel.state / "extensions" / "stuck").out.strip()
    toolkeel.settings(f"kernel:\n  enable: {{stuck: '{digest}'}}\n")
    process = toolkeel.start("tools")
    wait_for(toolkeel.home / "log", "stuck")
    started = time.monotonic()
    process.send_signal(stop)
    if signals == 1:
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert b"did not let go" in err
        return
    while process.poll() is None and time.monotonic() - started < 30:  # signals that are pending are one
        process.send_signal(stop)
        time.sleep(0.02)
    assert process.returncode == -stop
    assert time.monotonic() - started < PATIENCE
    process.communicate(timeout=30)


def test_an_interrupt_while_input_is_awaited_ends_at_once(toolkeel: Toolkeel) -> None:
    process = toolkeel.start("exec", "--lines")
    process.stdin.write(response(("calc", {"expression": "1"})) + b"\n")
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"Fatal" not in err


def test_a_reader_that_goes_away_is_no_fault(toolkeel: Toolkeel) -> None:
    process = toolkeel.start("exec")
    process.stdout.close()
    process.stdin.write(recorded("openai_chat_hundred_calls"))
    process.stdin.close()
    process.stdin = process.stdout = None
    _, err = process.communicate(timeout=60)
    assert process.returncode == 141
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


def test_what_a_plugin_prints_never_reaches_standard_output(toolkeel: Toolkeel) -> None:
    code = SLOW.replace('return "done"', 'print("in a tool"); return "done"') + '\nprint("at import")\n'
    toolkeel.extension("noisy", code)
    ended = toolkeel("exec", stdin=response(("quick", {})))
    assert ended.json[0]["content"][0]["content"] == "done"
    assert "in a tool" in ended.err
    assert toolkeel("call", "quick").out == "done\n"


def test_outputs_that_take_nothing_are_told_and_leave_no_traceback(toolkeel: Toolkeel) -> None:
    for redirection, code, words in (
        (">/dev/full", 1, "No space left"),
        (">&-", 0, ""),
        ("<&-", 2, "standard input is closed"),
    ):
        done = subprocess.run(
            f"{SCRIPT} {'exec' if '<' in redirection else 'tools'} {redirection}",
            shell=True,
            capture_output=True,
            cwd=toolkeel.folder,
            env=toolkeel.environment(),
            timeout=60,
            check=False,
        )
        assert done.returncode == code
        assert words in done.stderr.decode()
        assert b"Traceback" not in done.stderr


def wait_for(path: Path, *words: str) -> None:
    """Wait, bounded, until a file holds words."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if path.exists() and all(word in path.read_text() for word in words):
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never held {words}")
