"""The schema of a typed function: from its types, from its docstring, and at one with its validator."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import inspect
import pathlib
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Optional, Union

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from toolkeel import Tool, tool
from toolkeel.errors import ArgumentError, DefinitionError
from toolkeel.schema import read_docstring
from toolkeel.validate import Validator


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(BaseModel):
    """A place on a map."""

    model_config = ConfigDict(extra="forbid")

    x: int
    y: Annotated[int, Field(description="How far up.")] = 0


class Loose(BaseModel):
    tags: list[str] = Field(default_factory=list, max_length=3)
    inner: Point | None = None


class Tree(BaseModel):
    name: str
    children: list[Tree] = Field(default_factory=list)


@dataclasses.dataclass
class Place:
    name: str
    height: float = 0.0


class Row(TypedDict):
    key: str
    value: NotRequired[int]


def made(annotation: Any, default: Any = inspect.Parameter.empty, name: str = "value") -> Tool:
    """A tool of one parameter."""
    return of({name: (annotation, default)})


def of(parameters: Mapping[str, tuple[Any, Any]]) -> Tool:
    """A tool of the given parameters: name to annotation and default."""

    def function(**arguments: object) -> str:
        return str(arguments)

    kind = inspect.Parameter.KEYWORD_ONLY
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind, default=default) for name, (_, default) in parameters.items()]
    )
    function.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    return tool(function)


def schema_of(annotation: Any) -> Any:
    return made(annotation).parameters["properties"]["value"]


# Types -------------------------------------------------------------------------------------------------------------

PLAIN: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (object, {}),
    (list, {"type": "array", "items": {}}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}),
    (dict, {"type": "object", "additionalProperties": True}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping[str, Any], {"type": "object", "additionalProperties": True}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045 - authors write it
    (Union[int, list[str]], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),  # noqa: UP007
    (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
    (Literal[1, 2], {"enum": [1, 2], "type": "integer"}),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}),
    (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
    (list[dict[str, int | None]], None),  # type: ignore[list-item]
]


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(("annotation", "schema"), PLAIN, ids=lambda value: str(value)[:60])
def test_a_plain_type_has_the_schema_that_json_has_for_it(annotation: Any, schema: dict[str, Any] | None) -> None:
    if schema is None:
        schema = {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
        }
    assert schema_of(annotation) == schema


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("annotation", "part"),
    [
        (Annotated[int, Field(ge=1, le=5)], {"type": "integer", "minimum": 1, "maximum": 5}),
        (Annotated[float, Field(gt=0)], {"type": "number", "exclusiveMinimum": 0}),
        (Annotated[str, Field(min_length=1, max_length=9)], {"type": "string", "minLength": 1, "maxLength": 9}),
        (Annotated[str, Field(pattern="^a+$")], {"type": "string", "pattern": "^a+$"}),
        (Annotated[str, Field(description="A word.")], {"type": "string", "description": "A word."}),
        (Annotated[list[int], Field(max_length=2)], {"type": "array", "maxItems": 2}),
        (Colour, {"enum": ["red", "blue"], "type": "string"}),
        (Level, {"enum": [1, 2], "type": "integer"}),
        (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (datetime.date, {"type": "string", "format": "date"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (pathlib.Path, {"type": "string", "format": "path"}),
        (Point, {"type": "object", "required": ["x"], "additionalProperties": False}),
        (Place, {"type": "object", "required": ["name"]}),
        (Row, {"type": "object", "required": ["key"]}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_types_that_pydantic_knows_give_their_schema(annotation: Any, part: dict[str, Any]) -> None:
    schema = schema_of(annotation)
    assert {key: schema.get(key) for key in part} == part


@pytest.mark.requirement("K1")
def test_models_within_models_are_defined_once() -> None:
    parameters = of(
        {
            "one": (Loose, inspect.Parameter.empty),
            "more": (list[Loose], inspect.Parameter.empty),
            "tree": (Tree, inspect.Parameter.empty),
        }
    ).parameters
    assert set(parameters["$defs"]) == {"Loose", "Point", "Tree"}
    jsonschema_rs.meta.validate(parameters)
    good = {"one": {"inner": {"x": 1}}, "more": [{}], "tree": {"name": "a", "children": [{"name": "b"}]}}
    assert jsonschema_rs.is_valid(parameters, good)
    assert not jsonschema_rs.is_valid(parameters, {**good, "tree": {"name": "a", "children": [{}]}})


@pytest.mark.requirement("K1")
def test_two_types_of_one_name_are_refused_rather_than_mixed_up() -> None:
    def other() -> Any:
        class Point(BaseModel):
            z: str

        class Holder(BaseModel):
            point: Point

        return Holder

    with pytest.raises(DefinitionError, match="both called 'Point'"):
        of({"one": (Loose, inspect.Parameter.empty), "two": (other(), inspect.Parameter.empty)})


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("annotation", "default", "listed"),
    [
        (int, 3, 3),
        (str | None, None, None),
        (list[int], [1, 2], [1, 2]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (bool, False, False),
    ],
    ids=str,
)
def test_a_default_stands_in_the_schema_and_makes_the_argument_optional(
    annotation: Any, default: Any, listed: Any
) -> None:
    parameters = made(annotation, default).parameters
    assert parameters["properties"]["value"]["default"] == listed
    assert "required" not in parameters


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("default", [pathlib.Path("a"), Point(x=1), {1}, object()], ids=lambda value: str(type(value)))
def test_a_default_that_is_no_json_stays_the_functions_own(default: Any) -> None:
    parameters = made(Any, default).parameters
    assert "default" not in parameters["properties"]["value"]
    assert "required" not in parameters


# Docstrings --------------------------------------------------------------------------------------------------------

GOOGLE = """Fetch a page.

    It follows redirects.

    Args:
        url: The address,
            with its scheme.
        limit (int, optional): How many bytes: at most.
        **more: The rest.

    Returns:
        The text.

    Raises:
        ValueError: never.
    """

SPHINX = """Fetch a page.

    It follows redirects.

    :param url: The address,
        with its scheme.
    :param int limit: How many bytes: at most.
    :param more: The rest.
    :type more: dict
    :returns: The text.
    :raises ValueError: never.
    """

NUMPY = """Fetch a page.

    It follows redirects.

    Parameters
    ----------
    url : str
        The address,
        with its scheme.
    limit : int, optional
        How many bytes: at most.
    **more
        The rest.

    Returns
    -------
    str
        The text.
    """


@pytest.mark.requirement("K1")
@pytest.mark.parametrize("docstring", [GOOGLE, SPHINX, NUMPY], ids=["google", "sphinx", "numpy"])
def test_the_three_ways_to_write_a_docstring_give_the_same_texts(docstring: str) -> None:
    assert read_docstring(docstring) == (
        "Fetch a page.\n\nIt follows redirects.",
        {"url": "The address, with its scheme.", "limit": "How many bytes: at most.", "more": "The rest."},
    )


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(
    ("docstring", "description"),
    [
        ("", ""),
        ("One line.", "One line."),
        ("Look: a colon.\n\n    Note that this stays.", "Look: a colon.\n\nNote that this stays."),
        ("Text.\n\n    Example:\n        >>> call()\n\n    More text.", "Text.\n\nMore text."),
        ("Text.\n\n    - a list\n    - of things", "Text.\n\n- a list\n- of things"),
        ("Sums up a table\n    ---\n    of rows.", "Sums up a table\n---\nof rows."),
    ],
    ids=range(6),
)
def test_the_description_is_what_is_no_section(docstring: str, description: str) -> None:
    assert read_docstring(docstring) == (description, {})


@pytest.mark.requirement("K1")
def test_a_text_in_the_type_wins_over_the_docstrings() -> None:
    def function(near: Annotated[int, "From the type."], far: int, point: Point) -> str:
        """Do it.

        Args:
            near: From the docstring.
            far: From the docstring.
            point: Where.
            absent: No parameter has this name.
        """
        return f"{near}{far}{point}"

    properties = tool(function).parameters["properties"]
    assert properties["near"]["description"] == "From the type."
    assert properties["far"]["description"] == "From the docstring."
    assert set(properties) == {"near", "far", "point"}


# When it is read ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K17")
def test_a_tool_of_plain_types_asks_pydantic_for_no_schema() -> None:
    code = """
