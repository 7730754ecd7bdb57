"""The outline of a JSON text that may be cut anywhere: its first items and keys, read without decoding the rest.

Strings, numbers and the blanks between them stay spelled as the text has them: what is copied from an outline is found.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from toolkeel_outputs.texts import counted, cut_end, cut_middle

ITEMS = 5
KEYS = 40
NAMES = 50
"""Keys without a value that are named."""
DEPTH = 4
_TOKEN = re.compile(r'[ \t\r\n]*(?:([\[\]{}:,])|"([^"\\]*(?:\\.[^"\\]*)*)(\\?\Z|")|([^\s\[\]{}:,"]+))', re.DOTALL)
_GAP = re.compile(r"[ \t]{0,8}(?![ \t\r\n])")
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")
_SKIP = re.compile(r'[\[\]{},]|"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Word:
    """A string as it is spelled between its quotes. ``whole`` is false where the text ended inside it."""

    text: str
    whole: bool = True


@dataclass(slots=True)
class Items:
    """An array: its first items and how many more there are, ``None`` where the text ended before it did."""

    shown: list[Node] = field(default_factory=list["Node"])
    hidden: int | None = None
    comma: str = ", "
    pad: str = ""


@dataclass(slots=True)
class Members:
    """An object: its first members, the names of more, and whether the names are complete."""

    shown: list[tuple[str, Node]] = field(default_factory=list["tuple[str, Node]"])
    names: list[str] = field(default_factory=list[str])
    whole: bool = False
    comma: str = ", "
    colon: str = ": "
    pad: str = ""


Node = str | Word | Items | Members
"""A number or literal as it is written, a string, an array or an object."""


class Reader:
    """Reads one value from the start of a text. What is not JSON ends the reading like the end of the text."""

    def __init__(self, text: str, items: int = ITEMS) -> None:
        self._text = text
        self._items = items
        self._at = 0
        self._ended = False

    def value(self, depth: int = 0) -> Node:
        """The outline of the next value; below ``DEPTH`` levels arrays and objects stay empty."""
        sign, token = self._next()
        if sign == "[":
            return self._array(depth)
        if sign == "{":
            return self._object(depth)
        if sign:
            self._ended = True
            return "…"
        return token

    def _over(self) -> bool:
        return self._ended

    def _next(self) -> tuple[str, Node]:
        found = None if self._over() else _TOKEN.match(self._text, self._at)
        if found is None:
            self._ended = True
            return "", "…"
        self._at = found.end()
        sign, string, close, literal = found.groups()
        if string is not None:
            self._ended = close != '"'
            return "", Word(string, not self._ended)
        return sign or "", literal or ""

    def _gap(self, default: str = "") -> str:
        """The blanks that stand here, unless they break the line."""
        found = _GAP.match(self._text, self._at)
        return found[0] if found else default

    def _array(self, depth: int) -> Items:
        array = Items()
        most = self._items if depth == 0 else ITEMS
        array.pad = self._gap()
        while not self._over():
            before = self._at
            sign, _ = self._next()
            if sign == "]" and not array.shown:
                array.hidden = 0
                break
            self._at = before
            if depth >= DEPTH or len(array.shown) == most:
                array.hidden = self._skip()
                break
            item = self.value(depth + 1)
            if not (self._over() and item == "…"):
                array.shown.append(item)
            sign, _ = self._next()
            if sign == "]":
                array.hidden = 0
                break
            if len(array.shown) == 1:
                array.comma = "," + self._gap(" ")
            self._ended = self._over() or sign != ","
        return array

    def _object(self, depth: int) -> Members:
        members = Members()
        most = max(KEYS, self._items) if depth == 0 else KEYS
        members.pad = self._gap()
        while not self._over():
            sign, key = self._next()
            if sign == "}" and not members.shown:
                members.whole = True
                break
            before = self._gap()
            if not isinstance(key, Word) or not key.whole or self._next()[0] != ":":
                self._ended = True
                break
            if not members.shown:
                members.colon = f"{before}:{self._gap(' ')}"
            if depth >= DEPTH or len(members.shown) == most:
                members.names.append(key.text)
                self._skip_value()
            else:
                members.shown.append((key.text, self.value(depth + 1)))
            sign, _ = self._next()
            if sign == "}":
                members.whole = True
                break
            if len(members.shown) == 1:
                members.comma = "," + self._gap(" ")
            self._ended = self._over() or sign != ","
        return members

    def _skip(self) -> int | None:
        """Go behind the end of the container that is being read; how many items that passes, if it ends at all."""
        depth, items = 0, 1
        for found in _SKIP.finditer(self._text, self._at):
            sign = found[0]
            if sign in ("[", "{"):
                depth += 1
            elif sign == ",":
                items += depth == 0
            elif sign in ("]", "}"):
                if depth == 0:
                    self._at = found.end()
                    return items
                depth -= 1
        self._ended = True
        return None

    def _skip_value(self) -> None:
        sign, _ = self._next()
        if sign in ("[", "{"):
            self._skip()
        elif sign:
            self._ended = True


def complete(node: Node) -> int:
    """How many strings, numbers and literals of an outline are whole and JSON, keys included."""
    if isinstance(node, Word):
        return int(node.whole)
    if isinstance(node, str):
        return int(_LITERAL.fullmatch(node) is not None)
    if isinstance(node, Items):
        return sum(map(complete, node.shown))
    return sum(1 + complete(value) for _, value in node.shown)


# Writing -----------------------------------------------------------------------------------------------------------

WIDTH = 110


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is written: characters of a string, items of an inner array, keys of an object."""

    string: int
    items: int
    keys: int


