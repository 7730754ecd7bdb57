"""The bounded pool: how many run, wait and stand at the door, and whose turn it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from toolkeel import Principal, Session, ToolCall, tool
from toolkeel.pool import Pool
from toolkeel.testing import Kit, kernel_with

MakePlugin = Callable[..., ModuleType]
ANN = Principal("ann", "admin")


class Works:
    """Tools that wait to be let go, and a count of how many run at once."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.order: list[int] = []
        self.gate = trio.Event()
        self.turns = 0

        @tool(effect="read")
        async def wait(number: int) -> int:
            """Run until the gate opens."""
            self.begin(number)
            await self.gate.wait()
            self.running -= 1
            return number

        @tool(effect="read")
        async def step(number: int) -> int:
            """Run for one turn of the loop."""
            self.begin(number)
            await trio.lowlevel.checkpoint()
            self.running -= 1
            return number

        self.tools = (wait, step)

    def begin(self, number: int) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        self.order.append(number)


def numbered(name: str, count: int) -> list[tuple[str, dict[str, Any]]]:
    return [(name, {"number": number}) for number in range(count)]


def calls(name: str, count: int) -> list[ToolCall]:
    return [ToolCall(name, {"number": number}, str(number)) for number in range(count)]


async def offered_calls(session: Session, many: list[ToolCall]) -> None:
    offer = await session.offer(session.request(principal=ANN))
    await offer.call(many)


@pytest.mark.requirement("K8")
async def test_eight_calls_of_a_batch_run_at_once_and_no_more(make_plugin: MakePlugin) -> None:
    works = Works()
    async with kernel_with(make_plugin(*works.tools)) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(kit.batch, numbered("wait", 20))
        await wait_all_tasks_blocked()
        assert works.running == 8
        assert kit.kernel.load["free"] == 0
        works.gate.set()
    assert works.most == 8
    assert len(works.order) == 20


@pytest.mark.requirement("K8")
async def test_the_number_of_workers_is_a_setting(make_plugin: MakePlugin) -> None:
    works = Works()
    async with (
        kernel_with(make_plugin(*works.tools), settings={"kernel": {"workers": 3}}) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, numbered("wait", 20))
        nursery.start_soon(kit.batch, numbered("wait", 20))
        await wait_all_tasks_blocked()
        assert works.running == 3
        works.gate.set()


@pytest.mark.parametrize("size", [1, 2, 20])
async def test_the_callers_task_is_the_first_worker_and_others_come_only_for_work(
    make_plugin: MakePlugin, size: int
) -> None:
    tasks: list[trio.lowlevel.Task] = []

    @tool(effect="read")
    async def where() -> None:
        """Note the task, and stay until no more begin by themselves."""
        tasks.append(trio.lowlevel.current_task())
        await wait_all_tasks_blocked()

    async with kernel_with(make_plugin(where)) as kit:
        await kit.batch([("where", {})] * size)
    assert tasks[0] is trio.lowlevel.current_task()
    assert len(set(tasks)) == min(size, 8)


@pytest.mark.requirement("K8")
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 100])
async def test_answers_keep_the_models_order_whichever_call_ends_first(make_plugin: MakePlugin, count: int) -> None:
    turns = random.Random(count)

    @tool(effect="read")
    async def slow(number: int) -> int:
        """Take a few turns."""
        for _ in range(turns.randrange(6)):
            await trio.lowlevel.checkpoint()
        return number

    async with kernel_with(make_plugin(slow)) as kit:
        answers = await kit.batch(numbered("slow", count))
    assert [answer.text for answer in answers] == [str(number) for number in range(count)]
    assert [answer.id for answer in answers] == [f"call-{number}" for number in range(1, count + 1)]


@pytest.mark.requirement("K8")
async def test_sixty_four_batches_wait_for_a_slot_and_the_next_stands_at_the_door(make_plugin: MakePlugin) -> None:
    works = Works()
    async with kernel_with(make_plugin(*works.tools)) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(kit.batch, numbered("wait", 8))
        await wait_all_tasks_blocked()
        for _ in range(64):
            nursery.start_soon(kit.batch, numbered("step", 10))
        await wait_all_tasks_blocked()
        assert (kit.kernel.load["waiting"], kit.kernel.load["at_door"]) == (64, 0)
        nursery.start_soon(kit.batch, numbered("step", 10))
        await wait_all_tasks_blocked()
        assert (kit.kernel.load["waiting"], kit.kernel.load["at_door"]) == (64, 1)
        works.gate.set()
    assert len(works.order) == 8 + 65 * 10
    assert kit.kernel.load["free"] == 8


