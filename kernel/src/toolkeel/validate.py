"""The arguments of a call: decoded, repaired where the slip is harmless, validated."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import difflib
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec

from .calls import Repair, thawed
from .errors import ArgumentError, DefinitionError
from .schema import MISSING, Parameter, plain_schema
from .tools import Tool

Values = dict[str, Any]
_SHOWN = 3
_LOOKED_AT = 8
_TEXT_LIMIT = 1_000
_DEPTH_LIMIT = 64
_BRANCH_LIMIT = 64
_COST_LIMIT = 10_000


class Validator:
    """Judges the arguments of one tool. What it compiles it compiles on first use."""

    __slots__ = ("_check", "_tool")

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._check: Callable[[Values], Values] | None = None

    @property
    def ready(self) -> bool:
        """Whether it is compiled."""
        return self._check is not None

    def prepare(self) -> None:
        """Compile it ahead of use, in a worker thread; what goes wrong comes up again at its use."""
        with suppress(ArgumentError):
            self._compile()

    def __call__(self, arguments: str | bytes | Mapping[str, Any] | None) -> tuple[Values, Values, tuple[Repair, ...]]:
        """Validate what a model sent.

        Returns:
            The arguments as JSON values after repair, the values that the function gets, and the repairs.

        Raises:
            ArgumentError: one short text for the model: the argument, the expected type, the value's kind.
        """
        check = self._check or self._compile()
        repairs: list[Repair] = []
        if type(arguments) is str and arguments[:1] == "{":  # as models send them: no detour where nothing is wrong
            try:
                decoded = msgspec.json.decode(arguments)
                return decoded, check(decoded), ()
            except (_Unfit, ValueError, TypeError, OverflowError, RecursionError):
                pass
        try:
            decoded = _decode(arguments, repairs)
            try:
                return decoded, check(decoded), tuple(repairs)
            except _Unfit as unfit:
                return self._repaired(decoded, check, repairs, unfit)
        except RecursionError:
            raise ArgumentError("the arguments are nested too deeply", remedy="Send flatter arguments") from None
        except (ValueError, OverflowError, TypeError):  # what a program hands in may be no JSON at all
            raise ArgumentError("the arguments hold something that JSON cannot express") from None

    def _repaired(
        self, decoded: Values, check: Callable[[Values], Values], repairs: list[Repair], unfit: _Unfit
    ) -> tuple[Values, Values, tuple[Repair, ...]]:
        schema = self._tool.parameters
        repaired = cast("Values", _Repairer(schema, repairs).mend(decoded, schema, "", 0))
        if not repairs:
            raise unfit.error(self._tool) from None
        try:
            return repaired, check(repaired), tuple(repairs)
        except _Unfit as still:
            raise still.error(self._tool) from None

    def _compile(self) -> Callable[[Values], Values]:
        signature = self._tool.signature
        self._check = _typed(signature.fields) if signature is not None else _raw(self._tool)
        return self._check


class _Unfit(Exception):
    """Arguments do not fit; carries the first faults as (path, what) pairs: words for all could take seconds."""

    def __init__(self, faults: Iterable[tuple[str, str]], count: int = 0) -> None:
        super().__init__()
        self.count = count
        self.faults = list(dict.fromkeys(islice(faults, _LOOKED_AT)))

    def error(self, tool: Tool) -> ArgumentError:
        lines = [f"{path}: {what}" if path else what for path, what in self.faults[:_SHOWN]]
        if len(self.faults) > _SHOWN:
            lines.append(f"and {self.count - _SHOWN} more" if self.count > _SHOWN else "and more")
        properties = cast("Mapping[str, Any]", tool.parameters.get("properties") or {})
        known = ", ".join(properties) or "none"
        return ArgumentError("; ".join(lines)[:_TEXT_LIMIT], remedy=f"{tool.name} takes: {known}"[:_TEXT_LIMIT])


def _decode(arguments: str | bytes | Mapping[str, Any] | None, repairs: list[Repair]) -> Values:
    if arguments is None:
        return {}
    if isinstance(arguments, Mapping):  # a copy: what a tool does to its arguments stays its own
        return cast("Values", thawed(arguments))
    text: Any = arguments
    if not isinstance(text, (str, bytes)):
        raise ArgumentError(f"the arguments must be one JSON object, not {kind_of(text)}")
    for _ in range(2):  # some models encode the object twice
        if not text.strip():
            return {}
        try:
            value = msgspec.json.decode(text)
        except UnicodeEncodeError:
            raise ArgumentError("the arguments hold a lone surrogate, which is not text") from None
        except msgspec.DecodeError as error:
            said = str(error).removeprefix("JSON is malformed: ").rstrip(".")
            raise ArgumentError(
                f"the arguments are not valid JSON: {said[:1].lower()}{said[1:]}",
                remedy="Send one JSON object, complete and with quoted keys",
            ) from None
        if isinstance(value, dict):
            if text is not arguments:
                repairs.append(Repair("", "JSON text read as an object"))
            return cast("Values", value)
        if value is None:
            return {}
        if not isinstance(value, str):
            raise ArgumentError(f"the arguments must be one JSON object, not {kind_of(value)}")
        text = value
    raise ArgumentError("the arguments must be one JSON object, not a string")


# Typed functions ---------------------------------------------------------------------------------------------------


def _typed(fields: tuple[Parameter, ...]) -> Callable[[Values], Values]:
    from typing import NotRequired

    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic_core import to_json
    from typing_extensions import TypedDict

    plain = all(plain_schema(field.annotation) is not None for field in fields)
    members: dict[str, Any] = {}
    for field in fields:
        annotation = _strict(field.annotation) if plain else field.annotation
        members[field.name] = annotation if field.default is MISSING else NotRequired[annotation]
    arguments = TypedDict("arguments", members)  # type: ignore[misc]
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", hide_input_in_errors=True)  # type: ignore[attr-defined]
    validator = TypeAdapter(arguments).validator
    names = [field.name for field in fields]

    def check(values: Values) -> Values:
        try:
            if plain:
                return cast("Values", validator.validate_python(values))
            # Models, dates, enums, sets: only pydantic's strict JSON mode takes them from JSON and bends nothing else.
            return cast("Values", validator.validate_json(to_json(values), strict=True))
        except ValidationError as error:
            found = cast("list[dict[str, Any]]", error.errors(include_url=False))
            raise _Unfit((_pydantic_fault(item, names) for item in found), len(found)) from None

    return check


def _strict(annotation: Any) -> Any:
    """The annotation with its scalars strict, so that only repairs, which are recorded, turn "5" into 5."""
    from pydantic import Strict

    if annotation in (str, int, float, bool):
        return Annotated[annotation, Strict()]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[(_strict(arguments[0]), *arguments[1:])]
    if origin in (Union, types.UnionType):
        return Union[tuple(_strict(argument) for argument in arguments)]  # noqa: UP007 - made at run time
    if origin is not None and origin is not typing.Literal and arguments:
        try:
            return origin[tuple(argument if argument is ... else _strict(argument) for argument in arguments)]
        except TypeError:  # an origin that takes no such arguments stays as its author wrote it
            return annotation
    return annotation


_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "list_type": "an array",
    "tuple_type": "an array",
    "set_type": "an array",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "none_required": "null",
}


def _pydantic_fault(item: dict[str, Any], names: list[str]) -> tuple[str, str]:
    kind, location = cast("str", item["type"]), cast("tuple[str | int, ...]", item["loc"])
    path = _path([step for step in location if isinstance(step, int) or not _is_branch(step)])
    if kind == "missing":
        return path, "is required"
    if kind == "extra_forbidden":
        return path, "is no argument of this tool" + _nearest(str(location[-1]), names)
    if kind in _EXPECTED:
        return path, f"must be {_EXPECTED[kind]}, not {kind_of(item.get('input'))}"
    if kind in _TELLING:  # pydantic's own text holds a part of the value, which may be a secret
        return path, _TELLING[kind].format(**cast("dict[str, Any]", item.get("ctx") or {}))
    message = cast("str", item["msg"]).removeprefix("Value error, ")
    return path, message.replace("Input should", "must", 1) if message.startswith("Input should") else message


_TELLING = {
    "union_tag_invalid": "must have one of these as its {discriminator}: {expected_tags}",
    "uuid_parsing": "must be a UUID",
    "url_parsing": "must be a URL",
    "json_invalid": "must be JSON",
}


def _is_branch(step: str) -> bool:
    """Whether a step of a pydantic location names a branch of a union or a validator, not a key."""
    return (
        "[" in step or "(" in step or step in ("str", "int", "float", "bool", "none", "dict", "list", "constrained-str")
    )


# Raw schemas -------------------------------------------------------------------------------------------------------


def _raw(tool: Tool) -> Callable[[Values], Values]:
    import jsonschema_rs

    if _cost(tool.parameters, tool.parameters, {}, set()) > _COST_LIMIT:
        raise ArgumentError(
            "the tool's own schema branches too much to be checked", remedy="Its author must mend it; use another tool"
        )
    try:
        validator = jsonschema_rs.validator_for(
            dict(tool.parameters),
            offline=True,
            mask="the value",
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000),
        )
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise ArgumentError(
            f"the tool's own schema is not usable: {str(error).splitlines()[0]}",
            remedy="Its author must mend it; use another tool",
        ) from None
    properties = cast("Mapping[str, Any]", tool.parameters.get("properties") or {})
    names = list(properties)

    def check(values: Values) -> Values:
        if validator.is_valid(values):
            return cast("Values", thawed(values))  # apart from what hooks and records see
        raise _Unfit(fault for error in validator.iter_errors(values) for fault in _schema_faults(error, names))

    return check


def _cost(schema: Any, root: Mapping[str, Any], known: dict[int, int], inside: set[int]) -> int:
    """How many schemas a value may be held against: references multiply what they lead to. Cycles count once."""
    if isinstance(schema, (list, tuple)):
        return sum(_cost(item, root, known, inside) for item in cast("Sequence[Any]", schema))
    if not isinstance(schema, Mapping):
        return 0
    members = cast("Mapping[str, Any]", schema)
    key = id(members)
    if key in inside:
        return 1
    if key not in known:
        inside.add(key)
        target = _resolve(members, root)
        cost = 1 if target is members else 1 + _cost(target, root, known, inside)
        for name, inner in members.items():
            if name not in ("$defs", "definitions", "enum", "const", "default", "examples"):
                cost += _cost(inner, root, known, inside)
        inside.discard(key)
        known[key] = min(cost, _COST_LIMIT + 1)
    return known[key]


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a local reference leads to; others stay as they are."""
    for _ in range(8):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        target: Any = root
        for step in reference[2:].split("/"):
            if not isinstance(target, Mapping):
                return schema
            target = cast("Mapping[str, Any]", target).get(step.replace("~1", "/").replace("~0", "~"))
        if not isinstance(target, Mapping):
            return schema
        schema = cast("Mapping[str, Any]", target)
    return schema


def _schema_faults(error: Any, names: list[str]) -> Iterable[tuple[str, str]]:
    kind, steps = error.kind, list(error.instance_path)
    match type(kind).__name__.rpartition("_")[2]:
        case "Required":
            yield _path([*steps, str(kind.property).strip('"')]), "is required"
        case "AdditionalProperties":
            for name in kind.unexpected:
                yield _path([*steps, name]), "is no argument of this tool" + _nearest(name, names)
        case "Type":
            expected = " or ".join(_article(str(name)) for name in kind.types)
            yield _path(steps), f"must be {expected}, not {kind_of(error.instance)}"
        case _:
            yield _path(steps), str(error.message)[:200]


# Repair ------------------------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?\d{1,40}")
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{1,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")


class _Repairer:
    """Puts harmless slips right, led by the schema; what it cannot read it leaves for the validator to refuse."""

    def __init__(self, root: Mapping[str, Any], repairs: list[Repair]) -> None:
        self._root = root
        self._repairs = repairs

    def mend(self, value: Any, schema: Any, path: str, depth: int) -> Any:
        if depth > _DEPTH_LIMIT or not isinstance(schema, Mapping):
            return value
        branches = self._branches(cast("Mapping[str, Any]", schema))
        accepted = {kind for branch in branches for kind in _kinds(branch)}
        if not accepted:
            return value
        value = self._kind(value, accepted, branches, path, depth)
        fitting = [branch for branch in branches if _fits(value, set(_kinds(branch)))]
        return self._members(value, fitting[0], path, depth) if len(fitting) == 1 else value

    def _branches(self, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The alternatives of a schema, each once; beyond a number of them nothing is repaired."""
        found: dict[int, Mapping[str, Any]] = {}
        seen: set[int] = set()
        todo: list[Mapping[str, Any]] = [schema]
        while todo:
            one = _resolve(todo.pop(), self._root)
            if id(one) in seen:
                continue
            seen.add(id(one))
            if len(seen) > _BRANCH_LIMIT:
                return [{}]
            options = cast("Sequence[Any]", one.get("anyOf") or one.get("oneOf") or [])
            inner = [cast("Mapping[str, Any]", option) for option in options if isinstance(option, Mapping)]
            if inner:
                todo.extend(reversed(inner))
            else:
                found[id(one)] = one
        return list(found.values())

    def _kind(self, value: Any, accepted: set[str], branches: list[Mapping[str, Any]], path: str, depth: int) -> Any:
        if _fits(value, accepted):
            return value
        if isinstance(value, str):
            read = _read_text(value.strip(), accepted)
            if read is not MISSING:
                return self._note(read, path, f"a string read as {kind_of(read)}")
        if isinstance(value, float) and "integer" in accepted and value.is_integer():
            return self._note(int(value), path, "a whole number read as an integer")
        if isinstance(value, int) and not isinstance(value, bool) and "string" in accepted:
            return self._note(str(value), path, "an integer read as a string")
        arrays = [branch for branch in branches if "array" in _kinds(branch)]
        if len(arrays) == 1 and value is not None:
            before = len(self._repairs)
            items = arrays[0].get("items", {})
            item = self.mend(value, items, f"{path}[0]", depth + 1)
            kinds: set[str] = set()
            if items:
                kinds = {kind for branch in self._branches(items) for kind in _kinds(branch)}
            if not kinds or _fits(item, kinds):
                return self._note([item], path, "a bare value put into an array")
            del self._repairs[before:]
        return value

    def _members(self, value: Any, schema: Mapping[str, Any], path: str, depth: int) -> Any:
        if isinstance(value, list):
            items = cast("Sequence[Any]", value)
            inner = schema.get("items")
            return [self.mend(item, inner, f"{path}[{index}]", depth + 1) for index, item in enumerate(items)]
        if isinstance(value, dict):
            return self._object(cast("Values", value), schema, path, depth)
        return value

    def _object(self, value: Values, schema: Mapping[str, Any], path: str, depth: int) -> Values:
        properties = cast("Mapping[str, Any]", schema.get("properties") or {})
        required = cast("list[str]", schema.get("required") or [])
        others = schema.get("additionalProperties")
        mended: Values = {}
        for key, member in value.items():
            inner = f"{path}.{key}" if path else key
            member_schema = properties.get(key, others)
            if member is None and key in properties and key not in required and not self._takes_null(member_schema):
                self._note(None, inner, "null left out")
                continue
            mended[key] = self.mend(member, member_schema, inner, depth + 1)
        return mended

    def _takes_null(self, schema: Any) -> bool:
        if not isinstance(schema, Mapping):
            return True
        kinds = [_kinds(branch) for branch in self._branches(cast("Mapping[str, Any]", schema))]
        return any(not kind or "null" in kind for kind in kinds)

    def _note(self, value: Any, path: str, what: str) -> Any:
        self._repairs.append(Repair(path, what))
        return value


def _read_text(text: str, accepted: set[str]) -> Any:
    if "integer" in accepted and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in accepted and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return int(text) if _INTEGER.fullmatch(text) else float(text)
    if "boolean" in accepted and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if "null" in accepted and text == "null":
        return None
    if text[:1] in ("{", "[") and accepted & {"object", "array"}:
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return MISSING
        if _fits(value, accepted):
            return value
    return MISSING


def _kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    if isinstance(kind, list):
        return tuple(cast("list[str]", kind))
    if "enum" in schema or "const" in schema:
        values = cast("list[Any]", schema.get("enum", [schema.get("const")]))
        return tuple({_json_type(value) for value in values})
    return ()


def _fits(value: Any, accepted: set[str]) -> bool:
    kind = _json_type(value)
    return kind in accepted or (kind == "integer" and "number" in accepted)


# Words -------------------------------------------------------------------------------------------------------------


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    return "array" if isinstance(value, (list, tuple)) else "object"


def kind_of(value: object) -> str:
    """A value's kind in words, never the value itself: it may be a secret."""
    return _article(_json_type(value))


def _article(kind: str) -> str:
    if kind in ("null", "boolean"):
        return {"null": "null", "boolean": "true or false"}[kind]
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _path(steps: Iterable[str | int]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text[:200]


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), 1, 0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_definition(tool: Tool) -> None:
    """Compile a tool's validator, for tests and `plugin check`; raises ``DefinitionError`` where that fails."""
    try:
        Validator(tool)._compile()
    except ArgumentError as error:
        raise DefinitionError(str(error), where=f"tool {tool.name!r}") from error
