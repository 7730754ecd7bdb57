"""JMESPath by the jmespath library, with its errors explained and the work of a query bounded."""

from __future__ import annotations

import difflib
import math
from typing import Any, cast

from jmespath import exceptions, parser  # type: ignore[import-untyped]
from jmespath.functions import Functions  # type: ignore[import-untyped]
from jmespath.visitor import Options, TreeInterpreter  # type: ignore[import-untyped]

from toolkeel import ToolError

MAX_QUERY = 10_000
MAX_WORK = 1_000_000
"""Steps of one query, each some microsecond or less: a visit of a part of the query, ten items of a list that a step
gives, two more for calling a function, 16 characters of a text, a value that is compared."""
MAX_DEPTH = 200
_CHARACTERS = 16
_ITEMS = 10
_SORTED = 2
_DEEP = "the query or the data nests too deeply"
_EARLY = "the query is not complete: it ends too early"
_JSON_TYPES = {
    "bool": "boolean",
    "dict": "object",
    "float": "number",
    "int": "number",
    "list": "array",
    "NoneType": "null",
    "str": "string",
}


def search(query: str, data: object) -> object:
    """The result of a JMESPath query on a JSON value.

    A result that repeats parts of the data holds them once in memory; ``measured`` tells what it would be written out.

    Raises:
        ToolError: the query is not valid (with the column), does not fit the data, or takes too much work.
    """
    if len(query) > MAX_QUERY:
        raise ToolError(f"the query is too long: {len(query):,} characters, and the limit is {MAX_QUERY:,}")
    budget = Budget(MAX_WORK)
    try:
        return _Interpreter(budget).visit(_parsed(query), data)
    except exceptions.JMESPathTypeError as error:
        raise _wrong_type(error) from error
    except exceptions.ArityError as error:
        raise ToolError(str(error), where="query") from error
    except exceptions.UnknownFunctionError as error:
        raise _unknown_function(str(error)) from error
    except RecursionError as error:
        raise ToolError(_DEEP, where="query") from error
    except TypeError as error:
        raise ToolError(
            "the query compares values of different types",
            where="query",
            remedy="Convert them with to_number or to_string, or filter by type(@) == 'number' first",
        ) from error
    except (ArithmeticError, ValueError, AttributeError, LookupError) as error:
        raise ToolError(f"the query does not fit the data: {error}", where="query") from error


def measured(value: object, what: str, limit: int) -> int:
    """How many values and characters a JSON value has, written out; a key counts as a value.

    Raises:
        ToolError: over the limit, nested deeper than ``MAX_DEPTH``, or not JSON (such as a number that is not finite).
    """
    budget = Budget(limit, f"{what} is too large: it has over {limit:,} values and characters")
    _measure(value, budget, what)
    return limit - budget.left


class Budget:
    """An amount of work that runs out."""

    def __init__(self, amount: int, what: str = f"the query takes too much work: over {MAX_WORK:,} steps") -> None:
        self.left = amount
        self._what = what

    def pay(self, amount: int) -> None:
        """Take an amount; an error when there is not enough left."""
        self.left -= amount
        if self.left < 0:
            raise ToolError(self._what, remedy="Select less: filter first, take a slice, or work on a part of the data")


