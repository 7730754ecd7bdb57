"""Large results through a real kernel: what the model gets in their place, and what stays stored."""

from __future__ import annotations

import gc
import json
import random
import re
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from toolkeel import Answer, Preview, Text, Tool, hookimpl, tool
from toolkeel.testing import Kit, check_plugin, kernel_with
from toolkeel_outputs.plugin import Outputs

MEGABYTE = 1_000_000


def giving(result: Callable[[], object], **options: Any) -> type:
    """A plugin with one tool, `export`, that gives this result."""

    @tool(effect="read", **options)
    def export(table: str = "orders") -> Text:
        """Export a table.

        Args:
            table: which one.
        """
        del table
        made = result()
        return made if isinstance(made, Text) else Text(made)  # type: ignore[arg-type]

    class Exporting:
        TOOLS: ClassVar[tuple[Tool, ...]] = (export,)

        @hookimpl
        def register_tools(self) -> tuple[Tool, ...]:
            return self.TOOLS

    return Exporting


async def exported(result: object, *, plugins: tuple[type, ...] = (), **options: Any) -> Answer:
    async with kernel_with(giving(lambda: result, **options), Outputs, *plugins) as kit:
        return await kit.call("export")


def orders(count: int) -> str:
    return json.dumps([{"id": number, "customer": f"Анна {number}", "total": number * 1.5} for number in range(count)])


@pytest.mark.requirement("C3")
async def test_a_large_result_is_answered_by_header_counts_preview_and_how_to_read_on() -> None:
    answer = await exported(orders(1_000))
    assert answer.status == "completed"
    lines = answer.text.splitlines()
    size = len(orders(1_000))
    assert lines[0] == f"[LARGE OUTPUT: export | json | 1 line | {size:,} chars | ref {answer.ref}]"
    assert lines[1:3] == ["Shown: 5 of 1,000 items. Hidden: 995 items.", ""]
    assert lines[3:6] == [
        "[",
        r'  {"id": 0, "customer": "\u0410\u043d\u043d\u0430 0", "total": 0.0},',
        r'  {"id": 1, "customer": "\u0410\u043d\u043d\u0430 1", "total": 1.5},',
    ]
    assert lines[-5] == "The whole is kept for 1 hour. To read on, for example:"
    assert lines[-4].startswith(f'- read_output(ref="{answer.ref}", mode="search", query="…")')
    assert lines[-2].startswith(f'- read_output(ref="{answer.ref}", mode="slice", unit="bytes", start=0, end=8000)')


@pytest.mark.requirement("C3")
async def test_what_a_header_says_can_be_called() -> None:
    text = "".join(f"{number} a line of text\n" for number in range(5_000))
    async with kernel_with(giving(lambda: text), Outputs) as kit:
        answer = await kit.call("export")
        calls = re.findall(r"- read_output\((.*)\)", answer.text)
        assert len(calls) == 3
        for call in calls:
            arguments = {name: json.loads(value) for name, value in re.findall(r'(\w+)=("[^"]*"|\d+)', call)}
            assert (await kit.call("read_output", **arguments)).status == "completed"
        following = await kit.call("read_output", ref=answer.ref, mode="slice", start=61, end=160)
        assert following.text.startswith("60 a line of text\n")
        assert following.ref == ""


@pytest.mark.requirement("C3")
async def test_a_result_that_the_preview_holds_whole_says_result() -> None:
    answer = await exported("id,name\n1,Анна\n", spill="always")
    assert (
        answer.text
        == f"[LARGE OUTPUT: export | text | 2 lines | 15 chars | ref {answer.ref}]\nResult:\nid,name\n1,Анна\n"
    )


@pytest.mark.requirement("C3")
async def test_an_empty_result_that_is_always_stored_says_that_it_is_empty() -> None:
    answer = await exported("", spill="always")
    assert answer.text == f"[LARGE OUTPUT: export | text | 0 lines | 0 chars | ref {answer.ref}]\nResult: empty."


@pytest.mark.requirement("C3")
async def test_over_a_megabyte_the_header_counts_bytes() -> None:
    data = ("строка\n" * 200_000).encode()
    answer = await exported(data)
    assert answer.text.splitlines()[0] == (
        f"[LARGE OUTPUT: export | text | 200,000 lines | {len(data):,} bytes | ref {answer.ref}]"
    )
    assert answer.text.splitlines()[1] == "Shown: 60 of 200,000 lines. Hidden: 199,940 lines."


@pytest.mark.requirement("C3")
async def test_another_session_cannot_read_an_output() -> None:
    async with kernel_with(giving(lambda: orders(1_000)), Outputs) as kit:
        answer = await kit.call("export")
        async with kit.kernel.session(agent="main", session="another") as other:
            offer = await other.offer(other.request("", principal=kit.offer.request.principal))
            refused = await Kit(kit.kernel, other, offer).call("read_output", ref=answer.ref)
        assert refused.failed
        assert f'there is no output "{answer.ref}" in this session' in refused.text
        assert not (await kit.call("read_output", ref=answer.ref)).failed


@pytest.mark.requirement("C3")
async def test_an_output_over_its_time_says_that_it_expired_and_what_to_call() -> None:
    async with kernel_with(
        giving(lambda: orders(1_000)), Outputs, settings={"plugins": {"outputs": {"max_entries": 1}}}
    ) as kit:
        first = await kit.call("export", table="customers")
        await kit.call("export")
        gone = await kit.call("read_output", ref=first.ref)
    assert gone.failed
    assert f'the output {first.ref} of export(table="customers") has expired' in gone.text
    assert "Call export again and use the ref of its new result" in gone.text


