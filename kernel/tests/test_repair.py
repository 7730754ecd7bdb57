"""Harmless slips in arguments: put right, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolkeel import Repair, Tool, ToolContext, raw_tool, tool
from toolkeel.errors import ArgumentError
from toolkeel.testing import kernel_with
from toolkeel.validate import Validator

MakePlugin = Callable[..., ModuleType]


class Item(BaseModel):
    name: str
    price: int = 0


@tool(effect="read", inline=True)
def order(
    count: int = 1,
    share: float = 0.0,
    fast: bool = False,
    note: str | None = None,
    word: str = "",
    size: int | None = None,
    tags: list[str] | None = None,
    numbers: list[int] | None = None,
    limits: dict[str, int] | None = None,
    item: Item | None = None,
    items: list[Item] | None = None,
    way: Literal["up", "down"] = "up",
    level: Literal[1, 2] = 1,
    either: int | str = 0,
    bounded: Annotated[int, Field(ge=1, le=5)] = 1,
) -> str:
    return "ordered"


async def echo(arguments: Mapping[str, Any], context: ToolContext) -> object:
    return dict(arguments)


raw_order = raw_tool("raw_order", "Order.", order.parameters, echo, effect="read")

# What the model sends, what the call gets, and where what was put right.
REPAIRS: list[tuple[dict[str, Any], dict[str, Any], list[tuple[str, str]]]] = [
    ({"count": "5"}, {"count": 5}, [("count", "a string read as an integer")]),
    ({"count": " -5 "}, {"count": -5}, [("count", "a string read as an integer")]),
    ({"share": "0.5"}, {"share": 0.5}, [("share", "a string read as a number")]),
    ({"share": "1e-3"}, {"share": 0.001}, [("share", "a string read as a number")]),
    ({"share": "5"}, {"share": 5}, [("share", "a string read as an integer")]),
    ({"fast": "true"}, {"fast": True}, [("fast", "a string read as true or false")]),
    ({"fast": "False"}, {"fast": False}, [("fast", "a string read as true or false")]),
    ({"size": "null"}, {"size": None}, [("size", "a string read as null")]),
    ({"word": 5}, {"word": "5"}, [("word", "an integer read as a string")]),
    ({"numbers": 5}, {"numbers": [5]}, [("numbers", "a bare value put into an array")]),
    ({"tags": "red"}, {"tags": ["red"]}, [("tags", "a bare value put into an array")]),
    ({"tags": '["red", "blue"]'}, {"tags": ["red", "blue"]}, [("tags", "a string read as an array")]),
    ({"limits": '{"a": 1}'}, {"limits": {"a": 1}}, [("limits", "a string read as an object")]),
    (
        {"numbers": ["1", 2, "3"]},
        {"numbers": [1, 2, 3]},
        [("numbers[0]", "a string read as an integer"), ("numbers[2]", "a string read as an integer")],
    ),
    ({"limits": {"a": "1"}}, {"limits": {"a": 1}}, [("limits.a", "a string read as an integer")]),
    (
        {"item": '{"name": "rope", "price": "3"}'},
        {"item": {"name": "rope", "price": 3}},
        [("item", "a string read as an object"), ("item.price", "a string read as an integer")],
    ),
    (
        {"items": {"name": "rope"}},
        {"items": [{"name": "rope"}]},
        [("items", "a bare value put into an array")],
    ),
    (
        {"items": [{"name": "rope", "price": "3"}]},
        {"items": [{"name": "rope", "price": 3}]},
        [("items[0].price", "a string read as an integer")],
    ),
    ({"count": None}, {}, [("count", "null left out")]),
    ({"level": "2"}, {"level": 2}, [("level", "a string read as an integer")]),
    ({"bounded": "3"}, {"bounded": 3}, [("bounded", "a string read as an integer")]),
]
each_repair = pytest.mark.parametrize(("sent", "received", "repairs"), REPAIRS, ids=lambda value: str(value)[:50])


@pytest.mark.requirement("K12")
@each_repair
@pytest.mark.parametrize("made", [order, raw_order], ids=["typed", "raw"])
def test_a_harmless_slip_is_put_right_and_named(
    made: Tool, sent: dict[str, Any], received: dict[str, Any], repairs: list[tuple[str, str]]
) -> None:
    arguments, values, noted = Validator(made)(sent)
    assert arguments == received
    assert {name: getattr(value, "model_dump", lambda v=value: v)() for name, value in values.items()} or not received
    assert sorted((repair.path, repair.what) for repair in noted) == sorted(repairs)


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    ("sent", "received", "path"),
    [({"count": 5.0}, {"count": 5}, "count"), ({"numbers": [1, 2.0]}, {"numbers": [1, 2]}, "numbers[1]")],
    ids=str,
)
def test_a_whole_number_with_a_point_is_an_integer(sent: Any, received: Any, path: str) -> None:
    arguments, values, repairs = Validator(order)(sent)
    assert arguments == values == received
    assert [type(value) for value in values.values()] == [type(value) for value in received.values()]
    assert repairs == (Repair(path, "a whole number read as an integer"),)


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    "sent",
    [
        {"count": "five"},
        {"count": "5 apples"},
        {"count": "5.5"},
        {"count": 5.5},
        {"count": True},
        {"count": "9" * 5_000},
        {"share": "inf"},
        {"share": "nan"},
        {"share": "1e999"},
        {"fast": "yes"},
        {"fast": 1},
        {"fast": 0},
        {"word": 5.5},
        {"word": True},
        {"word": ["a"]},
        {"numbers": ["one"]},
        {"numbers": "one"},
        {"numbers": {"a": 1}},
        {"limits": "{broken"},
        {"limits": "[1]"},
        {"limits": [["a", 1]]},
        {"item": "rope"},
        {"item": []},
        {"way": "left"},
        {"way": "UP"},
        {"level": "3"},
        {"bounded": "9"},
        {"bounded": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("made", [order, raw_order], ids=["typed", "raw"])
def test_what_could_mean_something_else_is_refused(made: Tool, sent: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        Validator(made)(sent)


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"count": 5, "word": "5"},
        {"note": None},
        {"note": "null"},
        {"either": "5"},
        {"word": "[1]"},
        {"tags": []},
        {"items": [{"name": "{}"}]},
    ],
    ids=str,
)
@pytest.mark.parametrize("made", [order, raw_order], ids=["typed", "raw"])
def test_what_fits_is_left_alone(made: Tool, sent: dict[str, Any]) -> None:
    arguments, _, repairs = Validator(made)(sent)
    assert arguments == sent
    assert repairs == ()


@pytest.mark.requirement("K12")
def test_what_the_caller_sent_is_not_changed_by_a_repair() -> None:
    sent = {"numbers": ["1"], "item": {"name": "rope", "price": "3"}}
    Validator(order)(sent)
    assert sent == {"numbers": ["1"], "item": {"name": "rope", "price": "3"}}


@pytest.mark.requirement("K12")
def test_an_object_that_was_encoded_twice_is_read() -> None:
    arguments, _, repairs = Validator(order)('"{\\"count\\": \\"5\\"}"')
    assert arguments == {"count": 5}
    assert [(repair.path, repair.what) for repair in repairs] == [
        ("", "JSON text read as an object"),
        ("count", "a string read as an integer"),
    ]
    with pytest.raises(ArgumentError, match="not a string"):
        Validator(order)('"\\"{}\\""')


@pytest.mark.requirement("K12")
def test_what_could_not_be_put_right_is_told_of_the_value_as_it_was_mended() -> None:
    with pytest.raises(ArgumentError) as caught:
        Validator(order)({"count": "5", "numbers": ["1", "x"]})
    assert caught.value.what == "numbers[1]: must be an integer, not a string"


SCHEMAS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"$ref": "#/$defs/number"}, "5", 5),
    ({"$ref": "#/$defs/a~1b~0c"}, "5", 5),
    ({"anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}]}, "5", 5),
    ({"oneOf": [{"type": "array", "items": {"$ref": "#/$defs/number"}}, {"type": "null"}]}, "5", [5]),
    ({"type": ["integer", "null"]}, "5", 5),
    ({"enum": [1, 2, 3]}, "2", 2),
    ({"const": 7}, "7", 7),
    ({"type": "array"}, "word", ["word"]),
    ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, [["5"]], [[5]]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"any": "5"}, {"any": 5}),
    ({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}}, ["5", "true"], [5, True]),
]


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(("schema", "sent", "received"), SCHEMAS, ids=str)
def test_repairs_are_led_by_the_schema_through_references_and_alternatives(
    schema: dict[str, Any], sent: Any, received: Any
) -> None:
    definitions = {"number": {"type": "integer"}, "a/b~c": {"type": "integer"}}
    made = raw_tool("t", "d", {"type": "object", "properties": {"a": schema}, "$defs": definitions}, echo)
    arguments, values, repairs = Validator(made)({"a": sent})
    assert arguments == values == {"a": received}
    assert repairs


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"$ref": "#/$defs/nowhere/at/all"}, "5"),
        ({"$ref": "#"}, "5"),
        ({"anyOf": []}, "5"),
        ({"type": []}, "5"),
        ({"type": "integer", "anyOf": [True, False]}, "5"),
        ({"type": "array", "items": False}, "5"),
        ({"type": "array", "items": [{"type": "integer"}]}, "5"),
        (True, "5"),
        (False, "5"),
        ({"type": "integer", "$ref": 5}, "5"),
        ({"type": "integer", "enum": "12"}, "5"),
        ({"type": "object", "required": 5}, "5"),
        ({"type": "object", "properties": 5}, {"a": "5"}),
    ],
    ids=str,
)
def test_odd_schemas_are_left_to_the_validator(schema: Any, sent: Any) -> None:
    made = raw_tool("t", "d", {"type": "object", "properties": {"a": schema, "b": {"type": "integer"}}}, echo)
    try:
        Validator(made)({"a": sent, "b": "5"})
    except ArgumentError as error:
        refused = str(error)
    else:
        return
    assert "JSON cannot express" not in refused


# Recorded ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K12", "K13")
async def test_the_record_of_a_call_keeps_its_repairs_and_the_mended_arguments(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(order, raw_order)) as kit:
        for name in ("order", "raw_order"):
            answer = await kit.call(name, count="5", tags="red")
            assert answer.status == "completed"
            assert answer.record.arguments == {"count": 5, "tags": ("red",)}  # frozen
            assert set(answer.record.repairs) == {
                Repair("count", "a string read as an integer"),
                Repair("tags", "a bare value put into an array"),
            }
        assert (await kit.call("order", count=5)).record.repairs == ()


@pytest.mark.requirement("K12", "K13")
async def test_what_was_refused_keeps_what_the_model_sent(make_plugin: MakePlugin) -> None:
    async with kernel_with(make_plugin(order)) as kit:
        answer = await kit.call("order", count="five")
    assert answer.status == "failed"
    assert answer.text.startswith("order: count: must be an integer, not a string")
    assert answer.record.arguments == {"count": "five"}
    assert answer.record.started is None
