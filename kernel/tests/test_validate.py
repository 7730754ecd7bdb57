"""The arguments of a call: what is refused, and in which words."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from toolkeel import Tool, ToolCall, ToolContext, raw_tool, tool
from toolkeel.errors import ArgumentError, DefinitionError
from toolkeel.testing import kernel_with
from toolkeel.validate import Validator, check_definition

SECRET = "hunter2-Zq9"


async def echo(arguments: Mapping[str, Any], context: ToolContext) -> object:
    return dict(arguments)


def raw(properties: Mapping[str, Any], **more: Any) -> Tool:
    return raw_tool("fetch", "Fetch.", {"type": "object", "properties": properties, **more}, echo)


def refusal(made: Tool, arguments: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as caught:
        Validator(made)(arguments)
    return caught.value


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Address(BaseModel):
    street: str
    number: int


@tool
def fetch(
    url: str,
    limit: int = 10,
    fast: bool = False,
    ratio: float = 0.5,
    headers: dict[str, str] | None = None,
    tags: list[int] | None = None,
    address: Address | None = None,
    order: Literal["up", "down"] = "up",
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
) -> str:
    """Fetch a page."""
    return url


# Words for the model -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "url: is required"),
        ({"url": ["a", "b"]}, "url: must be a string, not an array"),
        ({"url": {"a": 1}}, "url: must be a string, not an object"),
        ({"url": None}, "url: must be a string, not null"),
        ({"url": 5.5}, "url: must be a string, not a number"),
        ({"url": "u", "limit": "many"}, "limit: must be an integer, not a string"),
        ({"url": "u", "limit": 5.5}, "limit: must be an integer, not a number"),
        ({"url": "u", "limit": True}, "limit: must be an integer, not true or false"),
        ({"url": "u", "fast": 1}, "fast: must be true or false, not an integer"),
        ({"url": "u", "ratio": []}, "ratio: must be a number, not an array"),
        ({"url": "u", "headers": {"a": []}}, "headers.a: must be a string, not an array"),
        ({"url": "u", "tags": [1, "x"]}, "tags[1]: must be an integer, not a string"),
        ({"url": "u", "address": {"street": "a"}}, "address.number: is required"),
        ({"url": "u", "address": {"street": "a", "number": "b"}}, "address.number: must be an integer, not a string"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_names_the_argument_the_type_due_and_the_kind_it_got(arguments: Any, words: str) -> None:
    assert words in refusal(fetch, arguments).what.split("; ")


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    ("properties", "arguments", "words"),
    [
        ({"a": {"type": "integer"}}, {"a": []}, "a: must be an integer, not an array"),
        ({"a": {"type": ["integer", "null"]}}, {"a": {}}, "a: must be null or an integer, not an object"),
        ({"a": {"type": "array", "items": {"type": "boolean"}}}, {"a": [True, 2]}, "a[1]: must be true or false"),
        ({"a": {"type": "object", "required": ["b"]}}, {"a": {}}, "a.b: is required"),
    ],
    ids=range(4),
)
def test_a_raw_schema_refuses_in_the_same_words(properties: Any, arguments: Any, words: str) -> None:
    assert words in refusal(raw(properties), arguments).what


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("typed", [True, False])
def test_an_unknown_argument_names_the_nearest_and_all_that_there_are(typed: bool) -> None:
    made = fetch if typed else raw({"url": {}, "limit": {}}, additionalProperties=False)
    error = refusal(made, {"url": "u", "limmit": 5})
    assert error.what == "limmit: is no argument of this tool (did you mean 'limit'?)"
    assert error.remedy.startswith("fetch takes: url, limit")


@pytest.mark.requirement("K12")
def test_an_unknown_argument_like_no_other_suggests_nothing() -> None:
    assert refusal(fetch, {"url": "u", "zzz": 5}).what == "zzz: is no argument of this tool"


@pytest.mark.requirement("K12")
def test_a_constraint_says_what_it_wants_without_denying_the_type() -> None:
    @tool
    def bounded(number: Annotated[int, Field(ge=1)], word: Annotated[str, Field(max_length=2)]) -> str:
        return word * number

    what = refusal(bounded, {"number": 0, "word": "abc"}).what
    assert "number: must be greater than or equal to 1" in what
    assert "not an integer" not in what
    assert "word: " in what
    assert "2 characters" in what


@pytest.mark.requirement("K12")
def test_many_faults_are_one_short_text() -> None:
    what = refusal(fetch, {f"x{number}": number for number in range(500)}).what
    assert what.count(";") == 3
    assert what.endswith("and 498 more")
    long_names = {("n" * 3_000) + str(number): 1 for number in range(3)}
    assert len(str(refusal(fetch, long_names))) < 2_500


@pytest.mark.requirement("K12")
def test_a_hundred_thousand_unknown_arguments_do_not_hold_up_the_loop() -> None:
    arguments = {f"argument_{number}": number for number in range(100_000)}
    started = time.process_time()
    refusal(fetch, arguments)
    refusal(raw({"url": {}, "argument": {}}, additionalProperties=False), arguments)
    assert time.process_time() - started < 2


# Values stay out of it ---------------------------------------------------------------------------------------------


class Checked(BaseModel):
    token: str

    @field_validator("token")
    @classmethod
    def _is_short(cls, value: str) -> str:
        if len(value) > 3:
            raise ValueError("a token has three characters")
        return value


@tool
def keep(
    plain: int = 0,
    choice: Literal["a", "b"] = "a",
    shaped: Annotated[str, Field(pattern="^x$")] = "x",
    short: Annotated[str, Field(max_length=3)] = "x",
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
    either: int | bool = 0,
    checked: Checked | None = None,
    listed: list[int] | None = None,
) -> str:
    return ""


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    "arguments",
    [
        {"plain": SECRET},
        {"plain": [SECRET]},
        {"plain": {SECRET[:3]: SECRET}},
        {"choice": SECRET},
        {"shaped": SECRET},
        {"short": SECRET},
        {"pet": {"kind": SECRET}},
        {"pet": {"kind": "dog", "name": [SECRET]}},
        {"either": SECRET},
        {"checked": {"token": SECRET}},
        {"listed": [1, SECRET]},
    ],
    ids=str,
)
def test_a_refusal_of_a_typed_tool_never_shows_the_value(arguments: Any) -> None:
    assert SECRET not in str(refusal(keep, arguments))


RULES: list[dict[str, Any]] = [
    {"enum": ["a", "b"]},
    {"const": "a"},
    {"pattern": "^x$"},
    {"maxLength": 3},
    {"type": "integer"},
    {"anyOf": [{"type": "integer"}, {"const": "a"}]},
    {"oneOf": [{"type": "integer"}, {"const": "a"}]},
    {"allOf": [{"const": "a"}]},
    {"not": {"type": "string"}},
    {"format": "email", "enum": ["a"]},
    {"if": {"type": "string"}, "then": {"maxLength": 1}},
    {"type": "string", "minLength": 100},
    {"$ref": "#/$defs/word"},
    False,  # type: ignore[list-item]
]


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("shape", ["bare", "in an array", "in an object"])
def test_a_refusal_of_a_raw_schema_never_shows_the_value(rule: Any, shape: str) -> None:
    wrapped, value = {
        "bare": (rule, SECRET),
        "in an array": ({"type": "array", "items": rule}, [SECRET]),
        "in an object": ({"type": "object", "additionalProperties": rule}, {"key": SECRET}),
    }[shape]
    error = refusal(raw({"a": wrapped}, **{"$defs": {"word": {"enum": ["a"]}}}), {"a": value})
    assert SECRET not in str(error)
    assert error.what.startswith("a")


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    "rules",
    [
        {"maxProperties": 0},
        {"dependentRequired": {"a": ["b"]}},
        {"propertyNames": {"maxLength": 0}},
        {"unevaluatedProperties": False, "properties": {}},
        {"patternProperties": {"^a$": {"type": "integer"}}, "properties": {}},
    ],
    ids=str,
)
def test_a_rule_about_the_whole_object_never_shows_a_value(rules: dict[str, Any]) -> None:
    assert SECRET not in str(refusal(raw(**{"properties": {"a": {}}, **rules}), {"a": SECRET}))


# JSON that is none -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"url": "a",}', "byte 12"),
        ('{"url": nope}', "byte 12"),
        ("{'url': 1}", "byte 1"),
        ('{"url": "a"} and more', "byte 14"),
        ('{"url": NaN}', "byte 8"),
        ('{"url": "a', "truncated"),
        ('{"url": ', "truncated"),
        ('{"url": "\\ud800"}', ""),
        (b'{"url": "\xff"}', "UTF-8"),
    ],
    ids=range(9),
)
def test_broken_json_says_where_it_breaks_and_what_to_send(text: str | bytes, where: str) -> None:
    error = refusal(fetch, text)
    assert "not valid JSON" in error.what
    assert where in error.what
    assert "one JSON object" in error.remedy


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    ("text", "kind"),
    [("[1]", "an array"), ("5", "an integer"), ("true", "true or false"), ('"\\"word\\""', "a string")],
)
def test_json_that_is_no_object_is_named_for_what_it_is(text: str, kind: str) -> None:
    assert f"must be one JSON object, not {kind}" in refusal(fetch, text).what


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("text", [None, "", "  \n", b"", "null", "{}"], ids=repr)
def test_no_arguments_at_all_are_an_empty_object(text: Any) -> None:
    assert Validator(raw({"a": {}}))(text) == ({}, {}, ())


@pytest.mark.requirement("K12")
def test_of_a_key_that_stands_twice_the_last_one_counts() -> None:
    assert Validator(fetch)('{"url": "a", "url": "b"}')[0] == {"url": "b"}


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("text", [True, False])
def test_what_is_nested_too_deeply_is_refused(typed: bool, text: bool) -> None:
    made = tool(anything) if typed else raw({"value": {"type": "object"}})
    arguments: Any = '{"value":' * 100_000 + "1" + "}" * 100_000
    if not text:
        arguments = 1
        for _ in range(100_000):
            arguments = {"value": arguments}
    assert (
        "nested too deeply" in refusal(made, arguments).what or "JSON cannot express" in refusal(made, arguments).what
    )
    while isinstance(arguments, dict):  # taken apart by hand: its destructor would recurse
        arguments = arguments.popitem()[1]


def anything(value: Any) -> str:
    return str(type(value))


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize(
    "arguments",
    [
        {1: "a"},
        {None: "a"},
        {"value": object()},
        {"value": {1: 2}},
        {"value": 10**5_000},
        {"value": {"set"}},
        '{"value": 1' + "0" * 5_000 + "}",
        {"val\ud800": 1},
        {"url": "\ud800"},
        '{"value": "\ud800"}',
    ],
    ids=lambda value: str(type(value)),
)
def test_what_a_program_hands_in_is_refused_or_taken_but_raises_nothing_else(typed: bool, arguments: Any) -> None:
    made = fetch if typed else raw({"value": {"type": "string"}}, additionalProperties=False)
    refusal(made, arguments)


@pytest.mark.requirement("K12")
def test_numbers_of_any_size_keep_their_value() -> None:
    made = raw({"a": {"type": "integer"}})
    for number in (0, -1, 2**63, 2**64, -(2**70), 10**300):
        assert Validator(made)({"a": number})[1] == {"a": number}
        assert Validator(tool(whole))({"number": number})[1] == {"number": number}
        assert Validator(tool(whole))(json.dumps({"number": number}))[1] == {"number": number}


def whole(number: int) -> str:
    return str(number)


# Schemas of strangers ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "strin"}}},
        {"properties": {"a": 5}},
        {"properties": []},
        {"required": "a"},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "#/$defs/none"}}},
        {"$schema": "https://schemas.invalid/none"},
        {"properties": {"a": {"minimum": "many"}}},
    ],
    ids=str,
)
def test_a_schema_that_is_none_fails_its_own_calls_clearly(schema: dict[str, Any]) -> None:
    made = raw_tool("broken", "d", {"type": "object", **schema}, echo)
    error = refusal(made, {"a": 1})
    assert "the tool's own schema is not usable" in error.what
    assert "another tool" in error.remedy
    with pytest.raises(DefinitionError, match="broken"):
        check_definition(made)


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    "reference",
    ["http://127.0.0.1:9/x.json", "https://schemas.invalid/x.json", "file:///etc/passwd", "x.json", "//host/x"],
)
def test_a_schema_elsewhere_is_never_fetched(reference: str) -> None:
    code = """
