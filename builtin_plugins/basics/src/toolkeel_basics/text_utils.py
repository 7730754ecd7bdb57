"""The tool ``text_utils``: exact operations on text."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Literal

from toolkeel import Data, Text, ToolError, tool

from .editing import clusters, codes, differences, extraction, lines, words
from .editing.codes import Algorithm
from .editing.normal import Form, normalized
from .texts import checked

Operation = Literal[
    "count", "upper", "lower", "title", "sentence", "snake_case", "camel_case", "pascal_case", "kebab_case",
    "constant_case", "slug", "trim", "dedupe_lines", "sort_lines", "number_lines", "reverse_lines", "reverse", "wrap",
    "truncate", "diff", "base64_encode", "base64_decode", "url_encode", "url_decode", "hash", "normalize",
    "extract_emails", "extract_urls", "extract_numbers",
]  # fmt: skip

_MAX_WIDTH = 1_000_000
_PLAIN: dict[Operation, Callable[[str], str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "title": words.titled,
    "sentence": words.sentenced,
    "snake_case": lambda text: words.renamed(text, words.snake),
    "camel_case": lambda text: words.renamed(text, words.camel),
    "pascal_case": lambda text: words.renamed(text, words.pascal),
    "kebab_case": lambda text: words.renamed(text, words.kebab),
    "constant_case": lambda text: words.renamed(text, words.constant),
    "slug": words.slug,
    "trim": lines.trimmed,
    "number_lines": lines.numbered,
    "reverse_lines": lines.backwards,
    "reverse": clusters.reversed_text,
    "base64_encode": codes.to_base64,
    "base64_decode": codes.from_base64,
    "url_encode": codes.to_url,
    "url_decode": codes.from_url,
}
_EXTRACTIONS: dict[Operation, Callable[[str], list[str]]] = {
    "extract_emails": extraction.emails,
    "extract_urls": extraction.urls,
    "extract_numbers": extraction.numbers,
}


@tool(effect="read")
def text_utils(
    operation: Operation,
    text: str,
    other: str = "",
    width: int = 80,
    algorithm: Algorithm = "sha256",
    form: Form = "NFC",
    ignore_case: bool = False,
    numeric: bool = False,
    descending: bool = False,
) -> Text | Data:
    """Count, change, sort, compare, encode or hash text exactly; use it rather than doing such work by eye.

    Counting characters, sorting lines, diffs, hashes and base64 are places where models err.

    Args:
        operation: "count": characters, words, lines and UTF-8 bytes, and how often other occurs. Case: "upper",
            "lower", "title", "sentence"; names, line by line: "snake_case", "camel_case", "pascal_case", "kebab_case",
            "constant_case"; "slug" for addresses. Lines: "trim" (blanks at line ends, empty lines around),
            "dedupe_lines" (first ones stay), "sort_lines", "number_lines", "reverse_lines", "wrap" (to width).
            "truncate" (to width characters, with …), "reverse" (characters). "diff": unified diff from text to other.
            Codes: "base64_encode", "base64_decode", "url_encode", "url_decode", "hash" (hexadecimal, of the UTF-8
            bytes), "normalize" (Unicode). "extract_emails", "extract_urls" (each once), "extract_numbers".
        text: The text to work on, at most 1,000,000 characters.
        other: For "count": the text to count in it, overlapping ones once. For "diff": the new text.
        width: For "wrap" and "truncate": the most characters.
        algorithm: For "hash".
        form: For "normalize": the Unicode normal form.
        ignore_case: For "dedupe_lines", "sort_lines" and counting other: treat A and a alike.
        numeric: For "sort_lines": by the first number in each line; lines without one come last.
        descending: For "sort_lines": the greatest first.
    """
    checked(text)
    checked(other, "other")
    if operation in _PLAIN:
        return Text(_PLAIN[operation](text))
    if operation in _EXTRACTIONS:
        found = _EXTRACTIONS[operation](text)
        return Data({"count": len(found), "found": found})
    if operation == "count":
        return Data(_counted(text, other, ignore_case))
    if operation == "dedupe_lines":
        return Text(lines.deduplicated(text, ignore_case))
    if operation == "sort_lines":
        return Text(lines.ordered(text, ignore_case, numeric, descending))
    if operation == "diff":
        return Text(differences.unified(text, other) or "The texts are equal.")
    if operation == "hash":
        return Text(codes.digest(text, algorithm))
    if operation == "normalize":
        return Text(normalized(text, form))
    if not 1 <= width <= _MAX_WIDTH:
        raise ToolError(f"width is {width:,}: it is from 1 to {_MAX_WIDTH:,} characters")
    return Text(lines.wrapped(text, width) if operation == "wrap" else clusters.truncated(text, width))


def _counted(text: str, other: str, ignore_case: bool) -> dict[str, int]:
    counts = {
        "characters": len(text),
        "characters_without_blanks": sum(not character.isspace() for character in text),
        "letters": sum(character.isalpha() or unicodedata.category(character) == "Mn" for character in text),
        "words": len(text.split()),
        "lines": len(lines.split_lines(text)[0]),
        "bytes": len(text.encode()),
    }
    if other:
        counts["occurrences"] = text.casefold().count(other.casefold()) if ignore_case else text.count(other)
    return counts
