"""Resource keys: which calls of a batch run in the model's order, and which at once."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from toolkeel import EVERYTHING, Call, Key, Reason, Refuse, Scope, ToolCall, ToolError, hookimpl, tool
from toolkeel.keys import Planner, overlap
from toolkeel.testing import Kit, kernel_with

MakePlugin = Callable[..., ModuleType]
Batch = list[tuple[str, dict[str, Any]]]
Plan = list[tuple[list[Key], list[Key]]]


def path_key(arguments: Mapping[str, Any], scope: Scope) -> list[Key]:
    return [("file", *arguments["path"].strip("/").split("/"))]


class Files:
    """Tools on paths that each wait to be let go, and the order in which they began and ended."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.gates: defaultdict[str, trio.Event] = defaultdict(trio.Event)

        @tool(effect="read", reads=path_key)
        async def read(path: str, as_: str) -> str:
            """Read a file."""
            return await self.work(as_)

        @tool(writes=path_key)
        async def write(path: str, as_: str) -> str:
            """Write a file."""
            return await self.work(as_)

        @tool(writes=lambda arguments, scope: [EVERYTHING])
        async def shell(as_: str) -> str:
            """Touch everything."""
            return await self.work(as_)

        @tool
        async def change(as_: str) -> str:
            """Change something that is not declared."""
            return await self.work(as_)

        @tool(effect="read")
        async def look(as_: str) -> str:
            """Look at something that is not declared."""
            return await self.work(as_)

        self.tools = (read, write, shell, change, look)

    async def work(self, name: str) -> str:
        self.begun.append(name)
        await self.gates[name].wait()
        self.ended.append(name)
        return name

    async def waves(self, kit: Kit, batch: Batch) -> list[set[str]]:
        """Run a batch and answer which calls began together: a wave ends when nothing more begins by itself."""
        waves: list[set[str]] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kit.batch, batch)
            while sum(map(len, waves)) < len(batch):
                await wait_all_tasks_blocked()
                wave = set(self.begun) - set(self.ended)
                assert wave, f"nothing runs after {waves}"
                waves.append(wave)
                for name in wave:
                    self.gates[name].set()
        return waves


def on(name: str, path: str, as_: str) -> tuple[str, dict[str, Any]]:
    return name, {"path": path, "as_": as_}


def free(name: str, as_: str) -> tuple[str, dict[str, Any]]:
    return name, {"as_": as_}


@pytest.mark.requirement("K9")
@pytest.mark.parametrize(
    ("batch", "waves"),
    [
        pytest.param(
            [on("write", "a", "1"), on("write", "b", "2"), on("write", "a", "3"), on("write", "a", "4")],
            [{"1", "2"}, {"3"}, {"4"}],
            id="writes of one path run in order and others at once",
        ),
        pytest.param(
            [on("read", "a", "1"), on("read", "a", "2"), on("write", "a", "3"), on("read", "a", "4")],
            [{"1", "2"}, {"3"}, {"4"}],
            id="reads run at once and a write waits for those before it",
        ),
        pytest.param(
            [on("read", "src", "1"), on("write", "src/a", "2"), on("write", "lib/a", "3"), on("read", "src", "4")],
            [{"1", "3"}, {"2"}, {"4"}],
            id="searching a folder conflicts with writing a file in it",
        ),
        pytest.param(
            [on("write", "src/a", "1"), on("write", "src/ab", "2"), on("read", "src/a/b", "3")],
            [{"1", "2"}, {"3"}],
            id="a prefix is by parts and not by letters",
        ),
        pytest.param(
            [free("change", "1"), free("look", "2"), on("read", "a", "3"), free("change", "4")],
            [{"1"}, {"2", "3"}, {"4"}],
            id="an undeclared write has its group to itself",
        ),
        pytest.param(
            [on("write", "a", "1"), free("shell", "2"), on("read", "b", "3"), free("look", "4")],
            [{"1"}, {"2"}, {"3", "4"}],
            id="everything is touched by a shell",
        ),
        pytest.param(
            [on("read", "a", "1"), free("look", "2"), on("read", "a", "3")],
            [{"1", "2", "3"}],
            id="reads alone never wait",
        ),
    ],
)
async def test_calls_that_touch_the_same_run_in_order_and_all_others_at_once(
    make_plugin: MakePlugin, batch: Batch, waves: list[set[str]]
) -> None:
    files = Files()
    async with kernel_with(make_plugin(*files.tools)) as kit:
        assert await files.waves(kit, batch) == waves


@pytest.mark.requirement("K9")
async def test_an_undeclared_write_leaves_other_groups_alone(make_plugin: MakePlugin) -> None:
    files = Files()

    @tool(effect="read", group="elsewhere")
    async def outside(as_: str) -> str:
        """Belong to another group of the same plugin."""
        return await files.work(as_)

    @tool(effect="read", name="stranger")
    async def stranger(as_: str) -> str:
        """Belong to another plugin."""
        return await files.work(as_)

    async with kernel_with(make_plugin(outside, *files.tools), make_plugin(stranger, name="other")) as kit:
        batch = [free("change", "1"), free("outside", "2"), free("stranger", "3"), free("look", "4")]
        assert await files.waves(kit, batch) == [{"1", "2", "3"}, {"4"}]


@pytest.mark.requirement("K9")
async def test_an_undeclared_write_waits_for_declared_calls_of_its_group(make_plugin: MakePlugin) -> None:
    files = Files()
    async with kernel_with(make_plugin(*files.tools)) as kit:
        batch = [on("write", "a", "1"), free("change", "2"), on("write", "b", "3")]
        assert await files.waves(kit, batch) == [{"1"}, {"2"}, {"3"}]


def broken_key(fault: str) -> Callable[[Mapping[str, Any], Scope], Any]:
    def keys(arguments: Mapping[str, Any], scope: Scope) -> Any:
        match fault:
            case "raises":
                raise ValueError("no such path")
            case "exits":
                sys.exit(3)
            case "gives no keys":
                return 5
            case "gives lists":
                return [["file", "a"]]
            case "gives parts that are no text":
                return [("file", ["a"])]
            case "fails while it is read":
                return (1 / 0 for _ in range(1))
        return []

    return keys


@pytest.mark.requirement("K9")
@pytest.mark.parametrize(
    "fault",
    ["raises", "exits", "gives no keys", "gives lists", "gives parts that are no text", "fails while it is read"],
)
async def test_a_write_whose_key_function_fails_counts_as_undeclared(make_plugin: MakePlugin, fault: str) -> None:
    files = Files()

    @tool(writes=broken_key(fault))
    async def vague(as_: str) -> str:
        """Change what nobody knows."""
        return await files.work(as_)

    async with kernel_with(make_plugin(vague, *files.tools)) as kit:
        batch = [free("vague", "1"), on("write", "a", "2"), on("write", "b", "3")]
        assert await files.waves(kit, batch) == [{"1"}, {"2", "3"}]
        [plugin] = kit.kernel.plugins.list()
    assert any("vague" in note for note in plugin.notes), "the failure is recorded with the plugin"


@pytest.mark.requirement("K9")
async def test_a_read_that_declares_nothing_waits_for_the_declared_writes_of_its_group(make_plugin: MakePlugin) -> None:
    files = Files()
    async with kernel_with(make_plugin(*files.tools)) as kit:
        batch = [on("write", "a", "1"), free("look", "2"), on("write", "b", "3")]
        assert await files.waves(kit, batch) == [{"1"}, {"2"}, {"3"}]


async def test_a_read_whose_key_function_fails_waits_for_every_write(make_plugin: MakePlugin) -> None:
    files = Files()

    @tool(effect="read", reads=broken_key("raises"))
    async def vague(as_: str) -> str:
        """Read what nobody knows."""
        return await files.work(as_)

    async with kernel_with(make_plugin(vague, name="other"), make_plugin(*files.tools)) as kit:
        batch = [on("write", "a", "1"), free("vague", "2"), on("write", "b", "3")]
        assert await files.waves(kit, batch) == [{"1"}, {"2"}, {"3"}]


