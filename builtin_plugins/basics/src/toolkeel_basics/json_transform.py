"""The tool ``json_transform``: a JMESPath query on JSON."""

from __future__ import annotations

import json
import re
from typing import NoReturn, cast

from toolkeel import Data, Parts, Text, ToolError, tool

from .bounded_jmespath import measured, search
from .texts import checked

MAX_SIZE = 2_000_000
"""Characters of a JSON text; values and characters of a JSON value and of a result."""
_MAX_KEYS = 20
_QUOTED_TEXT = re.compile(r"[=<>]\s*\"")


@tool(effect="read")
def json_transform(data: object, query: str) -> Data | Parts:
    """Select, filter, reshape, sort and aggregate JSON by a JMESPath query; answers JSON.

    Use it rather than reading values out of JSON by eye: to pick fields, filter lists, count, sum, sort, regroup.
    Numbers compare exactly as JSON has them. A query that finds nothing gives null.

    Args:
        data: The JSON: a value (object, array …), JSON text, or JSON Lines (one value on each line, taken as an array).
            At most 2,000,000 characters.
        query: A JMESPath expression, such as "orders[?total > `100` && status == 'open'].{id: id, sum: total}",
            "length(items)", "sort_by(people, &age)[-1].name", "sum(orders[].total)", "[*].[id, name]" or
            "people[?contains(tags, 'x')] | [0]". Text in quotes '…', numbers and other JSON in backticks `…`, names
            with special characters in "…". @ is the current value.
    """
    checked(query, "query")
    value = _parsed(data) if isinstance(data, str) else data
    measured(value, "data", MAX_SIZE)
    result = search(query, value)
    measured(result, "the result", MAX_SIZE)
    if result is None or (result == [] and _QUOTED_TEXT.search(query)):
        return Parts((Data(result), Text(f"(the query found nothing; {_hint(query, value)})")))
    return Data(result)


def _parsed(text: str) -> object:
    checked(text, "data", MAX_SIZE)
    try:
        return cast("object", json.loads(text, parse_constant=_no_constant))
    except json.JSONDecodeError as error:
        lines = _json_lines(text) if error.msg == "Extra data" else None
        if lines is not None:
            return lines
        raise ToolError(
            f"data is not valid JSON: {error.msg}",
            where=f"data, line {error.lineno}, column {error.colno}",
            remedy="Pass a JSON value or JSON text, whole and unshortened",
        ) from error
    except RecursionError as error:
        raise ToolError("data nests too deeply", remedy="Work on a part of it") from error
    except ValueError as error:
        raise ToolError("data holds NaN, Infinity or an integer of thousands of digits", where="data") from error


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _json_lines(text: str) -> list[object] | None:
    """The values of JSON Lines; ``None`` where the text is not of that form."""
    decode = json.JSONDecoder(parse_constant=_no_constant).decode  # one for all lines: it costs more than a line
    try:
        # Cut at newlines alone: the other breaks of Unicode may stand inside JSON strings.
        return [decode(line) for line in text.split("\n") if line and not line.isspace()]
    except (ValueError, RecursionError):
        return None


def _hint(query: str, value: object) -> str:
    """What a model whose query missed should know: how text is quoted, or what the data looks like at its top."""
    if _QUOTED_TEXT.search(query):
        return "in JMESPath \"…\" is a name; text is written '…'"
    if isinstance(value, dict):
        return f"the data is an object with the keys {_keys(cast('dict[str, object]', value))}"
    if isinstance(value, list):
        items = cast("list[object]", value)
        first = items[0] if items else None
        keys = f"; the first has the keys {_keys(cast('dict[str, object]', first))}" if isinstance(first, dict) else ""
        return f"the data is an array of {len(items):,} items{keys}"
    return f"the data is {'null' if value is None else 'a single value'}"


def _keys(value: dict[str, object]) -> str:
    names = ", ".join(json.dumps(name[:80], ensure_ascii=False) for name in list(value)[:_MAX_KEYS])
    return f"{names} and {len(value) - _MAX_KEYS:,} more" if len(value) > _MAX_KEYS else names
