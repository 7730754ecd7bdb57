"""The heart beats every ten seconds and stops with the plugin; the test takes no time."""

from __future__ import annotations

import pytest
from toolkeel.testing import kernel_with
from trio.testing import MockClock, wait_all_tasks_blocked

import heartbeat


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


async def test_the_heart_beats_every_ten_seconds(clock: MockClock) -> None:
    heartbeat.beats.clear()
    async with kernel_with(heartbeat):
        for beats in range(1, 4):
            await wait_all_tasks_blocked()
            assert len(heartbeat.beats) == beats
            clock.jump(10)
    stopped = len(heartbeat.beats)
    clock.jump(10)
    await wait_all_tasks_blocked()
    assert len(heartbeat.beats) == stopped