@pytest.mark.parametrize("arguments", ["{broken", '{"path": 5, "as_": [1]}', '{"as_": "1"}'])
async def test_a_call_that_fails_before_it_runs_lets_the_next_one_go(make_plugin: MakePlugin, arguments: str) -> None:
    files = Files()
    files.gates["2"].set()
    async with kernel_with(make_plugin(*files.tools)) as kit:
        calls = [ToolCall("write", arguments, "1"), ToolCall("write", {"path": "a", "as_": "2"}, "2")]
        first, second = await kit.offer.call(calls)
    assert (first.status, second.status) == ("failed", "completed")


async def test_a_refused_or_failing_call_lets_the_next_one_go(make_plugin: MakePlugin) -> None:
    ran: list[int] = []

    @tool(writes=path_key)
    async def write(path: str, number: int) -> None:
        """Write."""
        ran.append(number)
        if number == 1:
            raise ToolError("the disk is full")

    async def authorize_tool_call(call: Call) -> Refuse | None:
        return Refuse(Reason("not this one")) if call.arguments["number"] == 0 else None

    async with kernel_with(make_plugin(write, hooks=[authorize_tool_call])) as kit:
        answers = await kit.batch([("write", {"path": "a", "number": number}) for number in range(3)])
    assert [answer.status for answer in answers] == ["refused", "failed", "completed"]
    assert ran == [1, 2]


async def test_keys_order_one_batch_only(make_plugin: MakePlugin) -> None:
    files = Files()
    async with kernel_with(make_plugin(*files.tools)) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(kit.batch, [on("write", "a", "1"), on("read", "b", "2")])
        nursery.start_soon(kit.batch, [on("write", "a", "3"), on("read", "b", "4")])
        await wait_all_tasks_blocked()
        assert set(files.begun) == {"1", "2", "3", "4"}
        for name in "1234":
            files.gates[name].set()


async def test_records_and_hooks_see_the_keys_of_a_call(make_plugin: MakePlugin) -> None:
    seen: list[tuple[tuple[Key, ...], tuple[Key, ...]]] = []

    async def authorize_tool_call(call: Call) -> None:
        seen.append((call.reads, call.writes))

    @tool(reads=path_key, writes=lambda arguments, scope: [("table", "t")])
    async def both(path: str) -> None:
        """Read one and write another."""

    async with kernel_with(make_plugin(both, hooks=[authorize_tool_call])) as kit:
        answer = await kit.call("both", path="src/a")
    assert seen == [((("file", "src", "a"),), (("table", "t"),))]
    assert (answer.record.reads, answer.record.writes) == seen[0]


async def test_hooks_see_the_keys_of_an_undeclared_write_after_a_rewrite(make_plugin: MakePlugin) -> None:
    seen: list[tuple[Key, ...]] = []

    async def rewrite_tool_call(call: Call) -> None: ...

    async def authorize_tool_call(call: Call) -> None:
        seen.append(call.writes)

    @tool
    async def change() -> None:
        """Change something."""

    async with kernel_with(make_plugin(change, hooks=[rewrite_tool_call, authorize_tool_call])) as kit:
        answer = await kit.call("change")
    assert seen == [answer.record.writes] == [(("group", "tools"),)]


# The planner, against the plain rule ---------------------------------------------------------------------------------

PART = st.sampled_from("abc")
KEY = st.lists(PART, max_size=3).map(tuple)
KEYS = st.lists(KEY, max_size=2)
PLAN = st.lists(st.tuples(KEYS, KEYS), max_size=9)


def conflict(one: tuple[Iterable[Key], Iterable[Key]], other: tuple[Iterable[Key], Iterable[Key]]) -> bool:
    reads, writes = (list(keys) for keys in one)
    other_reads, other_writes = (list(keys) for keys in other)
    return overlap(writes, [*other_reads, *other_writes]) or overlap(reads, other_writes)


def in_group(plan: Plan) -> Plan:
    """The plan as the kernel sees it: every call also reads its group, so that whoever writes that goes alone."""
    return [([*reads, ("group", "tools")], writes) for reads, writes in plan]


