"""Services that plugins give each other."""

from __future__ import annotations

from typing import Protocol

import pytest

from toolkeel import PluginContext, Services, Tool, ToolContext, hookimpl, tool
from toolkeel.errors import DefinitionError, ServiceMissing
from toolkeel.testing import kernel_with


class Clock(Protocol):
    def now(self) -> str: ...


class Bell(Protocol):
    def ring(self) -> str: ...


class Sundial:
    def now(self) -> str:
        return "noon"


def test_a_service_is_found_under_its_protocol() -> None:
    services, clock = Services(), Sundial()
    services.provide(Clock, clock, plugin="sun")
    assert services.get(Clock) is clock
    assert services.find(Clock) is clock
    assert services.find(Bell) is None


def test_a_missing_service_names_the_protocol_and_where_to_look() -> None:
    with pytest.raises(ServiceMissing) as caught:
        Services().get(Bell)
    assert "Bell" in caught.value.what
    assert __name__.rpartition(".")[2] in caught.value.what
    assert "toolkeel plugins" in caught.value.remedy


def test_a_second_giver_is_refused_and_both_are_named() -> None:
    services, clock = Services(), Sundial()
    services.provide(Clock, clock, plugin="sun")
    with pytest.raises(DefinitionError) as caught:
        services.provide(Clock, Sundial(), plugin="moon")
    for word in ("'sun'", "'moon'", "Clock"):
        assert word in caught.value.what
    assert "kernel.disable" in caught.value.remedy
    assert services.get(Clock) is clock


def test_a_giver_may_give_anew() -> None:
    services, second = Services(), Sundial()
    services.provide(Clock, Sundial(), plugin="sun")
    services.provide(Clock, second, plugin="sun")
    assert services.get(Clock) is second


def test_withdrawing_takes_back_all_of_one_plugin_and_nothing_of_others() -> None:
    services = Services()
    services.provide(Clock, Sundial(), plugin="sun")
    services.provide(Bell, object(), plugin="tower")  # type: ignore[arg-type]
    services.withdraw("sun")
    services.withdraw("nobody")
    assert services.find(Clock) is None
    assert services.find(Bell) is not None
    services.provide(Clock, Sundial(), plugin="moon")


async def test_a_tool_reaches_a_service_through_its_context_whatever_the_load_order() -> None:
    class User:
        PRIORITY = 1

        @hookimpl
        def register_tools(self) -> tuple[Tool, ...]:
            @tool(effect="read", inline=True)
            def what_time(context: ToolContext) -> str:
                return context.service(Clock).now()

            @tool(effect="read", inline=True)
            def ring(context: ToolContext) -> str:
                return context.service(Bell).ring()

            return (what_time, ring)

    class Giver:
        @hookimpl
        async def plugin_start(self, context: PluginContext) -> None:
            context.services.provide(Clock, Sundial(), plugin=context.name)

    async with kernel_with(User, Giver) as kit:
        assert (await kit.call("what_time")).text == "noon"
        answer = await kit.call("ring")
        assert answer.status == "failed"
        assert "Bell" in answer.text
        await kit.kernel.plugins.disable("giver")
        assert (await kit.call("what_time")).status == "failed"
        await kit.kernel.plugins.enable("giver")
        assert (await kit.call("what_time")).text == "noon"
