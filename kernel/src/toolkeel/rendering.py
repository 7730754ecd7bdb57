"""The text of a result: what a model or a person reads of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import orjson
import trio

from .outputs import Data, Failure, Markdown, Media, Parts, Result, Text
from .scope import Format

EMPTY = "(no output)"
_INLINE_NODES = 2_000
_INLINE_CHARS = 64_000
_SLICE = 1_000
_CHARS = 1_000_000
_WORD = 1 << 63
_DIGITS = 4_000
_DEPTH = 254
"""How deep orjson goes."""
_JSON = frozenset({int, float, bool, dict, list, tuple})
_SCALARS = (bool, float, type(None))


def to_result(value: object) -> Result:
    """What a tool returned as a typed result."""
    if type(value) in _JSON:
        return Data(value)
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, (Text, Data, Failure, Markdown, Media, Parts)):
        return value
    if value is None:
        return Text("")
    if isinstance(value, (bytes, bytearray)):
        return Text(bytes(value))
    return Data(value)


def render_small(result: Result) -> str:
    """The text of a result that needs no work; empty where ``render`` must be asked."""
    if isinstance(result, Text):
        content = result.content
        return content if isinstance(content, str) and len(content) <= _CHARS else ""
    if isinstance(result, Data):
        value = result.value
        kind = type(value)
        if kind is int:
            return str(value) if -_WORD < cast("int", value) < _WORD else ""
        return orjson.dumps(value).decode() if kind in _SCALARS else ""
    return str(result.message) if isinstance(result, Failure) else ""


async def render(result: Result, form: Format) -> str | bytes:
    """The text of a result: a string, or UTF-8 bytes where it is large. Large work runs in a worker thread.

    Raises:
        TypeError: a value that JSON cannot express.
    """
    if isinstance(result, Text):
        content: Any = result.content
        if isinstance(content, (bytearray, memoryview)):
            content = bytes(cast("memoryview", content))
        return content if isinstance(content, bytes) else await _text(content)
    if isinstance(result, Data):
        value = result.value
        if _small(value):
            return _dump(value, form).decode()
        return await trio.to_thread.run_sync(_dump_slices, value)
    if isinstance(result, Markdown):
        text = await _text(result.content)
        if form == "plain":
            text = text if isinstance(text, str) else text.decode()
            return plain(text) if len(text) <= _INLINE_CHARS else await trio.to_thread.run_sync(_plain_slices, text)
        return text
    if isinstance(result, Failure):
        return str(result.message)
    if isinstance(result, Media):
        name = f" {result.name}" if result.name else ""
        return f"[{result.media_type}{name}, {len(result.data):,} bytes]"
    texts = [await render(item, form) for item in result.items]
    if all(isinstance(text, str) for text in texts):
        return "\n\n".join(cast("list[str]", texts))
    return b"\n\n".join(text.encode("utf-8", "replace") if isinstance(text, str) else text for text in texts)


def to_json(value: object) -> bytes:
    """A value as compact JSON, whatever it holds that JSON can say."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # it holds something less usual
        pass
    return _dump(value, "markdown")


def media_type(result: Result) -> str:
    """What a result says that it is."""
    if isinstance(result, Text):
        return result.media_type
    if isinstance(result, Data):
        return "application/json"
    return "text/markdown" if isinstance(result, Markdown) else ""


async def _text(content: Any) -> str | bytes:
    if not isinstance(content, str):
        raise TypeError(f"a text holds a {type(content).__name__}")
    return content if len(content) <= _CHARS else await trio.to_thread.run_sync(_encode, content)


def _encode(text: str) -> bytes:
    """A long string in UTF-8, in slices so that the loop gets its turns."""
    return b"".join(text[start : start + _CHARS].encode("utf-8", "replace") for start in range(0, len(text), _CHARS))


def _small(value: object) -> bool:
    """Whether a JSON value is small enough to write on the loop. Looks at no more than a few thousand nodes."""
    nodes, chars, todo = 0, 0, [value]
    while todo:
        item = todo.pop()
        nodes += 1
        if isinstance(item, str):
            chars += len(item)
        elif isinstance(item, Mapping):
            mapping = cast("Mapping[Any, Any]", item)
            nodes += len(mapping)
            if nodes <= _INLINE_NODES:
                todo.extend(mapping.values())
        elif isinstance(item, (list, tuple)):
            items = cast("Sequence[Any]", item)
            nodes += len(items)
            if nodes <= _INLINE_NODES:
                todo.extend(items)
        if nodes > _INLINE_NODES or chars > _INLINE_CHARS:
            return False
    return True