import sys
def audit(event, arguments):
    if event.startswith(("socket.", "urllib.")) or (event == "open" and "passwd" in str(arguments[0])):
        print("reached out:", event, arguments)
sys.addaudithook(audit)
from toolkeel import raw_tool
from toolkeel.errors import ArgumentError
from toolkeel.validate import Validator
async def echo(arguments, context): return ""
made = raw_tool("far", "d", {"type": "object", "properties": {"a": {"$ref": sys.argv[1]}}}, echo)
try:
    Validator(made)({"a": 1})
except ArgumentError as error:
    print(error.what)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, reference], capture_output=True, text=True, timeout=60, check=True
    )
    assert "the tool's own schema is not usable" in done.stdout
    assert "reached out" not in done.stdout


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?=(a+)+$)b", "^((a+)+)\\1$", "^(a|a)*$", "(.*)*=.*"])
def test_a_catastrophic_pattern_ends_soon(pattern: str) -> None:
    started = time.process_time()
    refusal(raw({"a": {"type": "string", "pattern": pattern}}), {"a": "a" * 50_000 + "!"})
    assert time.process_time() - started < 3


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("depth", [12, 40])
def test_a_schema_that_branches_without_end_ends_soon(depth: int) -> None:
    """Each level names the next one twice: a validator that walks the branches would take 2**depth steps."""
    code = """
import sys
from toolkeel import raw_tool
from toolkeel.errors import ArgumentError
from toolkeel.validate import Validator
async def echo(arguments, context): return ""
depth = int(sys.argv[1])
ref = lambda level: {"$ref": f"#/$defs/{level}"}
definitions = {str(level): {"anyOf": [ref(level + 1), ref(level + 1)]} for level in range(depth)}
definitions[str(depth)] = {"type": "integer"}
schema = {"type": "object", "properties": {"a": ref(0)}, "$defs": definitions}
try:
    Validator(raw_tool("wide", "d", schema, echo))({"a": "word"})
except ArgumentError as error:
    print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(depth)], capture_output=True, text=True, timeout=15, check=True
    )
    assert done.stdout.strip() == "refused"


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    "definitions",
    [
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}},
        {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}},
        {"a": {"not": {"$ref": "#/$defs/a"}}},
    ],
    ids=str,
)
def test_a_schema_that_refers_to_itself_does_not_end_the_process(definitions: dict[str, Any]) -> None:
    code = f"""