@pytest.mark.requirement("K8")
@pytest.mark.parametrize("size", [1, 3])
async def test_a_crowd_that_arrives_at_once_stands_at_the_door_too(make_plugin: MakePlugin, size: int) -> None:
    works = Works()
    async with kernel_with(make_plugin(*works.tools)) as kit, trio.open_nursery() as nursery:
        for _ in range(200):
            nursery.start_soon(kit.batch, numbered("wait", size))
        await wait_all_tasks_blocked()
        load = kit.kernel.load
        assert works.running == 8
        assert load["waiting"] <= 64
        assert load["at_door"] >= 200 - 64 - 8
        works.gate.set()
    assert len(works.order) == 200 * size, "nothing is dropped"


@pytest.mark.requirement("K8")
async def test_a_caller_waits_while_the_pool_is_full(make_plugin: MakePlugin) -> None:
    works = Works()
    answered: list[str] = []

    async def caller(kit: Kit) -> None:
        answered.append((await kit.call("step", number=99)).text)

    async with kernel_with(make_plugin(*works.tools)) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(kit.batch, numbered("wait", 8))
        await wait_all_tasks_blocked()
        nursery.start_soon(caller, kit)
        await wait_all_tasks_blocked()
        assert 99 not in works.order
        works.gate.set()
    assert answered == ["99"]


async def test_a_batch_takes_one_place_in_the_waiting_room_whatever_its_size(make_plugin: MakePlugin) -> None:
    most = 0

    @tool(effect="read")
    async def look() -> None:
        """See how many batches wait."""
        nonlocal most
        most = max(most, kit.kernel.load["waiting"])
        await trio.lowlevel.checkpoint()

    async with (
        kernel_with(make_plugin(look)) as kit,
        kit.kernel.session(session="one") as one,
        kit.kernel.session(session="two") as two,
        trio.open_nursery() as nursery,
    ):
        for session in (kit.session, one, two):
            nursery.start_soon(offered_calls, session, [ToolCall("look", {}, "")] * 100)
    assert most <= 3


async def test_a_session_with_a_thousand_calls_does_not_starve_another(make_plugin: MakePlugin) -> None:
    works = Works()
    before = 0

    async def small(session: Session) -> None:
        nonlocal before
        await offered_calls(session, calls("step", 1))
        before = len(works.order)

    async with (
        kernel_with(make_plugin(*works.tools)) as kit,
        kit.kernel.session(session="other") as other,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, numbered("step", 1_000))
        await trio.lowlevel.checkpoint()
        while len(works.order) < 20:
            await trio.lowlevel.checkpoint()
        at = len(works.order)
        nursery.start_soon(small, other)
    assert 0 < before - at < 100, "the small session waited for a turn, not for the thousand calls"


async def test_two_large_batches_of_two_sessions_go_on_side_by_side(make_plugin: MakePlugin) -> None:
    order: list[str] = []

    @tool(effect="read")
    async def mark(who: str) -> None:
        """Note whose turn it was, and take some."""
        order.append(who)
        for _ in range(5):
            await trio.lowlevel.checkpoint()

    async with (
        kernel_with(make_plugin(mark)) as kit,
        kit.kernel.session(session="one") as one,
        kit.kernel.session(session="two") as two,
        trio.open_nursery() as nursery,
    ):
        for session in (one, two):
            name = session.scope.session
            nursery.start_soon(offered_calls, session, [ToolCall("mark", {"who": name}, "")] * 400)
    assert 120 <= order[:400].count("one") <= 280
    for start in range(0, 400, 50):
        assert 3 <= order[start : start + 50].count("one") <= 47, "each has its turns all the time"


async def test_sessions_are_served_in_turn_not_by_the_number_of_their_batches(make_plugin: MakePlugin) -> None:
    works = Works()
    order: list[str] = []

    @tool(effect="read")
    async def mark(who: str) -> None:
        """Note whose turn it was."""
        order.append(who)

    async with (
        kernel_with(make_plugin(mark, *works.tools), settings={"kernel": {"workers": 1}}) as kit,
        kit.kernel.session(session="busy") as busy,
        kit.kernel.session(session="quiet") as quiet,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, numbered("wait", 1))
        await wait_all_tasks_blocked()
        for _ in range(10):
            nursery.start_soon(offered_calls, busy, [ToolCall("mark", {"who": "busy"}, "")])
        await wait_all_tasks_blocked()
        nursery.start_soon(offered_calls, quiet, [ToolCall("mark", {"who": "quiet"}, "")])
        await wait_all_tasks_blocked()
        works.gate.set()
    assert order.index("quiet") <= 1