@pytest.mark.requirement("C3")
async def test_a_result_larger_than_the_store_is_previewed_and_says_that_the_rest_is_lost() -> None:
    async with kernel_with(
        giving(lambda: orders(1_000)), Outputs, settings={"plugins": {"outputs": {"max_bytes": 1_000}}}
    ) as kit:
        answer = await kit.call("export")
    assert answer.ref == ""
    assert answer.text.startswith("[LARGE OUTPUT: export | json | 1 line | ")
    assert "| not kept]" in answer.text
    assert answer.text.endswith(
        "The rest is lost: it is larger than 1,000 bytes (plugins.outputs.max_bytes). "
        "Call export again for a smaller part."
    )


class Recipes:
    """A stranger's previewer: it knows one type, and says in which thread it was asked."""

    threads: ClassVar[list[threading.Thread]] = []

    @hookimpl
    def preview_output(self, kind: str, data: memoryview, limit: int) -> Preview | None:
        self.threads.append(threading.current_thread())
        if kind != "text/x-recipe":
            return None
        return Preview("recipe", f"A recipe of {len(data):,} bytes. " * limit, shown=1, total=3, unit="steps")


class Broken:
    @hookimpl
    def preview_output(self, kind: str) -> Preview | None:
        raise ValueError(kind)


@pytest.mark.requirement("C4")
async def test_another_plugin_previews_the_types_that_it_knows() -> None:
    answer = await exported(Text("mix\n" * 5_000, "text/x-recipe"), plugins=(Recipes,))
    assert answer.text.startswith("[LARGE OUTPUT: export | recipe | 5,000 lines | 20,000 chars | ref out_")
    assert "Shown: 1 of 3 steps. Hidden: 2 steps.\n\nA recipe of 20,000 bytes." in answer.text
    assert len(answer.text) < 5_000
    assert "| csv |" in (await exported("a,b\n1,2\n" * 5_000, plugins=(Recipes,))).text


@pytest.mark.requirement("C4")
async def test_a_previewer_that_fails_leaves_it_to_the_next_one() -> None:
    answer = await exported(orders(1_000), plugins=(Broken,))
    assert "| json |" in answer.text


@pytest.mark.requirement("C3")
async def test_previews_of_large_results_are_made_in_a_worker_thread() -> None:
    Recipes.threads.clear()
    await exported("x" * MEGABYTE, plugins=(Recipes,))
    assert Recipes.threads
    assert threading.main_thread() not in Recipes.threads


def array() -> bytes:
    row = '{"id": 1, "title": "Задача", "labels": ["bug"], "body": "' + "x" * 200 + '"}'
    return ("[" + ",".join([row] * (100 * MEGABYTE // (len(row.encode()) + 1))) + "]").encode()


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("make", "header", "shown"),
    [
        (array, "json | 1 line", "Shown: the first 5 items. Hidden: the rest, which was not counted."),
        (lambda: b"word " * (20 * MEGABYTE), "text | 1 line", "Shown: 3,9"),
        (lambda: b"\x00" + random.Random(1).randbytes(100 * MEGABYTE), "binary | ", "Shown: 256 of 100,000,001 bytes."),
    ],
    ids=["json array", "one line", "garbage"],
)
async def test_a_hundred_megabytes_are_stored_and_read_without_a_copy(
    make: Callable[[], bytes], header: str, shown: str
) -> None:
    data = make()
    async with kernel_with(giving(lambda: Text(data)), Outputs) as kit:
        tracemalloc.start()
        try:
            answer = await kit.call("export")
            for mode in ("head", "tail"):
                assert not (await kit.call("read_output", ref=answer.ref, mode=mode)).failed
            found = await kit.call("read_output", ref=answer.ref, mode="search", query="задача")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert answer.text.startswith(f"[LARGE OUTPUT: export | {header}")
    assert f"| {len(data):,} bytes | ref" in answer.text
    assert shown in answer.text
    assert not found.failed
    assert peak < 10 * MEGABYTE


async def test_a_disabled_plugin_lets_its_outputs_go() -> None:
    data = b"x" * MEGABYTE
    async with kernel_with(giving(lambda: data), Outputs) as kit:
        before = sys.getrefcount(data)
        ref = (await kit.call("export")).ref
        gc.collect()
        assert sys.getrefcount(data) > before
        await kit.kernel.plugins.disable("outputs")
        assert sys.getrefcount(data) == before
        assert (await kit.call("read_output", ref=ref)).failed


async def test_the_plugin_keeps_every_promise_that_the_kit_checks() -> None:
    assert await check_plugin(Outputs) == []


@pytest.mark.parametrize(("setting", "value"), [("ttl", 0), ("max_entries", 0), ("preview_chars", 10), ("tll", 5)])
async def test_settings_that_make_no_sense_name_their_place(setting: str, value: int) -> None:
    async with kernel_with(Outputs, settings={"plugins": {"outputs": {setting: value}}}, broken=True) as kit:
        [plugin] = kit.kernel.plugins.list()
    assert plugin.state == "quarantined"
    assert f"plugins.outputs.{setting}" in plugin.reason