def reachable(waits: list[set[int]]) -> list[set[int]]:
    """For each call all calls that end before it begins."""
    all_before: list[set[int]] = []
    for direct in waits:
        all_before.append(direct.union(*(all_before[earlier] for earlier in direct)))
    return all_before


@pytest.mark.requirement("K9")
@settings(max_examples=300, deadline=None)
@given(PLAN)
def test_the_planner_orders_what_conflicts_and_nothing_else(plan: Plan) -> None:
    planner = Planner()
    waits = [planner.add(index, reads, writes) for index, (reads, writes) in enumerate(plan)]
    naive = [
        {earlier for earlier in range(index) if conflict(plan[earlier], plan[index])} for index in range(len(plan))
    ]
    assert all(wait <= plain for wait, plain in zip(waits, naive, strict=True)), "no wait without a conflict"
    assert reachable(waits) == reachable(naive), "every conflict is ordered, be it by way of others"


@given(st.lists(st.tuples(KEY, KEY), max_size=3))
def test_two_keys_overlap_when_one_is_a_prefix_of_the_other(pairs: list[tuple[Key, Key]]) -> None:
    for one, other in pairs:
        prefix = one == other[: len(one)] or other == one[: len(other)]
        assert overlap([one], [other]) == overlap([other], [one]) == prefix


def test_one_write_stands_for_all_that_came_before_it() -> None:
    planner = Planner()
    assert not any(planner.add(number, [], [("file", "a", str(number))]) for number in range(10_000))
    assert len(planner.add(10_000, [], [("file", "a")])) == 10_000
    assert planner.add(10_001, [], [("file", "a")]) == {10_000}


# Real runs -----------------------------------------------------------------------------------------------------------


def touching(plan: Plan, function: Callable[[int], Awaitable[None]]) -> ModuleType:
    """A plugin with one tool whose calls touch what the plan says for their number."""

    def keys(place: int) -> Callable[[Mapping[str, Any], Scope], list[Key]]:
        return lambda arguments, scope: plan[arguments["number"]][place]

    @tool(effect="read", reads=keys(0), writes=keys(1))
    async def touch(number: int) -> None:
        """Touch what the plan says."""
        await function(number)

    module = ModuleType("tools")
    module.register_tools = hookimpl(lambda: touch)  # type: ignore[attr-defined]
    return module


@pytest.mark.requirement("K9")
@settings(max_examples=50, deadline=None)
@given(plan=PLAN, turns=st.lists(st.integers(0, 3), min_size=9))
def test_real_runs_keep_the_models_order_for_every_overlapping_pair(plan: Plan, turns: list[int]) -> None:
    order: list[tuple[str, int]] = []

    async def work(number: int) -> None:
        order.append(("begins", number))
        for _ in range(turns[number]):
            await trio.lowlevel.checkpoint()
        order.append(("ends", number))

    async def run() -> None:
        async with kernel_with(touching(plan, work)) as kit:
            await kit.batch([("touch", {"number": number}) for number in range(len(plan))])

    trio.run(run)
    assert len(order) == 2 * len(plan)
    seen = in_group(plan)
    for earlier, later in itertools.combinations(range(len(plan)), 2):
        if conflict(seen[earlier], seen[later]):
            assert order.index(("ends", earlier)) < order.index(("begins", later))


@pytest.mark.requirement("K9")
@settings(max_examples=50, deadline=None)
@given(plan=st.lists(st.tuples(KEYS, KEYS), min_size=2, max_size=8))
def test_real_runs_hold_nobody_back_who_need_not_wait(plan: Plan) -> None:
    """In each wave runs exactly what conflicts with nothing earlier that is not done."""
    files = Files()

    async def work(number: int) -> None:
        await files.work(str(number))

    async def run() -> list[set[str]]:
        async with kernel_with(touching(plan, work)) as kit:
            return await files.waves(kit, [("touch", {"number": number}) for number in range(len(plan))])

    waves = trio.run(run)
    seen, left = in_group(plan), set(range(len(plan)))
    while left:
        wave = {one for one in left if not any(conflict(seen[other], seen[one]) for other in left if other < one)}
        assert waves.pop(0) == {str(number) for number in wave}
        left -= wave