def _measure(value: object, budget: Budget, what: str, unit: int = 1) -> None:
    """Pay for every value in a tree. Shared parts are paid for each time they occur, as work on them would be done."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[object] = []
        for item in level:
            kind = type(item)
            if kind is str:
                budget.pay(1 + len(cast("str", item)) // unit)
            elif kind is dict:
                members = cast("dict[object, object]", item)
                keys = [len(key) for key in members if isinstance(key, str)]
                if len(keys) < len(members):
                    raise ToolError(f"{what} holds an object with a key that is not text")
                budget.pay(1 + len(keys) + sum(keys) // unit)
                below.extend(members.values())
            elif kind is list:
                items = cast("list[object]", item)
                budget.pay(1 + len(items))
                below.extend(items)
            elif kind is float and not math.isfinite(cast("float", item)):
                raise ToolError(f"{what} holds a number that JSON cannot express", remedy="Numbers go up to 1.7e308")
            elif item is None or kind in (bool, int, float):
                budget.pay(1)
            else:
                raise ToolError(f"{what} holds a value that is not JSON (its type is {kind.__name__})")
        if not below:
            return
        level = below
    raise ToolError(f"{what} nests too deeply: the limit is {MAX_DEPTH} levels", remedy="Work on a part of it")


class _Functions(Functions):  # type: ignore[misc]
    """The functions of JMESPath; those whose work the sizes of their arguments do not bound pay for it first."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def call_function(self, function_name: Any, resolved_args: Any) -> Any:
        self._budget.pay(2)
        if function_name in ("contains", "to_string"):
            for argument in resolved_args:
                _measure(argument, self._budget, "an argument", _CHARACTERS)
        elif function_name == "join" and len(resolved_args) == 2:
            separator, items = resolved_args
            if isinstance(separator, str) and isinstance(items, list):
                pieces = cast("list[object]", items)
                self._budget.pay(len(separator) * len(pieces) // _CHARACTERS)
        elif function_name in ("sort", "sort_by") and resolved_args and isinstance(resolved_args[0], list):
            self._budget.pay(len(cast("list[object]", resolved_args[0])) // _SORTED)
        return super().call_function(function_name, resolved_args)


class _Interpreter(TreeInterpreter):  # type: ignore[misc]
    """The library's interpreter; every step pays for itself and for the size of what it gives."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(Options(custom_functions=_Functions(budget)))
        self._budget = budget

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> object:
        result: object = super().visit(node, *args, **kwargs)
        kind = type(result)
        if kind is list or kind is dict:
            self._budget.pay(1 + len(cast("list[object] | dict[str, object]", result)) // _ITEMS)
        elif kind is str:
            self._budget.pay(1 + len(cast("str", result)) // _CHARACTERS)
        else:
            self._budget.pay(1)
        return result

    def visit_comparator(self, node: Any, value: Any) -> Any:
        if node["value"] not in ("eq", "ne"):
            return super().visit_comparator(node, value)
        left, right = (self.visit(child, value) for child in node["children"])
        # Comparing two values walks through both, as often as a part is repeated in them.
        for side in (left, right):
            _measure(side, self._budget, "a compared value", _CHARACTERS)
        return self.COMPARATOR_FUNC[node["value"]](left, right)


def _parsed(query: str) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", parser.Parser().parse(query).parsed)
    except exceptions.EmptyExpressionError as error:
        raise ToolError("the query is empty", remedy="@ gives the whole data") from error
    except exceptions.IncompleteExpressionError as error:
        raise ToolError(_EARLY, where=_column(len(query))) from error
    except exceptions.LexerError as error:
        raise ToolError(str(error.message), where=_column(error.lexer_position), remedy=_spelling(query)) from error
    except exceptions.ArityError as error:
        raise ToolError(str(error), where="query") from error
    except exceptions.ParseError as error:
        kind, text = str(error.token_type), str(error.token_value)
        what = _EARLY if kind == "EOF" else f"{text[:60]!r} does not belong here"
        remedy = "A number is written in backticks: `1`" if kind == "NUMBER" else _spelling(query)
        raise ToolError(what, where=_column(error.lex_position), remedy=remedy) from error
    except RecursionError as error:
        raise ToolError(_DEEP, where="query") from error
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ToolError("the query is not valid JMESPath", where=_column(len(query))) from error


def _column(position: int) -> str:
    return f"query, column {position + 1}"


def _spelling(query: str) -> str:
    if query.lstrip().startswith("$"):
        return "This is JMESPath, not JSONPath: leave out the $"
    return "Text is written 'like this', other JSON `like this`, and a name with special characters \"like-this\""


def _wrong_type(error: Any) -> ToolError:
    value = repr(error.current_value)
    shown = value if len(value) <= 60 else f"{value[:60]}…"
    expected = " or ".join(error.expected_types)
    actual = _JSON_TYPES.get(error.actual_type, error.actual_type)
    return ToolError(
        f"{error.function_name}() takes {expected} and got {actual}: {shown}",
        where="query",
        remedy="Convert it (to_number, to_string, not_null) or filter it out first",
    )


def _unknown_function(message: str) -> ToolError:
    name = message.removeprefix("Unknown function: ").removesuffix("()")[:40]
    known = sorted(cast("dict[str, object]", Functions.FUNCTION_TABLE))
    near = difflib.get_close_matches(name, known, 3)
    return ToolError(
        f"there is no function {name}()",
        where="query",
        remedy=f"Did you mean {', '.join(near)}?" if near else f"Known are {', '.join(known)}",
    )
