"""The JSON schema of a typed function, read from its signature and docstring."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import math
import re
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, cast, get_args, get_origin

import msgspec

from .errors import DefinitionError

MISSING: Any = msgspec.UNSET


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a tool function: its resolved annotation and its default (``MISSING`` when it is required)."""

    name: str
    annotation: Any
    default: Any = MISSING


class Signature(msgspec.Struct, frozen=True):
    """What a function's signature and docstring say: the schema of its arguments, its text, its parameters."""

    parameters: Mapping[str, Any]
    description: str
    fields: tuple[Parameter, ...]
    context_parameter: str | None = None


def read_signature(function: Callable[..., Any], context: type[Any]) -> Signature:
    """Read a function's schema: nothing is compiled, and pydantic is asked only for types that need it.

    A parameter annotated with ``context`` is left out of the schema and named in ``context_parameter``.

    Raises:
        DefinitionError: a parameter has no annotation, an unresolvable or inexpressible one, or is variadic.
    """
    where = f"tool function {getattr(function, '__qualname__', function)!r}"
    description, texts = read_docstring(function.__doc__ or "")
    hints = _hints(function, where)
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    fields: list[Parameter] = []
    context_parameter = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise DefinitionError(
                f"parameter {name!r} is variadic or positional-only", where=where, remedy="Name every argument"
            )
        if name not in hints:
            raise DefinitionError(
                f"parameter {name!r} has no type", where=where, remedy="Annotate it; the types are the schema"
            )
        annotation = hints[name]
        if annotation is context:
            context_parameter = name
            continue
        schema = _schema(annotation, definitions, where, name)
        if name in texts and "description" not in schema:
            schema["description"] = texts[name]
        if parameter.default is parameter.empty:
            required.append(name)
            fields.append(Parameter(name, annotation))
        else:
            if _is_json(parameter.default):
                schema["default"] = parameter.default
            fields.append(Parameter(name, annotation, parameter.default))
        properties[name] = schema
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        parameters["required"] = required
    if definitions:
        parameters["$defs"] = definitions
    return Signature(parameters, description, tuple(fields), context_parameter)


def _hints(function: Callable[..., Any], where: str) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else getattr(function, "func", function)
    try:
        found = _own_hints(target) if isinstance(target, types.FunctionType) else None
        return typing.get_type_hints(target, include_extras=True) if found is None else found
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise DefinitionError(
            f"an annotation cannot be resolved: {error}",
            where=where,
            remedy="Types of parameters must be importable at module level",
        ) from error


def _own_hints(function: types.FunctionType) -> dict[str, Any] | None:
    """What ``get_type_hints`` gives, at a third of its price; ``None`` where only it can tell."""
    if hasattr(function, "__wrapped__"):
        return None
    hints: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        if name == "return":
            continue
        if isinstance(annotation, str):
            annotation = eval(_compiled(annotation), function.__globals__)  # noqa: S307 - the author's own code
        if not _is_resolved(annotation):
            return None
        hints[name] = type(None) if annotation is None else annotation
    return hints


@functools.lru_cache(maxsize=1_024)
def _compiled(annotation: str) -> types.CodeType:
    return compile(annotation, "<annotation>", "eval")


def _is_resolved(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return True
    if isinstance(annotation, (str, typing.ForwardRef)):
        return False
    origin, arguments = cast("Any", get_origin(annotation)), get_args(annotation)
    if origin is Literal:
        return True
    inner = arguments[:1] if origin is typing.Annotated else arguments
    return all(_is_resolved(argument) for argument in inner)


_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}
_ARRAYS = (list, collections.abc.Sequence)
_OBJECTS = (dict, collections.abc.Mapping)


def _schema(annotation: Any, definitions: dict[str, Any], where: str, name: str) -> dict[str, Any]:
    simple = plain_schema(annotation)
    return simple if simple is not None else _pydantic_schema(annotation, definitions, where, name)


def plain_schema(annotation: Any) -> dict[str, Any] | None:
    """The schema of a type that is made of JSON's own types; ``None`` for types that pydantic must read."""
    try:
        if annotation in _SIMPLE:
            return dict(_SIMPLE[annotation])
    except TypeError:  # an unhashable annotation is none of ours
        return None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return _annotated(arguments[0], arguments[1:])
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        options = [plain_schema(argument) for argument in arguments]
        return None if None in options else {"anyOf": options}
    if annotation in _ARRAYS or origin in _ARRAYS:
        items = plain_schema(arguments[0]) if arguments else {}
        return None if items is None else {"type": "array", "items": items}
    if annotation in _OBJECTS or origin in _OBJECTS:
        if arguments and arguments[0] is not str:
            return None
        values = plain_schema(arguments[1]) if arguments else {}
        return None if values is None else {"type": "object", "additionalProperties": values or True}
    return None


