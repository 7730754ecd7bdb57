"""The plugin in a kernel: what it offers, and that its README tells the truth."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolkeel.testing import check_plugin, kernel_with
from toolkeel_basics import plugin

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
NAMES = ("calc", "datetime", "json_transform", "regex", "text_utils")
EXAMPLES = re.findall(r"^(\w+)\((.*)\)\n→ (.*)$", README, re.MULTILINE)


async def test_the_five_tools_are_offered_as_reads_and_only_the_clock_is_volatile() -> None:
    async with kernel_with(plugin) as kit:
        assert tuple(tool.name for tool in kit.offer.tools) == NAMES
        assert {tool.effect for tool in kit.offer.tools} == {"read"}
        assert [tool.name for tool in kit.offer.tools if tool.volatile] == ["datetime"]


async def test_nothing_is_missing_of_what_every_plugin_promises() -> None:
    assert await check_plugin(plugin) == []


def test_every_session_gets_the_same_tuple() -> None:
    assert plugin.register_tools() is plugin.register_tools()


async def test_a_failure_is_an_answer_that_names_the_place_and_the_limit() -> None:
    async with kernel_with(plugin) as kit:
        answer = await kit.call("calc", expression="1 + 9**9**9")
        assert answer.status == "failed"
        assert "column 6" in answer.text
        assert "limit is 10,000" in answer.text


async def test_slips_in_the_arguments_are_repaired() -> None:
    async with kernel_with(plugin) as kit:
        one = await kit.call("datetime", operation="convert", value="2024-01-01T00:00Z", to_zones="Asia/Tokyo")
        other = await kit.call("text_utils", operation="truncate", text="abcdef", width="3")
        assert "09:00:00+09:00" in one.text
        assert other.text == "ab…"


async def test_a_batch_of_all_tools_answers_in_order() -> None:
    calls = [
        ("calc", {"expression": "2**100"}),
        ("datetime", {"operation": "info", "value": "2024-02-29"}),
        ("json_transform", {"data": {"a": [1, 2]}, "query": "a[1]"}),
        ("regex", {"operation": "findall", "pattern": r"\d", "text": "a1b2"}),
        ("text_utils", {"operation": "upper", "text": "ab"}),
    ]
    async with kernel_with(plugin) as kit:
        answers = await kit.batch(calls)
    assert [answer.tool for answer in answers] == [name for name, _ in calls]
    assert answers[0].text.startswith("1267650600228229401496703205376")
    assert '"weekday":"Thursday"' in answers[1].text
    assert [answer.text for answer in answers[2:]] == ["2", '{"count":2,"matches":["1","2"]}', "AB"]


@pytest.mark.parametrize(("tool", "arguments", "expected"), EXAMPLES)
async def test_the_examples_of_the_readme_answer_as_it_says(tool: str, arguments: str, expected: str) -> None:
    call = ast.parse(f"f({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    async with kernel_with(plugin) as kit:
        answer = await kit.call(tool, **named)
    assert answer.text.startswith(expected)


def test_the_readme_has_an_example_of_every_tool() -> None:
    assert tuple(sorted({tool for tool, _, _ in EXAMPLES})) == NAMES


def test_the_hooks_load_neither_a_tool_nor_a_library_before_they_are_called() -> None:
    code = (
        "import sys, toolkeel_basics.plugin as p\n"
        "heavy = {'re2', 'jmespath', 'toolkeel_basics.tools'}\n"
        "assert not heavy & set(sys.modules), sorted(heavy & set(sys.modules))\n"
        "p.register_tools()\n"
        "assert 're2' not in sys.modules\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