async def test_sessions_that_wait_are_served_in_the_order_in_which_they_came_and_then_in_turn(
    make_plugin: MakePlugin,
) -> None:
    works = Works()
    order: list[str] = []

    @tool(effect="read")
    async def mark(who: str) -> None:
        """Note whose turn it was."""
        order.append(who)

    settings = {"kernel": {"workers": 1}}
    async with (
        kernel_with(make_plugin(mark, *works.tools), settings=settings) as kit,
        kit.kernel.session(session="a") as a,
        kit.kernel.session(session="b") as b,
        kit.kernel.session(session="c") as c,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, numbered("wait", 1))
        await wait_all_tasks_blocked()
        for session in (a, a, a, b, b, c):
            nursery.start_soon(offered_calls, session, [ToolCall("mark", {"who": session.scope.session}, "")])
            await wait_all_tasks_blocked()
        works.gate.set()
    assert order == ["a", "b", "c", "a", "b", "a"]


async def test_a_puller_lets_other_tasks_run_between_quick_calls(make_plugin: MakePlugin) -> None:
    """Semantics 4: a batch of calls that never wait still gives the loop its turns."""
    turns = 0

    @tool(effect="read", inline=True)
    def quick() -> None:
        """Do nothing."""

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with kernel_with(make_plugin(quick)) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await trio.lowlevel.checkpoint()
        before = turns
        await kit.batch([("quick", {})] * 3_000)
        assert turns - before >= 2
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", ["quick", "nothing_of_this_name"])
async def test_single_calls_in_a_row_let_other_tasks_run_and_each_may_be_cancelled(
    make_plugin: MakePlugin, name: str
) -> None:
    turns = 0

    @tool(effect="read", inline=True)
    def quick() -> None:
        """Do nothing."""

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with kernel_with(make_plugin(quick)) as kit, trio.open_nursery() as nursery:
        nursery.start_soon(other)
        with trio.fail_after(30):
            while turns < 5:
                await kit.call(name)
        with trio.CancelScope() as scope:
            scope.cancel()
            await kit.call(name)
        assert scope.cancelled_caught
        nursery.cancel_scope.cancel()


async def test_a_caller_that_gives_up_waiting_leaves_its_place(make_plugin: MakePlugin) -> None:
    works = Works()
    async with kernel_with(make_plugin(*works.tools), settings={"kernel": {"waiting": 2}}) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kit.batch, numbered("wait", 8))
            await wait_all_tasks_blocked()
            async with trio.open_nursery() as callers:
                for _ in range(6):
                    callers.start_soon(kit.batch, numbered("step", 2))
                await wait_all_tasks_blocked()
                assert (kit.kernel.load["waiting"], kit.kernel.load["at_door"]) == (2, 4)
                callers.cancel_scope.cancel()
            assert (kit.kernel.load["waiting"], kit.kernel.load["at_door"]) == (0, 0)
            nursery.start_soon(kit.batch, numbered("step", 3))
            await wait_all_tasks_blocked()
            assert kit.kernel.load["waiting"] == 1
            works.gate.set()
        assert kit.kernel.load["free"] == 8
    assert len(works.order) == 8 + 3


@pytest.mark.parametrize("seed", range(6))
async def test_slots_and_places_come_back_whoever_is_cancelled(seed: int) -> None:
    chance = random.Random(seed)
    pool = Pool(3, 5)
    held = most = 0

    async def caller(number: int) -> None:
        nonlocal held, most
        await pool.enter()
        try:
            await pool.acquire(str(number % 4))
        finally:
            pool.leave()
        try:
            held += 1
            most = max(most, held)
            for _ in range(chance.randrange(4)):
                await trio.lowlevel.checkpoint()
            if chance.random() < 0.3:
                held -= 1
                pool.release()
                try:
                    await trio.lowlevel.checkpoint()
                finally:
                    with trio.CancelScope(shield=True):
                        await pool.regain()
                    held += 1
        finally:
            held -= 1
            pool.release()

    async def given_up(number: int, turns: int) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(caller, number)
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for number in range(200):
            if chance.random() < 0.5:
                nursery.start_soon(caller, number)
            else:
                nursery.start_soon(given_up, number, chance.randrange(20))
    assert most == 3
    assert (pool.free, pool.queued, pool.at_door) == (3, 0, 0)
