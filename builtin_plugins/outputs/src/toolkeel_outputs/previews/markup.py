"""Previews of XML: the root element and the first lines."""

from __future__ import annotations

import re
from contextlib import suppress
from xml.parsers import expat

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.texts import cut_end, cut_middle

from . import plain
from .limits import Limits

_START = 64 * 1024
_BETWEEN_TAGS = re.compile(r">\s*<")


def preview(content: Content, limits: Limits) -> Preview:
    """The root element, then the first lines. A document with hardly any line breaks is broken at its tags."""
    head = content.text(0, _START)
    root = _root(head)
    said = f"Root element: {root}" if root else "No root element was found at the start."
    if content.newlines(0, _START) < limits.xml_lines < len(_BETWEEN_TAGS.findall(head)):
        return _broken_at_tags(content, head, limits, said)
    return plain.first_lines(content, "xml", limits.xml_lines, limits.characters, note=said)


def _broken_at_tags(content: Content, head: str, limits: Limits, said: str) -> Preview:
    lines = _BETWEEN_TAGS.sub(">\n<", head).split("\n")[: limits.xml_lines]
    used = sum(len(line) for line in lines)
    said += "\nThe start, broken at tags (the document has few line breaks):"
    width = max(40, (limits.characters - len(said)) // limits.xml_lines - 1)
    text = cut_end("\n".join([said, *(cut_middle(line, width) for line in lines)]), limits.characters)
    return Preview(kind="xml", text=text, shown=min(used, content.size), total=content.size, unit="bytes")


class _Found(Exception):
    pass


def _root(head: str) -> str:
    """The root element's start tag, from the tag or from the document type; entities are never expanded."""
    root = ""

    def element(name: str, attributes: dict[str, str]) -> None:
        nonlocal root
        written = "".join(f' {key}="{cut_end(value, 80)}"' for key, value in attributes.items())
        root = f"<{name}{written}>"
        raise _Found

    def doctype(name: str, system: str | None, public: str | None, internal: bool) -> None:
        nonlocal root
        del system, public
        root = f"<{name}>"
        if internal:
            raise _Found

    parser = expat.ParserCreate(encoding="utf-8")
    parser.StartElementHandler = element
    parser.StartDoctypeDeclHandler = doctype
    with suppress(_Found, expat.ExpatError):
        parser.Parse(head.removeprefix("\ufeff").lstrip().encode("utf-8", "replace"), False)
    return cut_middle(root, 400)