def _annotated(annotation: Any, notes: tuple[Any, ...]) -> dict[str, Any] | None:
    if not all(isinstance(note, str) for note in notes):
        return None
    schema = plain_schema(annotation)
    if schema is not None:
        schema["description"] = notes[-1]
    return schema


def _literal(values: tuple[Any, ...]) -> dict[str, Any] | None:
    kinds: set[Any] = {type(value) for value in values}
    if not kinds <= {str, int, bool, type(None)}:
        return None
    schema: dict[str, Any] = {"enum": list(values)}
    if len(kinds) == 1 and values[0] is not None:
        schema["type"] = _SIMPLE[kinds.pop()]["type"]
    return schema


def _pydantic_schema(annotation: Any, definitions: dict[str, Any], where: str, name: str) -> dict[str, Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        schema = TypeAdapter(annotation).json_schema()
    except (PydanticUserError, ValueError, TypeError) as error:
        raise DefinitionError(
            f"the type of parameter {name!r} cannot be expressed as a JSON schema: {str(error).splitlines()[0]}",
            where=where,
            remedy="Use types that JSON has, or a pydantic model",
        ) from error
    for key, value in schema.pop("$defs", {}).items():
        if definitions.setdefault(key, value) != value:
            raise DefinitionError(
                f"two different types are both called {key!r}", where=where, remedy="Rename one of the models"
            )
    schema.pop("title", None)
    return schema


def _is_json(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (str, int, bool)) or value is None:
        return True
    if isinstance(value, (list, tuple)):
        items = typing.cast("list[object]", value)
        return all(_is_json(item) for item in items)
    if isinstance(value, dict):
        members = typing.cast("dict[object, object]", value)
        return all(isinstance(key, str) and _is_json(item) for key, item in members.items())
    return False


# Docstrings --------------------------------------------------------------------------------------------------------

_SECTIONS = {
    "args", "arguments", "parameters", "params", "returns", "return", "yields", "raises", "example", "examples",
    "note", "notes", "see also", "attributes", "since", "warns", "todo",
}  # fmt: skip
_PARAMETERS = {"args", "arguments", "parameters", "params"}
_ENTRY = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_FIELD = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and each parameter's text; Google, Sphinx and NumPy forms."""
    lines = inspect.cleandoc(docstring).splitlines()
    description: list[str] = []
    texts: dict[str, str] = {}
    index, section = 0, ""
    while index < len(lines):
        line = lines[index]
        bare = line.strip()
        heading = bare.removesuffix(":").lower()
        numpy = index + 1 < len(lines) and set(lines[index + 1].strip()) == {"-"}
        if line[:1] not in ("", " ") and heading in _SECTIONS and (numpy or bare.endswith(":")):
            section = heading
            index += 2 if numpy else 1
            block, index = _block(lines, index, numpy)
            if section in _PARAMETERS:
                texts |= _numpy_entries(block) if numpy else _google_entries(block)
            continue
        if bare.startswith(":"):
            field = _FIELD.match(bare)
            more: list[str] = []
            while index + 1 < len(lines) and lines[index + 1].startswith(" "):
                index += 1
                more.append(lines[index].strip())
            if field:
                texts[field[1]] = " ".join([field[2], *more]).strip()
        else:
            description.append(line)
        index += 1
    return "\n".join(description).strip(), texts


def _block(lines: list[str], start: int, numpy: bool) -> tuple[list[str], int]:
    end = start
    while end < len(lines):
        line = lines[end]
        underlined = end + 1 < len(lines) and set(lines[end + 1].strip()) == {"-"}
        if numpy and underlined and line.strip().lower() in _SECTIONS:
            break
        if not numpy and line.strip() and not line.startswith(" "):
            break
        end += 1
    return textwrap.dedent("\n".join(lines[start:end])).splitlines(), end


def _google_entries(block: list[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    name = ""
    for line in block:
        entry = _ENTRY.match(line)
        if entry:
            name = entry[1].lstrip("*")
            texts[name] = entry[2].strip()
        elif name and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts


def _numpy_entries(block: list[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    name = ""
    for line in block:
        if line and not line.startswith(" "):
            name = line.split(":")[0].strip().lstrip("*")
            texts[name] = ""
        elif name and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts
