"""What a request is offered: each step only narrows, and what was not offered is refused in words that help."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel import Pin, Principal, Ranking, Reason, Request, Tool, ToolCall, ToolContext, hookimpl, tool
from toolkeel.errors import DefinitionError
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]


def say(name: str, **options: Any) -> Tool:
    def function() -> str:
        return name

    return tool(name=name, description=f"Say {name}.", effect="read", inline=True, **options)(function)


TOOLS = tuple(say(name) for name in ("calc", "file_read", "file_write", "search_tools", "shell"))


def names(offered: Sequence[Tool]) -> list[str]:
    return [one.name for one in offered]


async def offered(plugin: Any, *more: Any, settings: Mapping[str, Any] | None = None, **request: Any) -> list[str]:
    async with kernel_with(plugin, *more, settings=settings) as kit:
        asked = kit.session.request(principal=Principal("ann"), **request)
        return names((await kit.session.offer(asked)).tools)


# The order of the steps --------------------------------------------------------------------------------------------


@pytest.mark.requirement("O1")
async def test_the_steps_come_in_order_and_each_sees_what_the_one_before_left(make_plugin: MakePlugin) -> None:
    seen: list[tuple[str, list[str]]] = []

    class Watcher:
        @hookimpl
        def register_tools(self) -> Any:
            return (*TOOLS, say("opt_a", optional=True), say("opt_b", optional=True), say("opt_c", optional=True))

        @hookimpl
        def admit_tools(self, tools: Sequence[Tool]) -> Mapping[str, Reason]:
            seen.append(("admit", names(tools)))
            return {"opt_a": Reason("named"), "opt_c": Reason("named"), "calc": Reason("not optional")}

        @hookimpl
        def withhold_tools(self, tools: Sequence[Tool]) -> Mapping[str, Reason]:
            seen.append(("withhold", names(tools)))
            return {"shell": Reason("no shell here")}

        @hookimpl
        async def pin_tools(self, offered: Sequence[Tool]) -> list[Pin]:
            seen.append(("pin", names(offered)))
            return [Pin("calc", "always"), Pin("shell", "please")]

        @hookimpl
        async def rank_tools(self, offered: Sequence[Tool]) -> Ranking:
            seen.append(("rank", names(offered)))
            return Ranking({"file_read": 1.0})

        @hookimpl
        async def select_tools(self, offered: Sequence[Tool], pinned: Any, ranked: Any) -> list[str]:
            seen.append(("select", names(offered)))
            assert pinned == [Pin("calc", "always")]
            assert ranked == [Ranking({"file_read": 1.0}, source="watcher")]
            return ["file_read", "shell", "opt_b", "nowhere"]

        @hookimpl
        async def rerank_tools(self, shortlist: Sequence[Tool]) -> list[str]:
            seen.append(("rerank", names(shortlist)))
            return names(shortlist)

    cap = {"calc", "file_read", "shell", "opt_a", "opt_b", "absent"}
    assert sorted(await offered(Watcher, tool_cap=cap)) == ["calc", "file_read"]
    seen = seen[-6:]
    assert seen == [
        ("admit", ["opt_a", "opt_b"]),
        ("withhold", ["calc", "file_read", "opt_a", "shell"]),
        ("pin", ["calc", "file_read", "opt_a"]),
        ("rank", ["calc", "file_read", "opt_a"]),
        ("select", ["calc", "file_read", "opt_a"]),
        ("rerank", ["file_read"]),
    ]


@pytest.mark.requirement("O1")
@pytest.mark.parametrize("cap", [set(), {"calc"}, {"calc", "nowhere"}, {"nowhere"}], ids=str)
async def test_the_cap_holds_without_exception_on_the_first_request_and_on_every_further_one(
    make_plugin: MakePlugin, cap: set[str]
) -> None:
    async def pin_tools() -> list[Pin]:
        return [Pin("shell", "always"), Pin("search_tools", "always")]

    async def select_tools() -> list[str]:
        return ["shell", "search_tools", "calc"]

    plugin = make_plugin(*TOOLS, hooks=[pin_tools, select_tools])
    async with kernel_with(plugin, settings={"selector": "tools", "kernel": {"optional": ["*"]}}) as kit:
        for message in ("first", "follow-up", "and again"):
            request = kit.session.request(message, principal=Principal("root", "admin"), tool_cap=cap)
            offer = await kit.session.offer(request)
            assert offer.names == cap & {"calc"}
            for name in ("shell", "search_tools"):
                [answer] = await offer.call([ToolCall(name)])
                assert answer.status == "refused"
                assert "outside the tools of this run" in answer.text
        free = await kit.session.offer(kit.session.request(principal=Principal("root", "admin")))
        assert "shell" in free.names


@pytest.mark.requirement("O1")
async def test_a_call_made_by_a_tool_stays_within_the_cap_of_its_request(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    async def agent(context: ToolContext) -> str:
        """Call the shell."""
        return str(await context.call("shell", {}))

    async with kernel_with(make_plugin(*TOOLS, agent)) as kit:
        request = kit.session.request(principal=Principal("root", "admin"), tool_cap={"agent"})
        [answer] = await (await kit.session.offer(request)).call([ToolCall("agent")])
    assert "outside the tools of this run" in answer.text


# Optional tools ----------------------------------------------------------------------------------------------------

OPTIONAL = {
    "name": ["deploy"],
    "plugin": ["ops"],
    "group": ["group:release"],
    "glob": ["dep*"],
    "glob of a plugin": ["o?s"],
    "glob of a group": ["group:rel*"],
    "everything": ["*"],
}


@pytest.mark.requirement("K2")
@pytest.mark.parametrize("patterns", OPTIONAL.values(), ids=OPTIONAL)
async def test_an_optional_tool_is_offered_where_the_setting_names_it_its_plugin_or_its_group(
    make_plugin: MakePlugin, patterns: list[str]
) -> None:
    plugin = make_plugin(say("deploy", optional=True, group="release"), say("plain"), name="ops")
    assert await offered(plugin, settings={"kernel": {"optional": patterns}}) == ["deploy", "plain"]


@pytest.mark.requirement("K2")
@pytest.mark.parametrize("patterns", [[], ["deplo"], ["release"], ["group:ops"], ["Deploy"], ["group:"]], ids=str)
async def test_an_optional_tool_that_nothing_names_is_not_offered_and_says_so(
    make_plugin: MakePlugin, patterns: list[str]
) -> None:
    plugin = make_plugin(say("deploy", optional=True, group="release"), say("plain"), name="ops")
    async with kernel_with(plugin, settings={"kernel": {"optional": patterns}}) as kit:
        assert names(kit.offer.tools) == ["plain"]
        answer = await kit.call("deploy")
    assert answer.status == "refused"
    assert "deploy is optional and no policy names it" in answer.text
    assert answer.record.setting == "kernel.optional"


@pytest.mark.requirement("K2")
async def test_the_group_of_a_tool_without_one_is_its_plugin(make_plugin: MakePlugin) -> None:
    plugin = make_plugin(say("deploy", optional=True), name="ops")
    assert await offered(plugin, settings={"kernel": {"optional": ["group:ops"]}}) == ["deploy"]


@pytest.mark.requirement("K2")
async def test_a_policy_admits_optional_tools_by_request(make_plugin: MakePlugin) -> None:
    def admit_tools(tools: Sequence[Tool], request: Request) -> Mapping[str, Reason] | None:
        return {"deploy": Reason("on call", "policy.oncall")} if request.principal.name == "ann" else None

    plugin = make_plugin(say("deploy", optional=True), name="ops", hooks=[admit_tools])
    async with kernel_with(plugin) as kit:
        for name, there in (("ann", ["deploy"]), ("bob", [])):
            offer = await kit.session.offer(kit.session.request(principal=Principal(name)))
            assert names(offer.tools) == there
        reason = (await kit.session.explain("deploy", kit.session.request(principal=Principal("ann")))).steps[-1]
        assert (reason.text, reason.setting, reason.by) == ("on call", "policy.oncall", "ops")


@pytest.mark.requirement("K2")
@pytest.mark.parametrize("say_what", [lambda: 5, lambda: ["deploy"], lambda: 1 / 0, lambda: Torn()], ids=range(4))
async def test_a_policy_that_fails_admits_nothing_and_is_recorded(
    make_plugin: MakePlugin, say_what: Callable[[], Any]
) -> None:
    def admit_tools(tools: Sequence[Tool]) -> Any:
        return say_what()

    def admits(tools: Sequence[Tool]) -> Mapping[str, Reason]:
        return {"other": Reason("named")}

    admits.__name__ = "admit_tools"
    bad = make_plugin(say("deploy", optional=True), say("other", optional=True), name="bad", hooks=[admit_tools])
    async with kernel_with(bad, make_plugin(name="good", hooks=[admits])) as kit:
        assert names(kit.offer.tools) == ["other"]
        info = next(info for info in kit.kernel.plugins.list() if info.name == "bad")
        assert any("admit_tools" in note for note in info.notes)


class Torn(dict[str, Reason]):
    """A mapping that cannot be read."""

    def items(self) -> Any:
        raise OSError("torn")


# Withholding -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("O1", "K11")
async def test_a_withheld_tool_is_refused_with_the_words_of_its_reason(make_plugin: MakePlugin) -> None:
    words = "shell needs an administrator."

    def withhold_tools(tools: Sequence[Tool], request: Request) -> Mapping[str, Reason] | None:
        return None if request.principal.privileged else {"shell": Reason(words, "roles.shell", "role")}

    plugin = make_plugin(*TOOLS, hooks=[withhold_tools])
    async with kernel_with(plugin, principal=Principal("ann", "user")) as kit:
        assert "shell" not in kit.offer.names
        assert kit.offer.withheld["shell"].text == words
        answer = await kit.call("shell")
        assert answer.status == "refused"
        assert words in answer.text
        assert "roles.shell" in answer.text
        assert (answer.record.reason, answer.record.refused_by, answer.record.setting) == (words, "role", "roles.shell")
    async with kernel_with(plugin, principal=Principal("root", "admin")) as kit:
        assert (await kit.call("shell")).status == "completed"


@pytest.mark.requirement("O1", "K10")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: (_ for _ in ()).throw(SystemExit(3)), "SystemExit"),
        (lambda: ["shell"], "list"),
        (lambda: 5, "int"),
        (lambda: Torn(), "torn"),
        (lambda: {"calc": Unspeakable()}, "no words"),
    ],
    ids=range(6),
)
async def test_a_withholder_that_fails_withholds_everything_and_is_named(
    make_plugin: MakePlugin, answer: Callable[[], Any], says: str
) -> None:
    def withhold_tools(tools: Sequence[Tool]) -> Any:
        return answer()

    guard = make_plugin(name="guard", hooks=[withhold_tools])
    async with kernel_with(make_plugin(*TOOLS), guard) as kit:
        assert kit.offer.tools == ()
        assert set(kit.offer.withheld) == {one.name for one in TOOLS}
        refused = await kit.call("calc")
        for part in ("every tool is withheld", "'guard'", says, "An operator must mend it"):
            assert part in refused.text
        assert (await kit.session.explain("calc", kit.offer.request)).steps[-1].by == "guard"
        info = next(info for info in kit.kernel.plugins.list() if info.name == "guard")
        assert any("withhold_tools" in note for note in info.notes)


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.requirement("O1")
async def test_no_later_step_brings_back_what_was_withheld(make_plugin: MakePlugin) -> None:
    def withhold_tools() -> Mapping[str, Reason]:
        return {"shell": Reason("no")}

    def forgives() -> Mapping[str, Reason]:
        return {}

    forgives.__name__ = "withhold_tools"

    async def pin_tools() -> list[Pin]:
        return [Pin("shell", "always")]

    async def select_tools() -> list[str]:
        return ["shell", "calc"]

    async def rerank_tools() -> list[str]:
        return ["shell", "file_read", "calc"]

    plugins = [
        make_plugin(*TOOLS, name="first", hooks=[withhold_tools]),
        make_plugin(name="second", priority=200, hooks=[forgives, pin_tools, select_tools, rerank_tools]),
    ]
    assert await offered(*plugins) == ["calc"]


# Selection ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("O1")
async def test_without_a_selector_every_tool_is_offered_by_name(make_plugin: MakePlugin) -> None:
    assert await offered(make_plugin(*reversed(TOOLS))) == sorted(names(TOOLS))


@pytest.mark.requirement("O1")
async def test_a_selectors_order_is_kept_and_pins_are_added_and_doubles_dropped(make_plugin: MakePlugin) -> None:
    async def pin_tools() -> list[Pin]:
        return [Pin("calc", "always"), Pin("calc", "twice"), Pin("nowhere", "never")]

    async def select_tools() -> list[str]:
        return ["shell", "file_read", "shell"]

    plugin = make_plugin(*TOOLS, hooks=[pin_tools, select_tools])
    assert await offered(plugin) == ["shell", "file_read", "calc"]


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    "answer",
    [
        lambda: 1 / 0,
        lambda: "shell",
        lambda: 5,
        lambda: {"shell": 1},
        lambda: b"shell",
        lambda: TornList(["shell"]),
    ],
    ids=range(6),
)
async def test_a_selector_that_fails_is_recorded_and_every_tool_is_offered(
    make_plugin: MakePlugin, answer: Callable[[], Any]
) -> None:
    async def select_tools() -> Any:
        return answer()

    plugin = make_plugin(*TOOLS, name="rag", hooks=[select_tools])
    async with kernel_with(plugin) as kit:
        assert kit.offer.names == {one.name for one in TOOLS}
        info = next(info for info in kit.kernel.plugins.list() if info.name == "rag")
        assert any("select_tools" in note for note in info.notes)


class TornList(list[str]):
    def __iter__(self) -> Any:
        raise OSError("torn")


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    "answer",
    [lambda: 1 / 0, lambda: 5, lambda: [5, None, Pin("calc", "x"), ["y"]], lambda: TornList(["x"]), lambda: half()],
    ids=range(5),
)
async def test_pins_that_are_none_keep_no_tool_in_and_none_out(
    make_plugin: MakePlugin, answer: Callable[[], Any]
) -> None:
    async def pin_tools() -> Any:
        return answer()

    async def select_tools() -> list[str]:
        return ["shell"]

    plugin = make_plugin(*TOOLS, hooks=[pin_tools, select_tools])
    assert (await offered(plugin))[0] == "shell"


def half() -> Any:
    yield Pin("calc", "always")
    raise OSError("torn")


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    "answer",
    [
        lambda: 1 / 0,
        lambda: 5,
        lambda: "calc",
        lambda: [[1], {}, None, 5],
        lambda: ["nowhere"],
        list,
        lambda: TornList(["x"]),
    ],
    ids=range(7),
)
async def test_a_reranker_that_fails_or_forgets_loses_no_tool(
    make_plugin: MakePlugin, answer: Callable[[], Any]
) -> None:
    async def select_tools() -> list[str]:
        return ["shell", "calc"]

    async def rerank_tools() -> Any:
        return answer()

    assert await offered(make_plugin(*TOOLS, hooks=[select_tools, rerank_tools])) == ["shell", "calc"]


@pytest.mark.requirement("O1")
async def test_a_reranker_orders_the_best_fifty_and_leaves_the_rest_behind_them(make_plugin: MakePlugin) -> None:
    everyone = [f"tool_{number:03}" for number in range(80)]
    shown: list[str] = []

    async def select_tools() -> list[str]:
        return everyone

    async def rerank_tools(shortlist: Sequence[Tool]) -> list[str]:
        shown.extend(names(shortlist))
        return [*reversed(names(shortlist)), "tool_079"]

    result = await offered(make_plugin(*[say(name) for name in everyone], hooks=[select_tools, rerank_tools]))
    assert shown[:50] == everyone[:50]
    assert len(shown) % 50 == 0
    assert result[:50] == everyone[49::-1]
    assert sorted(result) == everyone


@pytest.mark.requirement("K5")
async def test_rankings_that_are_none_are_left_out(make_plugin: MakePlugin) -> None:
    seen: list[Any] = []

    async def rank_tools() -> Any:
        return {"calc": 1.0}

    async def ranks() -> Ranking:
        return Ranking({"calc": 0.5}, "unit", "vectors")

    ranks.__name__ = "rank_tools"

    async def select_tools(ranked: Any) -> None:
        seen.append(ranked)

    plugins = [
        make_plugin(*TOOLS, name="odd", hooks=[rank_tools]),
        make_plugin(name="vectors", hooks=[ranks, select_tools]),
    ]
    assert len(await offered(*plugins)) == len(TOOLS)
    assert seen[-1] == [Ranking({"calc": 0.5}, "unit", "vectors")]


@pytest.mark.requirement("K3")
async def test_of_two_selectors_the_named_one_selects(make_plugin: MakePlugin) -> None:
    def selector(name: str) -> ModuleType:
        async def select_tools() -> list[str]:
            return [name]

        return make_plugin(say(name), name=name, hooks=[select_tools])

    one, two = selector("one"), selector("two")
    assert await offered(one, two, settings={"selector": "one"}) == ["one"]
    assert await offered(one, two, settings={"selector": "two"}) == ["two"]


@pytest.mark.requirement("K5")
async def test_a_selector_that_is_not_active_leaves_every_tool_and_a_diagnostic(make_plugin: MakePlugin) -> None:
    async def select_tools() -> list[str]:
        return ["calc"]

    selector = make_plugin(name="rag", hooks=[select_tools])
    settings = {"selector": "rag", "kernel": {"disable": ["rag"]}}
    async with kernel_with(make_plugin(*TOOLS), selector, settings=settings) as kit:
        assert kit.offer.names == {one.name for one in TOOLS}
        assert any("'rag' is not active" in text for text in kit.kernel.diagnostics())


@pytest.mark.requirement("O1")
async def test_the_hard_cap_holds_with_selection_off_and_keeps_the_pins(make_plugin: MakePlugin) -> None:
    async def pin_tools() -> list[Pin]:
        return [Pin("tool_199", "always"), Pin("tool_150", "always")]

    plugin = make_plugin(*[say(f"tool_{number:03}") for number in range(200)], hooks=[pin_tools])
    async with kernel_with(plugin) as kit:
        assert len(kit.offer.tools) == 128
        assert {"tool_199", "tool_150", "tool_000"} <= kit.offer.names
        answer = await kit.call("tool_190")
        assert "over the limit of 128 tools" in answer.text
        assert answer.record.setting == "kernel.tool_limit"
    async with kernel_with(plugin, settings={"kernel": {"tool_limit": 1}}) as kit:
        assert kit.offer.names <= {"tool_199", "tool_150"}
        assert len(kit.offer.tools) == 1


# What was not offered ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("K11")
@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("file_raed", "file_read"),
        ("FILE_READ", "file_read"),
        ("read_file", "file_read"),
        ("calculate", "calc"),
        ("file-write", "file_write"),
        ("files.file_read", "file_read"),
    ],
)
async def test_a_call_of_what_is_not_there_names_the_nearest(make_plugin: MakePlugin, name: str, nearest: str) -> None:
    async with kernel_with(make_plugin(*TOOLS)) as kit:
        answer = await kit.call(name)
    assert answer.status == "refused"
    assert f"there is no tool {name!r} here" in answer.text
    assert nearest in answer.text.partition("Nearest: ")[2].partition(". ")[0]
    assert "search_tools finds others" in answer.text
    assert answer.record.refused_by == "offer"


@pytest.mark.requirement("K11")
async def test_search_tools_is_named_only_where_it_is_offered(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(say("calc"), say("shell"))) as kit:
        assert "search_tools" not in (await kit.call("nowhere")).text
        assert "Offered: calc, shell" in (await kit.call("nowhere")).text
    async with kernel_with(make_plugin()) as kit:
        assert "Offered: none" in (await kit.call("nowhere")).text


@pytest.mark.requirement("K11")
@pytest.mark.parametrize("chosen", [["calc"], ["calc", "search_tools"]], ids=str)
async def test_what_was_not_selected_says_that_search_tools_brings_it_where_that_is_selected(
    make_plugin: MakePlugin, chosen: list[str]
) -> None:
    async def select_tools() -> list[str]:
        return chosen

    async with kernel_with(make_plugin(*TOOLS, hooks=[select_tools])) as kit:
        answer = await kit.call("shell")
    assert "shell was not selected for this message" in answer.text
    assert ("search_tools" in answer.text) == ("search_tools" in chosen)


@pytest.mark.requirement("K11")
async def test_withheld_tools_are_never_named_as_the_nearest(make_plugin: MakePlugin) -> None:
    def withhold_tools() -> Mapping[str, Reason]:
        return {"file_read": Reason("no")}

    async with kernel_with(make_plugin(*TOOLS, hooks=[withhold_tools])) as kit:
        text = (await kit.call("file_raed")).text
    assert "file_write" in text
    assert "file_read" not in text.replace("'file_raed'", "")


@pytest.mark.requirement("K11")
@pytest.mark.parametrize("name", ["", " ", "x" * 100_000, "a\nb", "\ud800", "calc\x00", "__import__"], ids=repr)
async def test_a_name_that_is_none_is_refused_shortly(make_plugin: MakePlugin, name: str) -> None:
    async with kernel_with(make_plugin(*TOOLS)) as kit:
        answer = await kit.call(name)
    assert answer.status == "refused"
    assert len(answer.text) < 500


@pytest.mark.requirement("K11")
async def test_a_request_of_another_session_is_not_offered_here(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(*TOOLS)) as kit, kit.kernel.session(session="other") as other:
        with pytest.raises(DefinitionError, match="another session"):
            await other.offer(kit.session.request(principal=Principal("ann")))


@pytest.mark.requirement("O1")
async def test_two_requests_of_one_session_are_each_offered_their_own(make_plugin: MakePlugin) -> None:
    def withhold_tools(request: Request) -> Mapping[str, Reason]:
        return {} if request.principal.privileged else {"shell": Reason("no")}

    async with kernel_with(make_plugin(*TOOLS, hooks=[withhold_tools])) as kit:
        ann = await kit.session.offer(kit.session.request(principal=Principal("ann")))
        root = await kit.session.offer(kit.session.request(principal=Principal("root", "admin")))
        again = await kit.session.offer(kit.session.request(principal=Principal("ann")))
    assert "shell" not in ann.names
    assert "shell" in root.names
    assert "shell" not in again.names


# Whatever the plugins answer ---------------------------------------------------------------------------------------

everyone = [f"t{number}" for number in range(8)]
optional = {"t1", "t4", "t5"}
some = st.lists(st.sampled_from([*everyone, "absent"]), max_size=8)
junk = st.sampled_from(["raise", None, 5, "t0", b"t0", [], {}, [None, ["t0"], 5], {"t0": None}, {"t0": 5}])
orders = some | junk
mappings = some.map(lambda found: {name: Reason(f"because of {name}") for name in found}) | junk


class Scripted:
    """Answers every hook as the example says, and keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = {}

    def answer(self, hook: str, shown: Sequence[Tool]) -> Any:
        self.seen[hook] = names(shown)
        answer = script[hook]
        if answer == "raise":
            raise RuntimeError(hook)
        return answer

    @hookimpl
    def register_tools(self) -> Any:
        return tuple(say(name, optional=name in optional) for name in everyone)

    @hookimpl
    def admit_tools(self, tools: Sequence[Tool]) -> Any:
        return self.answer("admit", tools)

    @hookimpl
    def withhold_tools(self, tools: Sequence[Tool]) -> Any:
        return self.answer("withhold", tools)

    @hookimpl
    async def pin_tools(self, offered: Sequence[Tool]) -> Any:
        answer = self.answer("pin", offered)
        return [Pin(name, "pinned") for name in answer] if isinstance(answer, list) else answer

    @hookimpl
    async def rank_tools(self, offered: Sequence[Tool]) -> Any:
        answer = self.answer("rank", offered)
        return Ranking(dict.fromkeys(answer, 1.0)) if isinstance(answer, list) and None not in answer else answer

    @hookimpl
    async def select_tools(self, offered: Sequence[Tool]) -> Any:
        return self.answer("select", offered)

    @hookimpl
    async def rerank_tools(self, shortlist: Sequence[Tool]) -> Any:
        return self.answer("rerank", shortlist)


