"""Readable previews of large outputs, one module for each type."""

from __future__ import annotations

from collections.abc import Callable

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.detect import Kind, detect, says_json

from . import binary, json_lines, json_value, markup, page, plain, table
from .limits import Limits

__all__ = ["Limits", "make_preview"]

_MAKERS: dict[Kind, Callable[[Content, Limits], Preview]] = {
    "jsonl": json_lines.preview,
    "html": page.preview,
    "xml": markup.preview,
    "csv": table.preview,
    "text": plain.preview,
    "binary": binary.preview,
}


def make_preview(content: Content, media_type: str, limits: Limits) -> Preview:
    """The preview of an output by its type. What fits whole is shown as it is."""
    kind = detect(content, media_type)
    if kind != "binary" and content.size <= 4 * limits.characters:
        try:
            text = str(content.view(0, content.size), "utf-8")
        except UnicodeDecodeError:
            text = None
        if text is not None and len(text) <= limits.characters:
            return Preview(kind=kind, text=text, whole=True)
    if kind == "json":
        return json_value.preview(content, limits, declared=says_json(media_type))
    return _MAKERS[kind](content, limits)
