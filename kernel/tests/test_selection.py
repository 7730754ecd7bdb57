"""What rankers and pinners say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from toolkeel import Pin, Ranking, Request, Tool, hookimpl, tool
from toolkeel.testing import kernel_with


def say(name: str) -> Tool:
    def function() -> str:
        return name

    return tool(name=name, description="Say it.", effect="read", inline=True)(function)


class Tools:
    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        return TOOLS


TOOLS = tuple(say(name) for name in ("anchor", "buoy", "crane"))


def test_pins_and_rankings_are_frozen_and_rankings_are_open_unless_they_say_so() -> None:
    pin, ranking = Pin("anchor", "always"), Ranking({"anchor": 2.5})
    assert (ranking.scale, ranking.source) == ("open", "")
    with pytest.raises(AttributeError):
        pin.name = "buoy"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ranking.scale = "unit"  # type: ignore[misc]


@pytest.mark.requirement("K3")
async def test_a_selector_gets_every_ranking_with_its_source_and_the_pins_in_their_order() -> None:
    seen: list[tuple[Any, Any]] = []

    class Words:
        @hookimpl
        async def rank_tools(self, request: Request, offered: Sequence[Tool]) -> Ranking:
            return Ranking({one.name: float(one.name in request.message) for one in offered})

        @hookimpl
        async def pin_tools(self) -> list[Pin]:
            return [Pin("crane", "words")]

    class Vectors:
        PRIORITY = 50

        @hookimpl
        async def rank_tools(self) -> Ranking:
            return Ranking({"crane": 0.9}, "unit", "model-x")

        @hookimpl
        async def pin_tools(self) -> list[Pin]:
            return [Pin("anchor", "vectors"), Pin("crane", "vectors")]

    class Selects:
        @hookimpl
        async def select_tools(self, pinned: Sequence[Pin], ranked: Sequence[Ranking]) -> list[str]:
            seen.append((pinned, ranked))
            return ["buoy"]

    async with kernel_with(Tools, Words, Vectors, Selects, message="raise the buoy") as kit:
        assert [one.name for one in kit.offer.tools] == ["buoy", "anchor", "crane"]
    pinned, ranked = seen[0]
    assert list(pinned) == [Pin("anchor", "vectors"), Pin("crane", "vectors")]
    assert list(ranked) == [
        Ranking({"crane": 0.9}, "unit", "model-x"),
        Ranking({"anchor": 0.0, "buoy": 1.0, "crane": 0.0}, source="words"),
    ]


@pytest.mark.requirement("K3", "K5")
async def test_a_ranker_that_is_slow_is_left_out_and_noted() -> None:
    import trio

    seen: list[int] = []

    class Slow:
        @hookimpl
        async def rank_tools(self) -> None:
            await trio.sleep_forever()

    class Selects:
        @hookimpl
        async def select_tools(self, ranked: Sequence[Ranking]) -> list[str]:
            seen.append(len(ranked))
            return ["buoy"]

    async with kernel_with(Tools, Slow, Selects, settings={"kernel": {"hook_time_limit": 0.05}}) as kit:
        assert kit.offer.names == {"buoy"}
        info = next(info for info in kit.kernel.plugins.list() if info.name == "slow")
        assert any("0.05 s" in note for note in info.notes)
    assert seen == [0]


async def test_what_a_selector_chose_still_has_to_be_offered() -> None:
    class Selects:
        @hookimpl
        async def select_tools(self) -> list[str]:
            return ["buoy", "anchor"]

    async with kernel_with(Tools, Selects) as kit:
        request = kit.session.request(principal=kit.offer.request.principal, tool_cap={"anchor", "crane"})
        assert [one.name for one in (await kit.session.offer(request)).tools] == ["anchor"]