import sys, pydantic
from toolkeel import tool

def refuse(*_arguments, **_options):
    raise AssertionError("a validator was built before the first call")

pydantic.TypeAdapter.__init__ = refuse
@tool
def plain(a: int, b: list[str] | None = None, c: dict[str, float] = {}, d: bool = True) -> str: return ""
print("jsonschema_rs" in sys.modules, plain.parameters["required"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False ['a']"


# The schema and the validator agree --------------------------------------------------------------------------------
#
# Let S be the listed schema, read by an independent validator, and V the kernel's validator.
#
# 1. What S takes, V takes.
# 2. What V takes without a repair, S takes.
# 3. What V takes with repairs, S takes in its repaired form, and V takes that form without a repair.
#
# Three things stand aside: whole numbers written as 5.0, which S takes for an integer and V reads as 5 with a recorded
# repair, as far as it can tell which branch of a union is meant (test_repair); formats (dates, UUIDs), which JSON
# schema only annotates; and literals and enums of 0, 1 or booleans: to Python, and so to V, true is 1.

words = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(["5", "red", "null", "true", "[1]", "{}"])
numbers = st.integers(-(2**64), 2**64) | st.integers(-2, 12)
broken = st.floats(-1e6, 1e6).filter(lambda number: not number.is_integer())
scalars = st.none() | st.booleans() | numbers | broken | words
keys = words | st.sampled_from(["x", "y", "name", "height", "key", "value", "tags", "inner", "children"])
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)

points = st.fixed_dictionaries({"x": numbers}, optional={"y": numbers})
Typed = tuple[Any, st.SearchStrategy[Any]]


def literal(values: list[Any]) -> Typed:
    return Literal[tuple(values)], st.sampled_from(values)


simple: st.SearchStrategy[Typed] = st.sampled_from(
    [
        (int, numbers),
        (float, numbers | broken),
        (bool, st.booleans()),
        (str, words),
        (None, st.none()),
        (Any, anything),
        (Colour, st.sampled_from(["red", "blue"])),
        (Annotated[int, Field(ge=0, le=10)], st.integers(0, 10)),
        (Annotated[float, Field(gt=0)], st.floats(0.1, 10).filter(lambda number: not number.is_integer())),
        (Annotated[str, Field(min_length=1, max_length=3)], st.text(min_size=1, max_size=3)),
        (Annotated[str, "Any word."], words),
        (Annotated[list[int], Field(min_length=1)], st.lists(numbers, min_size=1, max_size=3)),
        (Point, points),
        (Loose, st.fixed_dictionaries({}, optional={"tags": st.lists(words, max_size=3), "inner": points})),
        (Tree, st.just({"name": "a", "children": [{"name": "b"}]})),
        (Place, st.fixed_dictionaries({"name": words}, optional={"height": numbers | broken})),
        (Row, st.fixed_dictionaries({"key": words}, optional={"value": numbers})),
    ]
) | st.lists(st.sampled_from(["a", "b", "5", 5, 7, None]), min_size=1, max_size=3, unique=True).map(literal)


def compound(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    one = inner.map(lambda typed: [typed])
    two = st.lists(inner, min_size=2, max_size=2)
    return st.one_of(
        one.map(lambda of: (list[of[0][0]], st.lists(of[0][1], max_size=3))),
        one.map(lambda of: (Sequence[of[0][0]], st.lists(of[0][1], max_size=3))),
        one.map(lambda of: (tuple[of[0][0], ...], st.lists(of[0][1], max_size=3))),
        one.map(lambda of: (dict[str, of[0][0]], st.dictionaries(keys, of[0][1], max_size=3))),
        one.map(lambda of: (Mapping[str, of[0][0]], st.dictionaries(keys, of[0][1], max_size=3))),
        one.map(lambda of: (of[0][0] | None if of[0][0] else None, of[0][1] | st.none())),
        two.map(lambda of: (Union[of[0][0], of[1][0]], of[0][1] | of[1][1])),  # noqa: UP007 - made at run time
        two.map(lambda of: (tuple[of[0][0], of[1][0]], st.tuples(of[0][1], of[1][1]).map(list))),
    )


annotations = st.recursive(simple, compound, max_leaves=4)


@st.composite
def signatures_with_values(draw: st.DrawFn) -> tuple[Tool, dict[str, Any]]:
    """A tool of up to three parameters, and a JSON object that it may or may not take."""
    parameters: dict[str, tuple[Any, Any]] = {}
    values: dict[str, Any] = {}
    for name in ("first", "second", "third")[: draw(st.integers(1, 3))]:
        annotation, fitting = draw(annotations)
        parameters[name] = (annotation, draw(st.sampled_from([inspect.Parameter.empty, None])))
        values[name] = draw(st.one_of(fitting, fitting, fitting, anything, scalars))
    values = {name: value for name, value in values.items() if draw(st.integers(0, 9))}
    if draw(st.integers(0, 9)) == 0:
        values[draw(keys)] = draw(scalars)
    return of(parameters), values


@pytest.mark.requirement("K1", "K12")
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(signatures_with_values())
def test_the_listed_schema_and_the_validator_agree(case: tuple[Tool, dict[str, Any]]) -> None:
    made_tool, values = case
    schema = jsonschema_rs.validator_for(dict(made_tool.parameters))
    validate = Validator(made_tool)
    try:
        arguments, _, repairs = validate(values)
    except ArgumentError:
        assert not schema.is_valid(values), "the schema takes what the validator refuses"
        return
    if not repairs:
        assert arguments == values
        assert schema.is_valid(values), "the validator takes what the schema refuses"
        return
    assert schema.is_valid(arguments), "the repaired arguments do not fit the schema"
    again, _, further = validate(arguments)
    assert (again, further) == (arguments, ())


@pytest.mark.requirement("K1")
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(annotations)
def test_whatever_the_types_the_schema_is_a_schema(typed: Typed) -> None:
    jsonschema_rs.meta.validate(made(typed[0]).parameters)


CONVERTED: list[tuple[Any, Any, Any]] = [
    (datetime.date, "2026-11-30", datetime.date(2026, 11, 30)),
    (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678-1234-5678-1234-567812345678")),
    (pathlib.Path, "a/b", pathlib.Path("a/b")),
    (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
    (Colour, "red", Colour.RED),
    (Level, 2, Level.HIGH),
    (set[int], [1, 2], {1, 2}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (tuple[int, str], [1, "a"], (1, "a")),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (Point, {"x": 1}, Point(x=1)),
    (Place, {"name": "Oslo", "height": 2}, Place("Oslo", 2.0)),
    (Row, {"key": "a"}, {"key": "a"}),
    (list[Point], [{"x": 1}], [Point(x=1)]),
    (Point | None, None, None),
]


@pytest.mark.requirement("K1")
@pytest.mark.parametrize(("annotation", "sent", "received"), CONVERTED, ids=lambda value: str(value)[:40])
def test_a_function_gets_values_of_its_types_and_the_record_keeps_the_json(
    annotation: Any, sent: Any, received: Any
) -> None:
    arguments, values, repairs = Validator(made(annotation))({"value": sent})
    assert values == {"value": received}
    assert type(values["value"]) is type(received)
    assert arguments == {"value": sent}
    assert repairs == ()


@pytest.mark.requirement("K12")
@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (datetime.date, 20261130),
        (datetime.datetime, 1.5),
        (datetime.timedelta, 5),
        (uuid.UUID, 7),
        (dict[int, str], {"one": "a"}),
        (Place, {"name": 5.5}),
        (Row, {"key": True}),
        (Point, {"x": True}),
        (Point, {"x": 1.5}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_the_schema_does_not_offer_is_not_taken_by_the_back_door(annotation: Any, sent: Any) -> None:
    with pytest.raises(ArgumentError):
        Validator(made(annotation))({"value": sent})


def test_a_function_without_parameters_takes_none() -> None:
    def nothing() -> str:
        return "done"

    assert tool(nothing).parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    validate: Callable[..., Any] = Validator(tool(nothing))
    assert validate(None) == ({}, {}, ())
    assert validate("") == ({}, {}, ())
    assert validate("{}") == ({}, {}, ())
    with pytest.raises(ArgumentError, match="is no argument"):
        validate({"a": 1})