def _dump(value: object, form: Format) -> bytes:
    options = orjson.OPT_NON_STR_KEYS | (orjson.OPT_INDENT_2 if form == "plain" else 0)
    try:
        return orjson.dumps(value, default=_plainer, option=options)
    except orjson.JSONEncodeError as error:
        if "64-bit" not in str(error) and "surrogates" not in str(error):
            raise TypeError(str(error)) from None
    import json

    text = json.dumps(_builtins(value), ensure_ascii=False, indent=2 if form == "plain" else None)
    return text.encode("utf-8", "replace")


def _builtins(value: Any) -> Any:
    """A value in JSON's own types, with what orjson refuses to write: large integers and lone surrogates."""
    if isinstance(value, int) and value.bit_length() > 3 * _DIGITS:  # Python writes no longer ones in decimals
        return hex(value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_key(key): _builtins(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_builtins(item) for item in cast("Sequence[Any]", value)]
    try:
        return _builtins(_plainer(value))
    except TypeError:
        return orjson.loads(orjson.dumps(value, default=_plainer))


def _dump_slices(value: object) -> bytes:
    """Write a large value piece by piece, so that other threads get their turns."""
    return b"".join(_pieces(value))


def _pieces(value: object, depth: int = 0) -> Iterator[bytes]:
    """A value as pieces of JSON: what is small at once, the rest in slices, halved until they are small."""
    if depth > _DEPTH:
        raise TypeError("a value that is nested too deeply, or holds itself")
    if isinstance(value, Mapping) and not _small(cast("object", value)):
        pairs = iter(cast("Mapping[Any, Any]", value).items())
        mark = b"{"
        while part := dict(islice(pairs, _SLICE)):
            yield mark
            yield from _members(part, depth + 1)
            mark = b","
        yield b"}"
    elif isinstance(value, (list, tuple)) and not _small(cast("object", value)):
        items = cast("Sequence[Any]", value)
        for start in range(0, len(items), _SLICE):
            yield b"," if start else b"["
            yield from _members(items[start : start + _SLICE], depth + 1)
        yield b"]"
    else:
        yield to_json(cast("object", value))


def _members(part: Sequence[Any] | dict[Any, Any], depth: int) -> Iterator[bytes]:
    """The members of a slice with commas between, without its brackets."""
    if _small(part):
        yield _dump(part, "markdown")[1:-1]
    elif len(part) > 1:
        half = len(part) // 2
        yield from _members(dict(islice(part.items(), half)) if isinstance(part, dict) else part[:half], depth)
        yield b","
        yield from _members(dict(islice(part.items(), half, None)) if isinstance(part, dict) else part[half:], depth)
    elif isinstance(part, dict):
        [(key, item)] = part.items()
        yield _dump(_key(key), "markdown") + b":"
        yield from _pieces(item, depth)
    else:
        yield from _pieces(part[0], depth)


def _key(key: object) -> str:
    """A mapping's key as orjson writes it."""
    if isinstance(key, str):
        return key
    return str(next(iter(orjson.loads(orjson.dumps({key: 0}, option=orjson.OPT_NON_STR_KEYS)))))


def _plainer(value: object) -> object:
    """What orjson does not know: mappings, sets, structs, pydantic models; exact decimals as text."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value), key=str)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    import decimal
    import pathlib

    import msgspec

    if isinstance(value, (decimal.Decimal, pathlib.PurePath)):
        return str(value)
    if isinstance(value, msgspec.Struct):
        return cast("object", msgspec.to_builtins(value))
    raise TypeError(type(value).__name__)


_MARKS = (
    (re.compile(r"^(#{1,6})\s+", re.MULTILINE), ""),
    (re.compile(r"^```.*$\n?", re.MULTILINE), ""),
    (re.compile(r"!?\[([^\[\]\n]{0,500})\]\(([^()\s]{0,2000})\)"), r"\1 (\2)"),
    (re.compile(r"(\*\*|__)(?=\S)([^\n*_]{0,500}\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]{0,500}\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"`([^`\n]{1,500})`"), r"\1"),
)


def _plain_slices(markdown: str) -> str:
    """Long Markdown without its marks, some lines at a time, so that the loop gets its turns."""
    parts: list[str] = []
    start = 0
    while start < len(markdown):
        end = markdown.rfind("\n", start, start + _INLINE_CHARS) + 1
        end = end if end > start else start + _INLINE_CHARS
        parts.append(plain(markdown[start:end]))
        start = end
    return "".join(parts)


def plain(markdown: str) -> str:
    """Markdown without its marks: headings, fences, emphasis, code spans; links as ``text (address)``."""
    for mark, text in _MARKS:
        markdown = mark.sub(text, markdown)
    return markdown
