"""Bytes that are not text, as rows that can be read."""

from __future__ import annotations

ROW = 16
"""Bytes in a row."""
ROW_TEXT = 80
"""Characters that a row takes, or fewer."""


def hex_dump(data: bytes, offset: int) -> str:
    """Rows of 16 bytes: offset, hex, and what of it is ASCII."""
    rows: list[str] = []
    for at in range(0, len(data), ROW):
        row = data[at : at + ROW]
        signs = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{offset + at:08x}  {row.hex(' '):<47}  |{signs}|\n")
    return "".join(rows)
