"""Previews of JSON: the first items or keys with shortened values, and how many there are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import msgspec

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.texts import cut_end

from . import plain
from .limits import Limits
from .outline import DETAILS, ITEMS, NAMES, Items, Members, Node, Reader, complete, written

WHOLE = 16 * 1024 * 1024
"""Bytes up to which JSON is validated and its items are counted."""
PARTS = 600_000
"""Commas up to which it is: it takes one C call that no thread interrupts, of some 40 ms at so many."""
_START = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_SOON_OVER = re.compile(r"trailing characters \(byte \d{1,3}\)")
"""What stands for lines that begin like JSON, as in ``[12] started``: no JSON that broke."""
_SEVERAL = 3
"""Whole values that show that a text is JSON that broke, rather than prose or a log that begins with a bracket."""


def preview(content: Content, limits: Limits, *, declared: bool = False) -> Preview:
    """First items or keys. Up to ``WHOLE`` bytes of what is not valid JSON are shown as text.

    The text says so where the tool ``declared`` JSON, or several values of it can be read.
    """
    start = 3 if content.part(0, 3) == _BOM else 0
    if content.size > WHOLE:
        return _of_start(content, start, limits, f"Over {WHOLE >> 20} MiB only the start of JSON is read.")
    if content.count(b",", 0, content.size) > PARTS:
        return _of_start(content, start, limits, f"With over {PARTS:,} commas only the start of JSON is read.")
    try:
        return _of_whole(content, start, limits)
    except msgspec.DecodeError as error:
        said = str(error).removeprefix("JSON is malformed: ")
        broken = declared or (not _SOON_OVER.match(said) and complete(_outline(content, start)) >= _SEVERAL)
        note = "" if not broken else f"Looks like JSON but is not valid ({said}); shown as text."
        return plain.preview(content, limits, note)
    except RecursionError:
        return _of_start(content, start, limits, "Nested too deeply to be checked.")


def fitted(write: Callable[[int], str], limit: int) -> str:
    """The text of the most detailed level that fits; the last one is cut."""
    text = ""
    for level in range(len(DETAILS)):
        text = write(level)
        if len(text) <= limit:
            return text
    return cut_end(text, limit)


def _of_whole(content: Content, start: int, limits: Limits) -> Preview:
    body = content.view(start, content.size)
    first = bytes(body[:64]).lstrip()[:1]
    if first == b"[":
        raws = msgspec.json.decode(body, type=list[msgspec.Raw])
        return _array([_node(raw) for raw in raws[: limits.items]], len(raws), limits)
    if first != b"{":
        msgspec.json.decode(body, type=msgspec.Raw)
        return _of_start(content, start, limits, "")
    members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    ascii_only = content.part(start, start + _START).isascii()
    names = list(members)
    named = limits.items + NAMES  # of the others only the number is told
    names[:named] = [json.dumps(name, ensure_ascii=ascii_only)[1:-1] for name in names[:named]]
    shown = [(name, _counted(raw)) for name, raw in zip(names, list(members.values())[: limits.items], strict=False)]
    node = Members(shown, names[limits.items :], whole=True)
    spelled = _outline(content, start)
    if isinstance(spelled, Members):
        node.pad, node.colon, node.comma = spelled.pad, spelled.colon, spelled.comma
    return _object(node, len(members), limits)


def _outline(content: Content, start: int, items: int = ITEMS) -> Node:
    return Reader(content.text(start, start + _START), items).value()


def _of_start(content: Content, start: int, limits: Limits, note: str) -> Preview:
    node = _outline(content, start, limits.items)
    room = msgspec.structs.replace(limits, characters=limits.characters - len(note) - 1) if note else limits
    if isinstance(node, Items):
        total = None if node.hidden is None else len(node.shown) + node.hidden
        found = _array(node.shown[: limits.items], total, room)
    elif isinstance(node, Members):
        shown, rest = node.shown[: limits.items], [name for name, _ in node.shown[limits.items :]] + node.names
        total = len(shown) + len(rest) if node.whole else None
        found = _object(Members(shown, rest, node.whole), total, room)
    else:
        text = fitted(lambda level: written(node, DETAILS[level]), room.characters)
        found = Preview(kind="json", text=text, shown=1, total=1, unit="values")
    return msgspec.structs.replace(found, text=f"{note}\n{found.text}") if note else found


def _array(nodes: Sequence[Node], total: int | None, limits: Limits) -> Preview:
    hidden = None if total is None else total - len(nodes)
    array = Items(list(nodes), hidden)

    def write(level: int) -> str:
        parts = [written(node, DETAILS[level], "  ") for node in array.shown]
        if hidden:
            parts.append(f"… {hidden:,} more")
        elif hidden is None:
            parts.append("… more")
        return "[\n  " + ",\n  ".join(parts) + "\n]" if parts else "[]"

    return Preview(kind="json", text=fitted(write, limits.characters), shown=len(nodes), total=total, unit="items")


def _object(node: Members, total: int | None, limits: Limits) -> Preview:
    text = fitted(lambda level: written(node, DETAILS[level]), limits.characters)
    return Preview(kind="json", text=text, shown=len(node.shown), total=total, unit="keys")


def _node(raw: msgspec.Raw) -> Node:
    return Reader(str(memoryview(raw)[:_START], "utf-8", "replace")).value(1)


def _counted(raw: msgspec.Raw) -> Node:
    """A member's value; of an array, also how many items it has."""
    node = _node(raw)
    if isinstance(node, Items) and node.hidden is None:
        node.hidden = len(msgspec.json.decode(raw, type=list[msgspec.Raw])) - len(node.shown)
    return node
