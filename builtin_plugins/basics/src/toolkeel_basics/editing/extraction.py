"""Finds mail addresses, web addresses and numbers in text, in linear time."""

from __future__ import annotations

import functools
import unicodedata

from toolkeel_basics.linear_regex import Pattern, compile_pattern

_LABEL = r"[^\s@.,;:<>()\[\]{}\"'`/\\|=!?#&]"
_EMAIL = rf"([^\s@,;:<>()\[\]{{}}\"'`/\\|=]+@(?:{_LABEL}+\.)+{_LABEL}{{2,}})"
_URL = r"(?i)((?:https?://|ftp://|www\.)[^\s<>\"`{}|\\^]+)"
_NUMBER = r"(?:^|[^\w.])([-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+\b|[0-9]+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+\b)?|[-+]?\.[0-9]+)"
_KEPT = "/-_=&#%@+*~"
_PAIRS = {")": "(", "]": "[", "»": "«", "”": "“", "’": "‘"}


def emails(text: str) -> list[str]:
    """Mail addresses, each once."""
    return list(dict.fromkeys(_without_punctuation(found) for found in _found(_EMAIL, text)))


def urls(text: str) -> list[str]:
    """Web addresses (http, https, ftp, or beginning with ``www.``), each once, without punctuation behind them."""
    return list(dict.fromkeys(_without_punctuation(found) for found in _found(_URL, text)))


def numbers(text: str) -> list[str]:
    """Numbers as they are written: with sign, thousands commas, decimals and exponent."""
    return _found(_NUMBER, text)


def _found(pattern: str, text: str) -> list[str]:
    return [match.group(1) or "" for match in _compiled(pattern).matches(text)]


@functools.cache
def _compiled(pattern: str) -> Pattern:
    return compile_pattern(pattern, trusted=True)


def _without_punctuation(found: str) -> str:
    """What is left when the sentence's punctuation is taken off the end; a bracket that was opened inside stays."""
    end = len(found)
    counts = {mark: found.count(mark) for pair in _PAIRS.items() for mark in pair}
    while end:
        last = found[end - 1]
        if last in _KEPT or not unicodedata.category(last).startswith("P"):
            break
        opening = _PAIRS.get(last)
        if opening and counts[opening] >= counts[last]:
            break
        if last in counts:
            counts[last] -= 1
        end -= 1
    return found[:end]