DETAILS = (Detail(240, 4, 40), Detail(120, 3, 25), Detail(60, 2, 15), Detail(30, 1, 8), Detail(16, 1, 4))


def written(node: Node, detail: Detail, indent: str = "", width: int = WIDTH) -> str:
    """A node as shortened JSON: on one line where that has ``width`` characters, else one line for each part."""
    if isinstance(node, str):
        return cut_middle(node, detail.string)
    if isinstance(node, Word):
        return quoted(
            cut_middle(node.text, detail.string) if node.whole else cut_end(node.text, detail.string - 1) + "…"
        )
    inner = indent + "  "
    parts = _items(node, detail, inner, width) if isinstance(node, Items) else _members(node, detail, inner, width)
    opening, closing = "[]" if isinstance(node, Items) else "{}"
    pad = node.pad if parts else ""
    line = opening + pad + node.comma.join(parts) + pad + closing
    if len(indent) + len(line) <= width and "\n" not in line:
        return line
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{closing}"


def _items(node: Items, detail: Detail, indent: str, width: int) -> list[str]:
    shown = node.shown[: detail.items]
    parts = [written(item, detail, indent, width) for item in shown]
    if node.hidden is None:
        return [*parts, "… more"]
    hidden = node.hidden + len(node.shown) - len(shown)
    return [*parts, f"… {counted(hidden, 'more items' if shown else 'items')}"] if hidden else parts


def _members(node: Members, detail: Detail, indent: str, width: int) -> list[str]:
    shown = node.shown[: detail.keys]
    parts = [f"{_key(name)}{node.colon}{written(value, detail, indent, width)}" for name, value in shown]
    names = [name for name, _ in node.shown[detail.keys :]] + node.names
    if names:
        count = counted(len(names), "more keys" if shown else "keys")
        listed = cut_end(", ".join(_key(name) for name in names[:NAMES]), 4 * detail.string)
        parts.append(f"… {count}: {listed}" if node.whole else f"… at least {count}: {listed}")
    elif not node.whole:
        parts.append("… more")
    return parts


def _key(name: str) -> str:
    return quoted(cut_middle(name, 80))


def quoted(spelled: str) -> str:
    """A string in quotes again; of what is no JSON, also control characters are kept from breaking the line."""
    return '"' + _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], spelled) + '"'