from toolkeel import raw_tool
from toolkeel.errors import ArgumentError
from toolkeel.validate import Validator
async def echo(arguments, context): return ""
schema = {{"type": "object", "properties": {{"a": {{"$ref": "#/$defs/a"}}}}, "$defs": {definitions!r}}}
for value in ("word", 1, None, []):
    try:
        Validator(raw_tool("loop", "d", schema, echo))({{"a": value}})
    except ArgumentError:
        pass
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.strip() == "alive", (done.returncode, done.stderr)


@pytest.mark.requirement("K12")
def test_recursive_schemas_are_followed_as_deep_as_the_value_goes() -> None:
    made = raw(
        {"tree": {"$ref": "#/$defs/tree"}},
        **{
            "$defs": {
                "tree": {
                    "type": "object",
                    "properties": {"size": {"type": "integer"}, "below": {"$ref": "#/$defs/tree"}},
                    "additionalProperties": False,
                }
            }
        },
    )
    value: dict[str, Any] = {"size": 1}
    for _ in range(30):
        value = {"size": 1, "below": value}
    assert Validator(made)({"tree": value})[1] == {"tree": value}
    error = refusal(made, {"tree": {"below": {"below": {"size": "big"}}}})
    assert error.what == "tree.below.below.size: must be an integer, not a string"


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    "dialect", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"]
)
def test_older_dialects_are_read_as_what_they_say_they_are(dialect: str) -> None:
    made = raw_tool(
        "old",
        "d",
        {
            "$schema": dialect,
            "type": "object",
            "definitions": {"n": {"type": "integer"}},
            "properties": {"pair": {"type": "array", "items": [{"$ref": "#/definitions/n"}, {"type": "string"}]}},
        },
        echo,
    )
    assert Validator(made)({"pair": [1, "a"]})[1] == {"pair": [1, "a"]}
    assert "pair[1]" in refusal(made, {"pair": [1, 2.5]}).what


