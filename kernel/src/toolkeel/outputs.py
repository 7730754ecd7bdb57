"""What a tool call gives back: typed results, previews and what is spilled."""

from __future__ import annotations

from typing import Literal

import msgspec

FailureKind = Literal["error", "arguments", "refused", "time_limit", "cancelled"]


class Text(msgspec.Struct, frozen=True):
    """Plain text. Large text is better given as UTF-8 ``bytes`` (no second copy is made of them).

    ``media_type`` says what the text is where the tool knows (``application/json``, ``text/csv`` …); empty means that
    previews find out.
    """

    content: str | bytes
    media_type: str = ""


class Markdown(msgspec.Struct, frozen=True):
    """Text in Markdown; surfaces that show plain text get it without its marks."""

    content: str


class Data(msgspec.Struct, frozen=True):
    """A JSON value: mappings, sequences, strings, numbers, booleans, ``None``; also dates, UUIDs and decimals."""

    value: object


class Media(msgspec.Struct, frozen=True):
    """Bytes that are not text: an image, a sound, a PDF. Never spilled; the surface decides how to show it."""

    data: bytes
    media_type: str
    name: str = ""


class Failure(msgspec.Struct, frozen=True):
    """A call that did not do what was asked. ``message`` is written for the model: what happened and what to do."""

    message: str
    kind: FailureKind = "error"


class Parts(msgspec.Struct, frozen=True):
    """Several results as one answer, in this order (an image with its caption)."""

    items: tuple[Text | Markdown | Data | Media, ...]


Result = Text | Markdown | Data | Media | Failure | Parts
"""Every result that travels through the kernel. A tool may also return ``str``, ``bytes``, ``None``, any JSON value."""


class Preview(msgspec.Struct, frozen=True):
    """A readable extract of a large output.

    ``kind`` is the type found (``json``, ``jsonl``, ``html``, ``xml``, ``csv``, ``text`` or a plugin's own). ``text``
    is at most the asked number of characters. ``shown`` and ``total`` count ``unit`` (``lines``, ``items`` …);
    ``total`` is ``None`` where counting would cost too much. ``whole`` means that the preview holds everything.
    """

    kind: str
    text: str
    shown: int = 0
    total: int | None = None
    unit: str = "lines"
    whole: bool = False


class Spilled(msgspec.Struct, frozen=True):
    """A result that was stored whole: the text that the model gets in its place and the ref to read on with."""

    text: str
    ref: str
    size: int
    kind: str = "text"
