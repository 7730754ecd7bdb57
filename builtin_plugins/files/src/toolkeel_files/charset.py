"""How the bytes of a file are read as text."""

from __future__ import annotations

import codecs
from typing import NamedTuple

SAMPLE = 1 << 16
"""How many bytes from the start are enough to judge a file by."""

_MARKS = (
    ("UTF-8 with byte order mark", "utf-8", codecs.BOM_UTF8),
    ("UTF-32", "utf-32-le", codecs.BOM_UTF32_LE),  # before UTF-16, whose mark begins alike
    ("UTF-32", "utf-32-be", codecs.BOM_UTF32_BE),
    ("UTF-16", "utf-16-le", codecs.BOM_UTF16_LE),
    ("UTF-16", "utf-16-be", codecs.BOM_UTF16_BE),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"


class Charset(NamedTuple):
    """A text encoding. ``name`` is for people and empty for plain UTF-8; ``mark`` is what the file begins with.

    Decoding and encoding with ``codec`` and ``errors`` gives the same bytes again.
    """

    name: str
    codec: str
    mark: bytes = b""
    errors: str = "strict"

    def decode(self, data: bytes) -> str:
        """The text of a whole file."""
        return data[len(self.mark) :].decode(self.codec, self.errors)

    def show(self, data: bytes) -> str:
        """The text of a whole file with what cannot be read marked, for showing rather than for writing back."""
        return data[len(self.mark) :].decode(self.codec, "replace")

    def encode(self, text: str) -> bytes:
        """The whole file of a text; raises ``UnicodeEncodeError`` for characters that the encoding lacks."""
        return self.mark + text.encode(self.codec, self.errors)


UTF_8 = Charset("", "utf-8")


def detect(sample: bytes, *, whole: bool) -> Charset | None:
    """The encoding of a text that begins with ``sample``; ``None`` when it is no text.

    ``whole`` says that the sample is all there is, so that a cut-off character at its end counts as a fault.
    """
    for name, codec, mark in _MARKS:
        if sample.startswith(mark):
            return Charset(name, codec, mark, "strict" if codec != "utf-8" else "surrogateescape")
    if b"\0" in sample:
        return None
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
    except UnicodeDecodeError:
        if controls * 33 > len(sample):
            return None
        return _damaged_or_latin(sample)
    return None if controls * 3 > len(sample) else UTF_8


def _damaged_or_latin(sample: bytes) -> Charset:
    """UTF-8 where most characters beyond ASCII are whole, else Latin-1, in which any byte is a character."""
    text = sample.decode("utf-8", "surrogateescape")
    faults = sum("\udc80" <= char <= "\udcff" for char in text)
    others = sum(char > "\x7f" for char in text) - faults
    if others > faults:
        return Charset("UTF-8 with damaged characters", "utf-8", errors="surrogateescape")
    return Charset("Latin-1", "latin-1")