# Compiled on first use ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("K12", "K17")
def test_validators_are_compiled_on_first_use() -> None:
    code = """
import sys
import pydantic
import trio
from types import ModuleType
from toolkeel import hookimpl, raw_tool, tool
from toolkeel.testing import kernel_with

built = []
plain_init = pydantic.TypeAdapter.__init__
def counted(self, *arguments, **options):
    built.append(arguments)
    plain_init(self, *arguments, **options)
pydantic.TypeAdapter.__init__ = counted

async def echo(arguments, context): return "raw"
@tool(effect="read", inline=True)
def typed(number: int) -> str: return "typed"
def register_tools(): return typed, raw_tool("raw", "d", {"type": "object"}, echo)
module = ModuleType("both")
module.register_tools = hookimpl(register_tools)

async def main():
    async with kernel_with(module) as kit:
        kit.offer.json()
        print("jsonschema_rs" in sys.modules, len(built))
        await kit.call("typed", number=1)
        await kit.call("typed", number=2)
        print("jsonschema_rs" in sys.modules, len(built))
        await kit.call("raw")
        print("jsonschema_rs" in sys.modules, len(built))
trio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split("\n")[:3] == ["False 0", "False 1", "True 1"], done.stderr


# Anything at all ---------------------------------------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["5", "null", "{}", "[1]", '{"a": 1}', "1e999", "\ud800", 10**50])
)
names = st.text(max_size=3) | st.sampled_from(
    ["url", "limit", "address", "street", "number", "kind", "pet", "tags", "a"]
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
everything = raw(
    {
        "a": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
        "url": {"type": "string", "pattern": "^(a+)+$", "maxLength": 3},
        "limit": {"type": ["integer", "null"], "maximum": 10},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True},
        "address": {
            "type": "object",
            "properties": {"number": {"const": 5}},
            "additionalProperties": {"enum": [1, "a"]},
        },
    },
    required=["url"],
    additionalProperties=False,
    **{"$defs": {"tag": {"oneOf": [{"type": "boolean"}, {"$ref": "#/properties/address"}]}}},
)


@pytest.mark.requirement("K12")
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.dictionaries(names, values, max_size=5) | values.map(json.dumps) | st.text() | st.binary())
def test_no_arguments_raise_anything_but_an_argument_error(arguments: Any) -> None:
    for validate in (typed_validator, raw_validator):
        try:
            repaired, received, repairs = validate(arguments)
        except ArgumentError as error:
            said = error
        else:
            assert isinstance(repaired, dict)
            assert isinstance(received, dict)
            assert all(repair.what for repair in repairs)
            continue
        assert said.what
        assert len(str(said)) < 2_500


typed_validator, raw_validator = Validator(fetch), Validator(everything)


@pytest.mark.requirement("K12")
@pytest.mark.parametrize("arguments", [5, [1], True, 1.5])
async def test_arguments_that_are_no_object_fail_their_call_and_no_other(make_plugin: Any, arguments: Any) -> None:
    @tool(effect="read", inline=True)
    def look() -> str:
        """Look."""
        return "seen"

    async with kernel_with(make_plugin(look)) as kit:
        wrong: Any = None
        calls = [ToolCall("look", arguments, "1"), ToolCall(wrong, {}, "2"), ToolCall("look", {}, wrong)]
        first, second, third = await kit.offer.call(calls)
    assert (first.status, second.status, third.text) == ("failed", "refused", "seen")
    assert "must be one JSON object" in first.text
