"""Cuts and turns text without tearing apart what a reader sees as one character."""

from __future__ import annotations

import itertools
import unicodedata

_JOINER = "\N{ZERO WIDTH JOINER}"
_FLAGS = range(0x1F1E6, 0x1F200)
_SKIN_TONES = range(0x1F3FB, 0x1F400)


def clusters(text: str) -> list[str]:
    """The characters as a reader sees them: with their marks, joined emoji, pairs of flag letters, CR with LF.

    The rules that matter in practice; the whole of Unicode's (Hangul of single jamo, Indic conjuncts) is not here.
    """
    if text.isascii() and "\r" not in text:
        return list(text)
    starts = [0]
    for at in range(1, len(text)):
        if not _belongs(text[at - 1], text[at], at - starts[-1]):
            starts.append(at)
    return [text[start:end] for start, end in itertools.pairwise([*starts, len(text)])] if text else []


def reversed_text(text: str) -> str:
    """The text from back to front."""
    return "".join(reversed(clusters(text)))


def truncated(text: str, width: int) -> str:
    """The first ``width`` characters; the last is an ellipsis where text was cut off, after a whole word if near."""
    pieces = clusters(text)
    if len(pieces) <= width:
        return text
    kept = pieces[: width - 1]
    near = width * 4 // 5
    blank = next((at for at in range(len(kept) - 1, near, -1) if kept[at].isspace()), None)
    if blank is not None and not pieces[width - 1].isspace():
        kept = kept[:blank]
    return "".join(kept).rstrip() + "…"


def _belongs(before: str, character: str, size: int) -> bool:
    """Whether a character goes with the one before it, which stands at the end of a cluster of this size."""
    code = ord(character)
    if unicodedata.category(character) in ("Mn", "Me", "Mc") or character == _JOINER or code in _SKIN_TONES:
        return before not in "\r\n"
    if before == _JOINER:
        return unicodedata.category(character) == "So"
    if code in _FLAGS:
        return size == 1 and ord(before) in _FLAGS
    return before == "\r" and character == "\n"