class Second:
    """A second withholder, after the first."""

    PRIORITY = 200
    seen: list[str]

    @hookimpl
    def withhold_tools(self, tools: Sequence[Tool]) -> Any:
        type(self).seen = names(tools)
        if script["second"] == "raise":
            raise RuntimeError("second")
        return script["second"]


script: dict[str, Any] = {}
scripts = st.fixed_dictionaries(
    {
        "admit": mappings,
        "withhold": mappings,
        "second": mappings,
        "pin": orders,
        "rank": orders,
        "select": orders,
        "rerank": orders,
    }
)


@pytest.mark.requirement("O1")
@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(scripts, st.none() | some, st.integers(1, 9), st.lists(st.sampled_from(["t1", "t[45]", "scripted"]), max_size=1))
def test_whatever_plugins_answer_each_step_only_narrows(
    example: dict[str, Any], cap: list[str] | None, limit: int, patterns: list[str]
) -> None:
    script.clear()
    script.update(example)
    trio.run(_check_narrowing, cap, limit, patterns)


async def _check_narrowing(cap: list[str] | None, limit: int, patterns: list[str]) -> None:
    settings = {"kernel": {"tool_limit": limit, "optional": patterns}}
    async with kernel_with(Scripted, Second, settings=settings) as kit:
        plugin = kit.kernel.plugins.get("scripted")
        assert plugin is not None
        assert isinstance(plugin.implementer, Scripted)
        seen = plugin.implementer.seen
        seen.clear()
        offer = await kit.session.offer(kit.session.request(principal=Principal("ann"), tool_cap=cap))
        capped = set(everyone) if cap is None else set(everyone) & set(cap)
        named = {
            name
            for name in optional
            if any(fnmatch.fnmatchcase(one, pattern) for one in (name, "scripted") for pattern in patterns)
        }
        admitted = named | (set(script["admit"]) if isinstance(script["admit"], dict) else set())

        assert set(seen.get("admit", ())) == capped & optional
        after_admission = {name for name in capped if name not in optional or name in admitted}
        assert set(seen["withhold"]) == after_admission
        after_first = after_admission - _withheld(script["withhold"], after_admission)
        assert set(Second.seen) == after_first
        left = after_first - _withheld(script["second"], after_first)
        assert set(seen["pin"]) == set(seen["rank"]) == set(seen["select"]) == left

        assert offer.names <= left
        assert len(offer.tools) == len(offer.names) <= limit
        pins = set(script["pin"]) & left if _is_order(script["pin"]) else set()
        assert pins <= offer.names or (len(pins) > limit and offer.names <= pins)
        if _is_order(script["select"]):
            assert offer.names <= (set(script["select"]) & left) | pins

        assert set(offer.reasons) == offer.names
        assert set(offer.withheld) == set(everyone) - offer.names
        for name in everyone:
            explanation = offer.explain(name)
            assert explanation.offered == (name in offer.names)
            assert explanation.steps
            assert explanation.steps[-1].passed == explanation.offered
            assert all(step.passed for step in explanation.steps[:-1])
            assert all(step.text for step in explanation.steps)
        answers = await offer.call([ToolCall(name) for name in everyone])
        assert {answer.tool for answer in answers if answer.status == "completed"} == offer.names
        assert {answer.status for answer in answers} <= {"completed", "refused"}


def _withheld(answer: Any, tools: set[str]) -> set[str]:
    """What a withholder's answer takes away: what it names, or everything where it is none."""
    if answer is None:
        return set()
    return set(answer) if isinstance(answer, dict) else tools


def _is_order(answer: Any) -> bool:
    return isinstance(answer, list) and all(isinstance(name, str) for name in answer)
