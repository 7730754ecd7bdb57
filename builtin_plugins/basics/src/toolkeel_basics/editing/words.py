"""Changes of case, and names made of words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from toolkeel_basics.texts import checked

from .normal import normalized

_MAX_SLUG = 10_000
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def titled(text: str) -> str:
    """Every word with a capital first letter; an apostrophe does not begin a word."""
    return _WORD.sub(lambda word: word.group().capitalize(), text)


def sentenced(text: str) -> str:
    """Lower case, with a capital at the start of each sentence and line."""
    pieces: list[str] = []
    begins, ended = True, False  # whether a sentence begins here; whether a mark that ends one was the last seen
    for character in text.lower():
        if character == "\n" or (ended and character.isspace()):
            begins = True
        if begins and character.isalnum():
            character = character.upper()
            begins = False
        ended = character in ".!?" or (ended and character in "\"')»”’")
        pieces.append(character)
    return "".join(pieces)


def words_of(text: str) -> list[str]:
    """The words of a name or phrase: cut at other characters, and where case shows it (``parseHTTPUrl``)."""
    words: list[str] = []
    word = ""
    for at, character in enumerate(text):
        if not character.isalnum() and not unicodedata.combining(character):
            words.append(word)
            word = ""
            continue
        after_lower = word and not word[-1].isupper() and character.isupper()
        # The last capital of a run begins a word when a small letter follows: HTTP|Url.
        ends_run = word[-1:].isupper() and character.isupper() and text[at + 1 : at + 2].islower()
        if after_lower or ends_run:
            words.append(word)
            word = ""
        word += character
    words.append(word)
    return [word for word in words if word]


def renamed(text: str, style: Callable[[list[str]], str]) -> str:
    """Each line as a name in a style."""
    return "\n".join(style(words_of(line)) for line in text.replace("\r\n", "\n").split("\n"))


def snake(words: list[str]) -> str:
    """``parse_http_url``."""
    return "_".join(words).lower()


def constant(words: list[str]) -> str:
    """``PARSE_HTTP_URL``."""
    return "_".join(words).upper()


def kebab(words: list[str]) -> str:
    """``parse-http-url``."""
    return "-".join(words).lower()


def pascal(words: list[str]) -> str:
    """``ParseHttpUrl``."""
    return "".join(word.capitalize() for word in words)


def camel(words: list[str]) -> str:
    """``parseHttpUrl``."""
    return "".join([*(word.lower() for word in words[:1]), *(word.capitalize() for word in words[1:])])


def slug(text: str) -> str:
    """The text as part of an address: small letters and digits of any script, joined by hyphens, without accents."""
    apart = normalized(checked(text, "text for a slug", _MAX_SLUG), "NFKD").casefold()
    plain = "".join(character for character in apart if not unicodedata.combining(character))
    kept = "".join(character if character.isalnum() else " " for character in plain.replace("'", "").replace("’", ""))
    return normalized("-".join(kept.split()), "NFC")
