"""The watch that ends what is overdue, and the watchdog that names what blocks the loop."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from toolkeel import Call, tool
from toolkeel.testing import kernel_with
from toolkeel.watch import Watch, Watchdog, Watched

MakePlugin = Callable[..., ModuleType]


class Work(Watched):
    """Work that sleeps until it is ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended_at = 0.0

    async def run(self, watch: Watch, seconds: float) -> None:
        with trio.CancelScope() as self.scope:
            watch.arm(self, seconds)
            await trio.sleep_forever()
        self.ended_at = trio.current_time()


async def test_each_work_is_ended_at_its_own_time(clock: MockClock) -> None:
    watch, started = Watch(), trio.current_time()
    limits = [7.0, 1.0, 30.0, 1.0, 3.0]
    works = [Work() for _ in limits]
    clock.autojump_threshold = 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        async with trio.open_nursery() as working:
            for work, limit in zip(works, limits, strict=True):
                working.start_soon(work.run, watch, limit)
        nursery.cancel_scope.cancel()
    for work, limit in zip(works, limits, strict=True):
        assert work.overdue
        assert work.ended_at - started == pytest.approx(limit, abs=0.5)


async def test_what_is_disarmed_or_rearmed_is_left_alone_until_then(clock: MockClock) -> None:
    watch = Watch()
    disarmed, rearmed = Work(), Work()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        nursery.start_soon(disarmed.run, watch, 5)
        nursery.start_soon(rearmed.run, watch, 5)
        await wait_all_tasks_blocked()
        watch.disarm(disarmed)
        watch.arm(rearmed, 20)
        clock.jump(10)
        await wait_all_tasks_blocked()
        assert not disarmed.overdue
        assert not rearmed.overdue
        clock.jump(11)
        await wait_all_tasks_blocked()
        assert not disarmed.overdue
        assert rearmed.overdue
        nursery.cancel_scope.cancel()


async def test_a_deadline_that_comes_before_the_one_slept_for_wakes_the_watch(clock: MockClock) -> None:
    watch = Watch()
    late, early = Work(), Work()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        nursery.start_soon(late.run, watch, 60)
        await wait_all_tasks_blocked()
        nursery.start_soon(early.run, watch, 2)
        await wait_all_tasks_blocked()
        clock.jump(3)
        await wait_all_tasks_blocked()
        assert (early.overdue, late.overdue) == (True, False)
        nursery.cancel_scope.cancel()


async def test_the_watch_keeps_nothing_that_is_over() -> None:
    watch = Watch()
    for _ in range(100):
        work = Work()
        watch.arm(work, 60)
        watch.disarm(work)
    del work
    gc.collect()
    assert not [one for one in gc.get_objects() if isinstance(one, Work)]


# The watchdog ------------------------------------------------------------------------------------------------------


def block_until(told: Callable[[], bool]) -> None:
    """Block the calling thread until somebody noticed, or ten seconds."""
    waiting = threading.Event()
    limit = time.monotonic() + 10
    while not told() and time.monotonic() < limit:
        waiting.wait(0.005)


async def test_sync_code_that_blocks_the_loop_is_named_once_by_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    stacks: list[str] = []
    watchdog = Watchdog(logging.getLogger("toolkeel"), stacks.append, patience=0.02)
    watchdog.start()
    try:
        with caplog.at_level(logging.WARNING, "toolkeel"):
            block_until(lambda: bool(stacks))
            threading.Event().wait(0.1)  # some patiences more
        await trio.sleep(0.05)
    finally:
        watchdog.stop()
    assert len(stacks) == 1, "once per stall"
    assert "test_sync_code_that_blocks_the_loop_is_named_once" in stacks[0]
    assert "the loop has been blocked" in caplog.text
    assert "block_until" in caplog.text, "the log has the whole way down"


async def test_a_loop_that_turns_is_left_in_peace(caplog: pytest.LogCaptureFixture) -> None:
    stacks: list[str] = []
    watchdog = Watchdog(logging.getLogger("toolkeel"), stacks.append, patience=0.05)
    watchdog.start()
    for _ in range(30):
        await trio.sleep(0.01)
    watchdog.stop()
    assert not stacks


async def test_the_watchdog_ends_with_its_kernel(make_plugin: MakePlugin) -> None:
    def watchdogs() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "toolkeel-watchdog"]

    @tool(effect="read", inline=True)
    def work() -> None:
        """Work."""

    async with kernel_with(make_plugin(work)):
        mine = watchdogs()
        assert mine
    for thread in mine:
        await trio.to_thread.run_sync(thread.join, 10)
        assert not thread.is_alive()


async def test_a_hook_that_blocks_the_loop_stands_in_the_diagnostics(make_plugin: MakePlugin) -> None:
    @tool(effect="read", inline=True)
    def work() -> None:
        """Work."""

    async def authorize_tool_call(call: Call) -> None:
        block_until(lambda: any("blocked the loop" in line for line in kit.kernel.diagnostics()))

    async with kernel_with(make_plugin(work, hooks=[authorize_tool_call])) as kit:
        answer: Any = await kit.call("work")
        [line] = [line for line in kit.kernel.diagnostics() if "blocked the loop" in line]
    assert answer.status == "completed"
    assert "authorize_tool_call" in line, "an operator learns which hook it was"
