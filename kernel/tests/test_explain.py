"""Why a tool is offered or not: every rule that decided, with the setting's path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from toolkeel import Pin, Principal, Reason, Request, Step, Tool, hookimpl, tool
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]


def say(name: str, **options: Any) -> Tool:
    def function() -> str:
        return name

    return tool(name=name, description="Say it.", effect="read", inline=True, **options)(function)


class Harbour:
    """Every step of offering has a say."""

    NAME = "harbour"

    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        return (
            *(say(name) for name in ("anchor", "buoy", "crane", "dock", "ferry")),
            say("extra", optional=True),
            say("hidden", optional=True),
        )

    @hookimpl
    def admit_tools(self) -> Mapping[str, Reason]:
        return {"extra": Reason("the night shift may", "policies.night")}

    @hookimpl
    def withhold_tools(self, request: Request) -> Mapping[str, Reason]:
        return {"buoy": Reason("buoy needs an administrator.", "roles.buoy", "role")}

    @hookimpl
    async def pin_tools(self) -> list[Pin]:
        return [Pin("crane", "the message has a load")]

    @hookimpl
    async def select_tools(self) -> list[str]:
        return ["anchor", "extra"]


async def steps(name: str, settings: Mapping[str, Any] | None = None, cap: set[str] | None = None) -> tuple[bool, Any]:
    async with kernel_with(Harbour, settings=settings) as kit:
        request = kit.session.request("load the crane", principal=Principal("ann"), tool_cap=cap)
        explanation = await kit.session.explain(name, request)
    assert explanation.tool == name
    assert explanation.steps[0] == Step("registry", True, "given by plugin 'harbour'", by="harbour")
    return explanation.offered, explanation.steps[1:]


@pytest.mark.requirement("K15")
async def test_an_offered_tool_names_every_step_it_passed() -> None:
    assert await steps("anchor", cap={"anchor", "crane"}) == (
        True,
        (
            Step("cap", True, "stands in the run's tool cap"),
            Step("policy", True, "has no objection", by="harbour"),
            Step("selection", True, "was selected for this message", by="harbour"),
        ),
    )


@pytest.mark.requirement("K15")
async def test_a_pinned_tool_names_who_pinned_it_and_why() -> None:
    there, found = await steps("crane")
    assert there
    pin = next(step for step in found if step.stage == "pin")
    assert (pin.text, pin.by) == ("the message has a load", "harbour")


@pytest.mark.requirement("K15")
async def test_an_optional_tool_names_the_policy_that_admits_it() -> None:
    _, found = await steps("extra")
    assert found[0] == Step("optional", True, "the night shift may", "harbour", "policies.night")
    _, found = await steps("hidden", {"kernel": {"optional": ["hid*"]}})
    assert found[0] == Step("optional", True, "named by 'hid*'", "", "kernel.optional")


@pytest.mark.requirement("K15")
@pytest.mark.parametrize(
    ("name", "settings", "cap", "last"),
    [
        ("anchor", {}, {"crane"}, Step("cap", False, "anchor is outside the tools of this run.")),
        (
            "hidden",
            {},
            None,
            Step("optional", False, "hidden is optional and no policy names it.", "", "kernel.optional"),
        ),
        ("buoy", {}, None, Step("role", False, "buoy needs an administrator.", "harbour", "roles.buoy")),
        (
            "dock",
            {},
            None,
            Step("selection", False, "dock was not selected for this message.", "harbour", "selector"),
        ),
        (
            "anchor",
            {"kernel": {"tool_limit": 1}},
            None,
            Step("limit", False, "anchor is over the limit of 1 tools.", "", "kernel.tool_limit"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_is_not_offered_names_the_step_the_rule_and_the_setting(
    name: str, settings: Mapping[str, Any], cap: set[str] | None, last: Step
) -> None:
    there, found = await steps(name, settings, cap)
    assert not there
    assert found[-1] == last
    assert all(step.passed for step in found[:-1])


@pytest.mark.requirement("K15", "K11")
async def test_the_explanation_uses_the_words_that_a_call_is_refused_with() -> None:
    async with kernel_with(Harbour) as kit:
        for name in ("buoy", "dock", "hidden"):
            explanation = await kit.session.explain(name, kit.offer.request)
            answer = await kit.call(name)
            assert explanation.steps[-1].text in answer.text
            assert answer.record.setting == explanation.steps[-1].setting


@pytest.mark.requirement("K15")
async def test_a_tool_that_nobody_gives_names_the_nearest_that_there_are() -> None:
    async with kernel_with(Harbour) as kit:
        explanation = await kit.session.explain("ancor", kit.offer.request)
    assert not explanation.offered
    assert explanation.nearest == ("anchor",)
    assert "no active plugin gives a tool of this name" in explanation.steps[0].text


@pytest.mark.requirement("K15")
async def test_where_nothing_narrows_the_giver_is_named(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(say("word"), name="words")) as kit:
        explanation = await kit.session.explain("word", kit.offer.request)
        assert explanation.offered
        assert "'words'" in kit.offer.reasons["word"]
        assert any("words" in f"{step.text} {step.by}" for step in explanation.steps)


@pytest.mark.requirement("K15")
async def test_every_offered_tool_has_a_reason() -> None:
    async with kernel_with(Harbour) as kit:
        assert kit.offer.reasons == {
            "anchor": "selection: was selected for this message",
            "extra": "selection: was selected for this message",
            "crane": kit.offer.reasons["crane"],
        }
        assert "load" in kit.offer.reasons["crane"]


@pytest.mark.requirement("K15")
async def test_role_and_message_change_the_explanation(make_plugin: MakePlugin) -> None:
    def withhold_tools(request: Request) -> Mapping[str, Reason]:
        return {} if request.principal.privileged else {"word": Reason("administrators only", "roles.word", "role")}

    async with kernel_with(make_plugin(say("word"), hooks=[withhold_tools])) as kit:
        user = await kit.session.explain("word", kit.session.request(principal=Principal("ann", "user")))
        admin = await kit.session.explain("word", kit.session.request(principal=Principal("ann", "admin")))
    assert (user.offered, admin.offered) == (False, True)
    assert user.steps[-1].stage == "role"
