"""The text of typed results, as a model or a person reads it."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import time
import uuid
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from types import MappingProxyType, ModuleType
from typing import Any

import msgspec
import orjson
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from toolkeel import (
    Answer,
    Call,
    Data,
    Failure,
    Markdown,
    Media,
    Parts,
    Spilled,
    Text,
    Tool,
    ToolCall,
    ToolError,
    tool,
)
from toolkeel.rendering import plain, render, to_result
from toolkeel.scope import Format
from toolkeel.testing import Kit, kernel_with

MakePlugin = Callable[..., ModuleType]
DOCUMENT = """# Title

Some **bold**, *slanted* and `code` with [a link](https://example.org/x_y_z), snake_case_name and 2 * 3 * 4.

```python
print("kept")
```
- item
"""


def giving(*values: Any, spill: Any = "large") -> Tool:
    """A tool that gives the value of its number."""

    @tool(effect="read", inline=True, spill=spill)
    def give(number: int = 0) -> Any:
        """Give a value."""
        return values[number]

    return give


async def answers(kit: Kit, count: int, form: Format = "markdown") -> list[Answer]:
    request = kit.session.request(principal=kit.offer.request.principal, format=form)
    offer = await kit.session.offer(request)
    return await offer.call([ToolCall("give", {"number": number}, "") for number in range(count)])


async def written(make_plugin: MakePlugin, value: Any, form: Format = "markdown") -> str:
    """The text of a value that a call gave, the same for a call alone and one in a batch."""
    async with kernel_with(make_plugin(giving(value))) as kit:
        [alone] = await answers(kit, 1, form)
        offer = await kit.session.offer(kit.session.request(principal=kit.offer.request.principal, format=form))
        [one, two] = await offer.call([ToolCall("give", {}, ""), ToolCall("give", {}, "")])
    assert alone.text == one.text == two.text
    assert alone.status == ("failed" if isinstance(value, Failure) else "completed")
    return alone.text


# The typed results -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K16")
@pytest.mark.parametrize(
    ("value", "markdown", "plain_text"),
    [
        ("text", "text", "text"),
        (Text("text"), "text", "text"),
        (Text("größe 日本".encode()), "größe 日本", "größe 日本"),
        (b"bytes", "bytes", "bytes"),
        (bytearray(b"bytes"), "bytes", "bytes"),
        (Markdown("# A\n**b**"), "# A\n**b**", "A\nb"),
        (Data({"a": [1, None]}), '{"a":[1,null]}', '{\n  "a": [\n    1,\n    null\n  ]\n}'),
        ([], "[]", "[]"),
        (5, "5", "5"),
        (1.5, "1.5", "1.5"),
        (True, "true", "true"),
        (None, "(no output)", "(no output)"),
        ("", "(no output)", "(no output)"),
        (b"", "(no output)", "(no output)"),
        (Data(None), "null", "null"),
        (Media(b"12345", "image/png", "a.png"), "[image/png a.png, 5 bytes]", "[image/png a.png, 5 bytes]"),
        (Media(b"x" * 1234, "audio/wav"), "[audio/wav, 1,234 bytes]", "[audio/wav, 1,234 bytes]"),
        (Failure("it broke"), "it broke", "it broke"),
        (Failure(""), "(no output)", "(no output)"),
        (Parts((Text("a"), Markdown("**b**"), Data(1))), "a\n\n**b**\n\n1", "a\n\nb\n\n1"),
        (Parts((Text("a"), Text(b"\xc3\xa4"))), "a\n\nä", "a\n\nä"),
        (Parts(()), "(no output)", "(no output)"),
    ],
)
async def test_each_type_is_written_for_each_surface(
    make_plugin: MakePlugin, value: Any, markdown: str, plain_text: str
) -> None:
    assert await written(make_plugin, value) == markdown
    assert await written(make_plugin, value, "plain") == plain_text


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Model(BaseModel):
    name: str
    day: datetime.date


class Struct(msgspec.Struct):
    price: decimal.Decimal


@pytest.mark.requirement("K16")
@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        (decimal.Decimal("1.50"), "1.50"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC), "2024-02-29T12:00:00+00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (Colour.RED, "red"),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Model(name="n", day=datetime.date(2024, 1, 1)), {"name": "n", "day": "2024-01-01"}),
        (Struct(decimal.Decimal("2.0")), {"price": "2.0"}),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset(["b", "a"]), ["a", "b"]),
        ((1, (2,)), [1, [2]]),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        ({2: "a", None: "b", True: "c"}, {"2": "a", "null": "b", "true": "c"}),
        (float("nan"), None),
        (float("inf"), None),
        (2**64, 2**64),
        (-(2**200), -(2**200)),
        ("\x00\x1b", "\x00\x1b"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a big integer"])
async def test_values_of_python_are_written_as_json(
    make_plugin: MakePlugin, value: Any, decoded: Any, beside: bool
) -> None:
    if beside:
        text = await written(make_plugin, {"value": value, "big": 2**70})
        assert json.loads(text, parse_constant=str) == {"value": decoded, "big": 2**70}
    else:
        text = await written(make_plugin, [value])
        assert json.loads(text, parse_constant=str) == [decoded]


@pytest.mark.parametrize("value", [10**5_000, [10**5_000], {"a": -(10**9_000)}], ids=["alone", "list", "mapping"])
async def test_an_integer_too_long_for_python_to_write_is_written_all_the_same(
    make_plugin: MakePlugin, value: Any
) -> None:
    text = await written(make_plugin, value)
    assert "0x" in text


def cyclic() -> Any:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def deep() -> Any:
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    return nested


class Stubborn:
    """Cannot be dumped, although it says so."""

    def model_dump(self, **options: Any) -> Any:
        raise ValueError("no")


@pytest.mark.parametrize(
    "value",
    [
        object(),
        b"in a list",
        lambda: 1,
        1j,
        cyclic(),
        deep(),
        {("a", "b"): 1},
        Stubborn(),
        (number for number in range(3)),
    ],
    ids=["object", "bytes", "function", "complex", "cycle", "depth", "tuple keys", "stubborn", "generator"],
)
async def test_a_value_that_json_cannot_express_is_said_to_be_so_and_the_call_is_done(
    make_plugin: MakePlugin, value: Any
) -> None:
    async with kernel_with(make_plugin(giving([value], {"big": 2**70, "value": value}))) as kit:
        for answer in await answers(kit, 2):
            assert answer.status == "completed"
            assert answer.text.startswith("give finished, but its result cannot be written as JSON")


@pytest.mark.parametrize(
    "result",
    [
        Text(None),  # type: ignore[arg-type]
        Text(5),  # type: ignore[arg-type]
        Text(memoryview(b"view")),  # type: ignore[arg-type]
        Markdown(None),  # type: ignore[arg-type]
        Markdown(5),  # type: ignore[arg-type]
        Markdown(b"# bytes"),  # type: ignore[arg-type]
        Media(None, "image/png"),  # type: ignore[arg-type]
        Media("text", None, 5),  # type: ignore[arg-type]
        Parts(None),  # type: ignore[arg-type]
        Parts(5),  # type: ignore[arg-type]
        Parts(("text", 5)),  # type: ignore[arg-type]
        Parts((Failure("inner"),)),  # type: ignore[arg-type]
        Parts((Parts((Text("inner"),)),)),  # type: ignore[arg-type]
        Failure(None),  # type: ignore[arg-type]
        Failure(5),  # type: ignore[arg-type]
        Failure(b"bytes"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
@pytest.mark.parametrize("form", ["markdown", "plain"])
async def test_a_result_filled_with_the_wrong_type_hurts_no_other_call(
    make_plugin: MakePlugin, result: Any, form: Format
) -> None:
    async with kernel_with(make_plugin(giving(result, "fine"))) as kit:
        odd, fine = await answers(kit, 2, form)
        [alone] = await answers(kit, 1, form)
        assert kit.kernel.load["free"] == 8
    assert fine.text == "fine"
    for answer in (odd, alone):
        assert isinstance(answer.text, str)
        assert answer.status in ("completed", "failed")


# Text that is not text ---------------------------------------------------------------------------------------------


def raising(text: str) -> Tool:
    @tool
    async def give(number: int = 0) -> None:
        """Fail in these words."""
        raise ToolError(text)

    return give


@pytest.mark.requirement("K16")
@pytest.mark.parametrize(
    "value",
    [
        "lone \ud800 surrogate",
        Text("lone \ud800 surrogate"),
        Markdown("lone \ud800 surrogate"),
        {"a": "lone \ud800 surrogate"},
        {"lone \ud800": "key", "big": 2**70},
        ["lone \ud800 surrogate"] * 3_000,
        Failure("lone \ud800 surrogate"),
        Parts((Text("lone \ud800"), Text(b"and bytes"))),
        Media(b"", "image/png", "\ud800.png"),
        b"\xff\xfe not \x80 utf-8",
        "\ud800" * 2_000_000,
    ],
    ids=["str", "text", "markdown", "value", "key", "large", "failure", "parts", "media", "bytes", "huge"],
)
@pytest.mark.parametrize("form", ["markdown", "plain"])
async def test_every_answer_can_be_sent_as_utf_8(make_plugin: MakePlugin, value: Any, form: Format) -> None:
    text = await written(make_plugin, value, form)
    assert text.encode()
    assert "cannot be written" not in text


async def test_errors_and_names_with_surrogates_can_be_sent_too(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(raising("lone \ud800"))) as kit:
        calls = [
            ToolCall("give", {}, ""),
            ToolCall("gi\ud800e", {}, ""),
            ToolCall("give", {"num\ud800ber": 1}, ""),
            ToolCall("give", '{"number": "\ud800"}', ""),
            ToolCall("give", b'{"number": "\xff"}', ""),
        ]
        found = await kit.offer.call(calls)
    for answer in found:
        assert answer.failed
        assert answer.text.encode()
        assert (answer.record.reason + answer.record.tool).encode(), "an audit can write it"


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
)
def test_every_json_value_is_read_back_as_it_was(value: Any) -> None:
    async def both() -> tuple[str | bytes, str | bytes]:
        return await render(Data(value), "markdown"), await render(Data(value), "plain")

    for text in trio.run(both):
        assert json.loads(text) == value


@pytest.mark.parametrize("length", [999, 1_000, 1_001, 2_001, 5_000])
async def test_a_list_written_in_slices_is_the_same_list(length: int) -> None:
    value = [[number, str(number), None] for number in range(length)]
    assert json.loads(await render(Data(value), "markdown")) == value


# Markdown to plain -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K16")
def test_plain_text_loses_marks_and_nothing_else() -> None:
    assert plain(DOCUMENT) == (
        "Title\n\n"
        "Some bold, slanted and code with a link (https://example.org/x_y_z), snake_case_name and 2 * 3 * 4.\n\n"
        'print("kept")\n'
        "- item\n"
    )


@pytest.mark.parametrize(
    "markdown",
    ["**a " * 50_000, "__a " * 50_000, "[" * 200_000, "![" * 100_000, "*a " * 60_000, "`" * 200_001, "#" * 200_000,
     "**" * 100_000, "[a](" * 50_000, "*" * 200_000, "```\n" * 50_000],
    ids=lambda text: text[:4],
)  # fmt: skip
def test_tangled_markdown_takes_time_in_proportion(markdown: str) -> None:
    started = time.process_time()
    plain(markdown)
    assert time.process_time() - started < 5


# Large results -----------------------------------------------------------------------------------------------------


STALL = 0.05
"""Seconds that the loop may go without a turn, whatever is written."""


async def longest_gap(kit: Kit, form: Format) -> float:
    """How long the loop went without a turn while the call was answered: the first good one of four rounds.

    Counted in the process's own time, so that other programs do not count as stalls.
    """
    best = math.inf
    for _ in range(4):
        if best < STALL:
            break
        gap, last = 0.0, time.process_time()

        def note() -> None:
            nonlocal gap, last
            now = time.process_time()
            gap, last = max(gap, now - last), now

        async def tick() -> None:
            while True:
                await trio.sleep(0)
                note()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            await answers(kit, 1, form)
            note()
            nursery.cancel_scope.cancel()
        best = min(best, gap)
    return best


ROW = {"number": 0.37, "text": '"quoted"\n\t' * 40}
LINE = "**bold** and [a link](https://example.org) of `code`\n"
LARGE: dict[str, Callable[[], Any]] = {
    "list": lambda: [ROW] * 60_000,
    "mapping of a list": lambda: {"rows": [ROW] * 60_000},
    "wide mapping": lambda: dict.fromkeys(map(str, range(60_000)), ROW),
    "text": lambda: "größe " * 3_000_000,
    "markdown as it is": lambda: Markdown(LINE * 200_000),
    "markdown as plain text": lambda: Markdown(LINE * 60_000),
    "markdown of one line": lambda: Markdown(LINE.strip() * 60_000),
}


@pytest.mark.parametrize("shape", LARGE)
async def test_writing_a_large_result_does_not_stall_the_loop(make_plugin: MakePlugin, shape: str) -> None:
    async with kernel_with(make_plugin(giving(LARGE[shape]()))) as kit:
        gap = await longest_gap(kit, "plain" if "plain" in shape or "one line" in shape else "markdown")
    assert gap < STALL


@pytest.mark.requirement("K10")
async def test_a_large_result_goes_whole_to_the_spiller(make_plugin: MakePlugin) -> None:
    spilled: list[tuple[str, bytes]] = []

    async def spill_result(call: Call, content: bytes, media_type: str) -> Spilled:
        spilled.append((media_type, content))
        return Spilled(f"preview of {len(content)}", f"ref-{len(spilled)}", len(content))

    numbers = list(range(5_000))
    small, large, page = "x" * 8_000, Text("ä" * 8_001, "text/plain"), Markdown("y" * 9_000)
    async with kernel_with(make_plugin(giving(small, large, numbers, page), hooks=[spill_result])) as kit:
        first, second, third, fourth = await answers(kit, 4)
    assert (first.text, first.ref) == (small, "")
    assert second.text == "preview of 16002"
    assert second.result == Text("preview of 16002")
    assert sorted(spilled) == [
        ("application/json", orjson.dumps(numbers)),
        ("text/markdown", b"y" * 9_000),
        ("text/plain", "ä".encode() * 8_001),
    ]
    assert sorted([second.ref, third.ref, fourth.ref]) == ["ref-1", "ref-2", "ref-3"]


async def test_without_a_spiller_a_large_result_is_cut_and_says_so(make_plugin: MakePlugin) -> None:
    large = "line\n" * 10_000
    text = await written(make_plugin, large)
    assert text.startswith(large[:7_000])
    assert len(text) < 8_200
    assert text.endswith(f"[{50_000 - 8_000:,} more bytes were cut: no active plugin stores large results]")


@pytest.mark.parametrize("fault", ["raises", "exits", "wrong type", "nothing"])
async def test_a_failing_spiller_costs_the_ref_and_not_the_call(make_plugin: MakePlugin, fault: str) -> None:
    async def spill_result(call: Call) -> Any:
        if fault == "raises":
            raise OSError("the disk is full")
        if fault == "exits":
            raise SystemExit(1)
        return "stored" if fault == "wrong type" else None

    async with kernel_with(make_plugin(giving("x" * 9_000, "small"), hooks=[spill_result])) as kit:
        large, small = await answers(kit, 2)
        notes = kit.kernel.plugins.list()[0].notes
    assert (large.status, large.ref, small.text) == ("completed", "", "small")
    assert "no active plugin stores" in large.text
    assert bool(notes) == (fault != "nothing")


@pytest.mark.parametrize(("spill", "stored"), [("always", True), ("large", False), ("never", False)])
async def test_a_tool_says_whether_its_results_are_stored(make_plugin: MakePlugin, spill: str, stored: bool) -> None:
    async def spill_result(call: Call, content: bytes) -> Spilled:
        return Spilled("stored", "ref", len(content))

    async with kernel_with(make_plugin(giving("small", "", spill=spill), hooks=[spill_result])) as kit:
        small, empty = await answers(kit, 2)
    assert (small.ref, empty.ref) == (("ref", "ref") if stored else ("", ""))


async def test_a_tool_that_is_never_spilled_gives_all_it_has(make_plugin: MakePlugin) -> None:
    async def spill_result(call: Call, content: bytes) -> Spilled:
        return Spilled("stored", "ref", len(content))

    async with kernel_with(make_plugin(giving("z" * 50_000, spill="never"), hooks=[spill_result])) as kit:
        [answer] = await answers(kit, 1)
    assert (answer.text, answer.ref) == ("z" * 50_000, "")


async def test_the_largest_failure_is_cut_like_any_other_text(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(raising("e" * 100_000))) as kit:
        [answer] = await answers(kit, 1)
    assert answer.status == "failed"
    assert len(answer.text) < 8_200
    assert len(answer.record.reason) <= 500


async def test_the_limit_is_a_setting(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(giving("x" * 1_000)), settings={"kernel": {"max_result_chars": 300}}) as kit:
        [answer] = await answers(kit, 1)
    assert answer.text.startswith("x" * 300 + "\n[700 more bytes")


def test_results_are_made_of_what_tools_return() -> None:
    for typed in (Text("a"), Markdown("a"), Data(1), Media(b"", "a/b"), Failure("a"), Parts(())):
        assert to_result(typed) is typed
    assert to_result("a") == Text("a")
    assert to_result(b"a") == Text(b"a")
    assert to_result(None) == Text("")
    assert to_result([1]) == Data([1])
