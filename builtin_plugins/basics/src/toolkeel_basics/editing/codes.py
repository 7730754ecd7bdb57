"""Encodings and digests of text."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import urllib.parse
import zlib
from typing import Literal

from toolkeel import ToolError

Algorithm = Literal["md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "crc32"]

_BLANKS = re.compile(r"\s+")
_FOREIGN = re.compile(r"[^A-Za-z0-9+/]")


def to_base64(text: str) -> str:
    """The UTF-8 bytes of the text in base64."""
    return base64.b64encode(text.encode()).decode()


def from_base64(text: str) -> str:
    """The text of base64, also of its URL-safe form, without padding, or broken into lines.

    Raises:
        ToolError: it is not base64, or its bytes are not UTF-8 text.
    """
    bare = _BLANKS.sub("", text).rstrip("=").replace("-", "+").replace("_", "/")
    foreign = _FOREIGN.search(bare)
    if foreign:
        raise ToolError(f"text is not base64: it holds {foreign.group()!r}", remedy="Pass the base64 and nothing else")
    try:
        data = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error as error:
        raise ToolError("text is not base64: its end is cut off") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        shown = data[:32].hex(" ") + (" …" if len(data) > 32 else "")
        raise ToolError(f"the base64 holds {len(data):,} bytes that are not UTF-8 text: {shown}") from error


def to_url(text: str) -> str:
    """The text for one part of a URL: everything but letters, digits and ``-._~`` in percent form."""
    return urllib.parse.quote(text, safe="")


def from_url(text: str) -> str:
    """The text of percent forms; ``+`` stays a plus.

    Raises:
        ToolError: the bytes are not UTF-8.
    """
    try:
        return urllib.parse.unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise ToolError("the percent forms are not UTF-8") from error


def digest(text: str, algorithm: Algorithm) -> str:
    """The digest of the text's UTF-8 bytes, in hexadecimal."""
    data = text.encode()
    if algorithm == "crc32":
        return f"{zlib.crc32(data):08x}"
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
