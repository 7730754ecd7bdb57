"""What an output is, found by what the tool said and by its first bytes."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from .content import Content
from .delimited import delimiter_of

Kind = Literal["json", "jsonl", "html", "xml", "csv", "text", "binary"]

SNIFF = 64 * 1024
"""Bytes that are looked at."""

_MEDIA_TYPES: dict[str, Kind] = {
    "json": "json",
    "jsonl": "jsonl",
    "html": "html",
    "xml": "xml",
    "csv": "csv",
    "text": "text",
    "application/json": "json",
    "application/jsonl": "jsonl",
    "application/x-jsonl": "jsonl",
    "application/jsonlines": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/ndjson": "jsonl",
    "application/xhtml+xml": "html",
    "application/xml": "xml",
    "text/html": "html",
    "text/xml": "xml",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
}
_BOM = b"\xef\xbb\xbf"
_HTML_START = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|link|script|style|div|span|p|h[1-6]|a|b|i|ul|ol|li|table|tr|td|th|"
    rb"section|article|main|header|footer|nav|form|img|br|hr|pre|blockquote|iframe)(?=[\s/>])",
    re.IGNORECASE,
)
_HTML_ROOT = re.compile(rb"<(?:!doctype\s+html|html)(?=[\s>])", re.IGNORECASE)
_XML_ROOT = re.compile(rb"<(?:!DOCTYPE\s+[A-Za-z_]|[A-Za-z_][\w.\-]*(?::[\w.\-]+)?(?:\s+[\w.:\-]+\s*=\s*[\"']|\s*/?>))")
_COMMENTS = re.compile(rb"\s*(?:<!--.*?-->\s*|<\?xml[^>]*\?>\s*)+", re.DOTALL | re.IGNORECASE)
_USUAL_CONTROLS = frozenset(b"\t\n\r\f\b\x1b")


def detect(content: Content, media_type: str = "") -> Kind:
    """The kind of an output. A media type that says one is believed, unless the data is binary.

    ``text/plain`` says nothing: it is what servers say of anything. JSON and JSON lines are told apart by the data,
    since tools label one as the other. Whether the whole is valid is for the preview to find out.
    """
    head = content.part(0, SNIFF)
    if is_binary(head):
        return "binary"
    said = _said(media_type)
    if said in ("json", "jsonl"):
        return "jsonl" if is_json_lines(content) else said
    if said:
        return said
    body = head.removeprefix(_BOM).lstrip()
    if body[:1] in (b"{", b"[") and looks_like_json(body):
        return "jsonl" if is_json_lines(content) else "json"
    if body[:1] == b"<" and (found := _markup(body)):
        return found
    return "csv" if delimiter_of(str(head, "utf-8", "replace"), cut=content.size > SNIFF) else "text"


def says_json(media_type: str) -> bool:
    """Whether a media type declares JSON."""
    return _said(media_type) == "json"


def is_binary(head: bytes) -> bool:
    """Whether the first bytes are no text: a NUL, or many control characters and bytes that are not UTF-8.

    Up to three of ten, it may be text in an old encoding.
    """
    if not head:
        return False
    if b"\x00" in head or head.startswith((b"\xff\xfe", b"\xfe\xff", b"%PDF-")):
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    broken = str(head, "utf-8", "replace").count("\ufffd")
    return (controls + broken) * 10 > 3 * len(head)


_CONTROLS = bytes(byte for byte in (*range(32), 127) if byte not in _USUAL_CONTROLS)


def looks_like_json(body: bytes) -> bool:
    """Whether text that begins with ``{`` or ``[`` goes on as JSON does (a log line in brackets does not)."""
    return _JSON_START.match(body) is not None


_JSON_START = re.compile(rb"\{\s*(?:\"|\}|\Z)|\[\s*(?:[\[{\]\"\-0-9]|true|false|null|\Z)")


def is_json_lines(content: Content) -> bool:
    """Whether the first two lines that are not blank are a whole JSON object or array each."""
    found = 0
    position = len(_BOM) if content.part(0, 3) == _BOM else 0
    while found < 2 and position < content.size:
        end = content.newline_after(position, position + _LINE_LIMIT)
        if end == position + _LINE_LIMIT:
            return False
        line = content.view(position, end)
        if start := bytes(line[:64]).strip():
            if start[:1] not in (b"{", b"["):
                return False
            try:
                msgspec.json.decode(line, type=msgspec.Raw)
            except (msgspec.DecodeError, RecursionError):
                return False
            found += 1
        position = end + 1
    return found == 2


_LINE_LIMIT = 4 * 1024 * 1024


def _said(media_type: str) -> Kind | None:
    name = media_type.partition(";")[0].strip().lower()
    if name == "text/plain":
        return None
    if name in _MEDIA_TYPES:
        return _MEDIA_TYPES[name]
    if name.endswith("+json"):
        return "json"
    if name.endswith("+xml"):
        return "xml"
    return "text" if name.startswith("text/") else None


def _markup(body: bytes) -> Kind | None:
    leading = _COMMENTS.match(body)
    rest = body[leading.end() :] if leading else body
    if _HTML_ROOT.match(rest):
        return "html"
    if body[:5].lower() == b"<?xml":
        return "xml"
    if _HTML_START.match(rest):
        return "html"
    return "xml" if _XML_ROOT.match(rest) else None
