"""Tools: made from a typed function or from a raw schema, listed for a model."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from toolkeel import Preset, Scope, Tool, ToolContext, hookimpl, raw_tool, tool
from toolkeel.errors import DefinitionError
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]
OBJECT = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def answer_city(arguments: Mapping[str, Any], context: ToolContext) -> str:
    return f"sunny in {arguments['city']}"


@tool
def plain(text: str, times: int = 2) -> str:
    """Say it again.

    And again.

    Args:
        text: What to say.
        times: How often.
    """
    return text * times


# A typed function --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K1")
def test_a_typed_function_gives_name_description_schema_and_itself() -> None:
    assert plain.name == "plain"
    assert plain.description == "Say it again.\n\nAnd again."
    assert plain.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say."},
            "times": {"type": "integer", "description": "How often.", "default": 2},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    assert plain("ab") == "abab"


@pytest.mark.requirement("K1")
def test_an_author_who_says_no_effect_gets_a_guarded_write() -> None:
    assert plain.effect == "write"
    assert not plain.volatile
    assert not plain.idempotent
    assert not plain.optional


@pytest.mark.requirement("K1")
def test_options_of_the_decorator_are_the_fields_of_the_tool() -> None:
    @tool(
        name="renamed",
        description="Another text.",
        effect="read",
        group="weather",
        volatile=True,
        optional=True,
        inline=True,
        time_limit=2.5,
        spill="never",
        secret_parameters=["token"],
        reads=lambda arguments, scope: [("city",)],
    )
    def original(token: str) -> str:
        """The docstring."""
        return token

    assert (original.name, original.description) == ("renamed", "Another text.")
    assert (original.effect, original.group, original.spill, original.time_limit) == ("read", "weather", "never", 2.5)
    assert original.volatile
    assert original.optional
    assert original.inline
    assert original.secret_parameters == frozenset({"token"})
    assert original.reads is not None
    assert list(original.reads({}, None)) == [("city",)]  # type: ignore[arg-type]


@pytest.mark.requirement("K1")
def test_a_function_that_is_awaited_is_told_from_one_that_runs_in_a_thread() -> None:
    async def awaited(text: str) -> str:
        return text

    class Awaited:
        async def __call__(self, text: str) -> str:
            return text

    assert tool(awaited).asynchronous
    assert not plain.asynchronous
    assert Tool(
        name="partial", description="", parameters=OBJECT, function=functools.partial(awaited, "x")
    ).asynchronous
    assert Tool(name="object", description="", parameters=OBJECT, function=Awaited()).asynchronous


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("position", ["first", "last"])
def test_the_context_is_left_out_of_the_schema_wherever_it_stands(position: str) -> None:
    def first(context: ToolContext, text: str) -> str:
        return text

    def last(text: str, *, context: ToolContext) -> str:
        return text

    made = tool(first if position == "first" else last)
    assert made.context_parameter == "context"
    assert made.parameters["properties"] == {"text": {"type": "string"}}
    assert made.parameters["required"] == ["text"]


@pytest.mark.requirement("K1")
async def test_a_tool_gets_the_context_of_its_own_call(make_plugin: MakePlugin) -> None:
    @tool(effect="read", inline=True)
    def who(context: ToolContext, greeting: str = "hello") -> str:
        return f"{greeting} {context.principal.name} of {context.scope.agent}/{context.request.message}"

    async with kernel_with(make_plugin(who), agent="bosun", message="hi there") as kit:
        assert (await kit.call("who")).text == "hello tester of bosun/hi there"
        assert (await kit.call("who", context="mine")).status == "failed"


@pytest.mark.requirement("K1")
def test_a_bound_method_becomes_a_tool_without_its_self() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self, amount: int) -> int:
            """Add to the count."""
            self.count += amount
            return self.count

    counter = Counter()
    made = tool(counter.add)
    assert (made.name, made.description) == ("add", "Add to the count.")
    assert list(made.parameters["properties"]) == ["amount"]
    assert made(3) == 3


# Definitions that cannot be ----------------------------------------------------------------------------------------


def no_type(text) -> str:  # type: ignore[no-untyped-def]
    return str(text)


def variadic(*texts: str) -> str:
    return "".join(texts)


def keywords(**texts: str) -> str:
    return "".join(texts)


def positional(text: str, /) -> str:
    return text


def unresolvable(text: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    return str(text)


def no_such_attribute(text: json.Nowhere) -> str:  # type: ignore[name-defined]
    return str(text)


def no_syntax(text: "int +") -> str:  # type: ignore[valid-type]  # noqa: F722
    return str(text)


def a_callable(text: Callable[[int], int]) -> str:
    return str(text)


def a_class(text: type) -> str:
    return str(text)


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("function", "says"),
    [
        (no_type, "'text' has no type"),
        (variadic, "'texts' is variadic"),
        (keywords, "'texts' is variadic"),
        (positional, "'text' is variadic or positional-only"),
        (unresolvable, "Nowhere"),
        (no_such_attribute, "Nowhere"),
        (no_syntax, "int +"),
        (a_callable, "'text' cannot be expressed"),
        (a_class, "'text' cannot be expressed"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_function_that_gives_no_schema_is_refused_with_place_and_remedy(
    function: Callable[..., Any], says: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        tool(function)
    assert says in caught.value.what
    assert function.__name__ in caught.value.where
    assert caught.value.remedy


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("name", ["", "a b", "a/b", "a" * 129, "a\n", "läuft!"])
def test_a_name_that_no_model_could_call_is_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match="1 to 128"):
        raw_tool(name, "d", OBJECT, answer_city)


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("name", ["a", "server__list-files", "v1.2", "a" * 128])
def test_names_as_servers_use_them_are_taken(name: str) -> None:
    assert raw_tool(name, "d", OBJECT, answer_city).name == name


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"effect": "harmless"}, "effect 'harmless'"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"time_limit": float("nan")}, "time_limit"),
        ({"inline": True}, "inline"),
    ],
    ids=str,
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        raw_tool("t", "d", OBJECT, answer_city, **options)


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("parameters", [{}, {"type": "array"}, {"type": ["object", "null"]}], ids=str)
def test_parameters_that_are_no_object_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="'object'"):
        raw_tool("t", "d", parameters, answer_city)


@pytest.mark.requirement("K1")
def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(DefinitionError, match="not callable"):
        Tool(name="t", description="d", parameters=OBJECT, function="text")  # type: ignore[arg-type]


# Raw schemas -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K1")
async def test_a_raw_schema_is_listed_as_it_is_and_its_function_gets_the_arguments(make_plugin: MakePlugin) -> None:
    schema = {**OBJECT, "$defs": {"unused": {"type": "null"}}, "x-server": "weather"}
    weather = raw_tool("weather", "The weather.", schema, answer_city, effect="read")
    async with kernel_with(make_plugin(weather)) as kit:
        assert json.loads(kit.offer.json()) == [
            {"name": "weather", "description": "The weather.", "parameters": schema}
        ]
        answer = await kit.call("weather", city="Oslo")
    assert (answer.status, answer.text) == ("completed", "sunny in Oslo")


@pytest.mark.requirement("K1")
async def test_a_tool_that_changes_its_arguments_does_not_change_the_record(make_plugin: MakePlugin) -> None:
    async def eat(arguments: Any, context: ToolContext) -> str:
        arguments["items"].clear()
        arguments.clear()
        return "eaten"

    schema = {"type": "object", "properties": {"items": {"type": "array"}}}
    async with kernel_with(make_plugin(raw_tool("eat", "Eat.", schema, eat))) as kit:
        answer = await kit.call("eat", items=[1, 2])
    assert answer.record.arguments == {"items": (1, 2)}  # frozen


# The listing -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K1")
async def test_presets_stand_in_the_description_in_stored_order(make_plugin: MakePlugin) -> None:
    presets = [Preset("weekly", {"days": 7}, "The last week."), Preset("daily", {"days": 1})]

    @tool(effect="read", presets=presets)
    def report(days: int) -> str:
        """Write a report."""
        return "written"

    async with kernel_with(make_plugin(report)) as kit:
        [listed] = json.loads(kit.offer.json())
    assert listed["description"].splitlines() == [
        "Write a report.",
        "",
        "Presets:",
        '- weekly: {"days":7} The last week.',
        '- daily: {"days":1}',
    ]


@pytest.mark.requirement("K1")
async def test_a_tool_without_presets_keeps_its_description(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(plain)) as kit:
        [listed] = json.loads(kit.offer.json())
    assert listed["description"] == plain.description


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("text", ["a lone \ud800 surrogate", "a \x00 byte", "line\nbreaks\u2028", "😀"])
async def test_whatever_a_description_holds_the_listing_of_the_others_is_made(
    make_plugin: MakePlugin, text: str
) -> None:
    def build(scope: object) -> Tool:
        return raw_tool("odd", text, OBJECT, answer_city)

    odd = ModuleType("odd")
    build.__name__ = "register_tools"
    odd.register_tools = hookimpl(build)  # type: ignore[attr-defined]
    async with kernel_with(odd, make_plugin(plain), broken=True) as kit:
        assert "plain" in {listed["name"] for listed in json.loads(kit.offer.json())}


def endless(number: float = float("inf")) -> str:
    return str(number)


def very_large(number: int = 2**70) -> str:
    return str(number)


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(("function", "listed"), [(endless, None), (very_large, 2**70)])
async def test_a_default_of_any_size_leaves_the_listing_whole_and_none_stands_for_infinity(
    make_plugin: MakePlugin, function: Callable[..., Any], listed: int | None
) -> None:
    async with kernel_with(make_plugin(tool(function), plain)) as kit:
        tools = {one["name"]: one for one in json.loads(kit.offer.json())}
        answer = await kit.call(function.__name__)
    number = tools[function.__name__]["parameters"]["properties"]["number"]
    assert number == ({"type": "number"} if listed is None else {"type": "integer", "default": listed})
    assert answer.text == str(function())


@pytest.mark.requirement("K1")
async def test_a_function_of_each_kind_runs_and_answers(make_plugin: MakePlugin) -> None:
    @tool(effect="read")
    def threaded(text: str) -> str:
        return f"threaded {text}"

    @tool(effect="read", inline=True)
    def inline(text: str) -> str:
        return f"inline {text}"

    @tool(effect="read")
    async def awaited(text: str) -> str:
        return f"awaited {text}"

    async with kernel_with(make_plugin(threaded, inline, awaited)) as kit:
        answers = await kit.batch([(name, {"text": "x"}) for name in ("threaded", "inline", "awaited")])
    assert [answer.text for answer in answers] == ["threaded x", "inline x", "awaited x"]


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reads": "abc"}, "reads must be a function"),
        ({"writes": 5}, "writes must be a function"),
        ({"spill": "allways"}, "spill 'allways' is none of"),
        ({"idempotent": "x"}, "idempotent must be True or False"),
        ({"time_limit": "5"}, "time_limit is a positive number"),
        ({"time_limit": True}, "time_limit is a positive number"),
    ],
)
def test_an_option_of_the_wrong_kind_is_told_where_the_tool_is_defined(options: dict[str, Any], says: str) -> None:
    def look() -> None:
        """Look."""

    with pytest.raises(DefinitionError, match=says):
        Tool(name="look", description="Look.", parameters={"type": "object"}, function=look, **options)


@pytest.mark.requirement("K9")
def test_keys_may_be_given_as_a_constant_list() -> None:
    @tool(writes=[("account",)])
    def pay() -> None:
        """Pay."""

    assert pay.writes is not None
    assert list(pay.writes({}, Scope())) == [("account",)]
