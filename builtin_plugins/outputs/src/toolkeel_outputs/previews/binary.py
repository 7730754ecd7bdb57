"""Previews of data that is not text: what it seems to be, its size, its first bytes."""

from __future__ import annotations

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.hexdump import ROW, hex_dump
from toolkeel_outputs.texts import counted, cut_end

from .limits import Limits

_SHOWN = 256
_SIGNS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF8", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (8, b"WAVE", "WAV sound"),
    (0, b"ID3", "MP3 sound"),
    (0, b"OggS", "Ogg sound or video"),
    (4, b"ftyp", "MP4 or HEIF media"),
    (0, b"\x1aE\xdf\xa3", "Matroska or WebM video"),
    (0, b"%PDF-", "PDF document"),
    (0, b"\xd0\xcf\x11\xe0", "old Microsoft Office document"),
    (0, b"PK\x03\x04", "ZIP archive (also DOCX, XLSX, JAR)"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\x00", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\x00", "SQLite database"),
    (0, b"PAR1", "Parquet table"),
    (0, b"ARROW1", "Arrow table"),
    (0, b"\x7fELF", "ELF program"),
    (0, b"MZ", "Windows program"),
    (0, b"\x00asm", "WebAssembly module"),
    (0, b"\xff\xfe", "text in UTF-16"),
    (0, b"\xfe\xff", "text in UTF-16"),
)


def preview(content: Content, limits: Limits) -> Preview:
    """Type by its first bytes, size, and a hex dump of as many bytes as fit."""
    head = content.part(0, 512)
    name = next((name for at, sign, name in _SIGNS if head.startswith(sign, at)), "of a type that is not known")
    said = f"Not text: {name}, {counted(content.size, 'bytes')}. The first ones:"
    rows = max(1, min(_SHOWN // ROW, (limits.characters - len(said)) // 79))
    shown = min(content.size, rows * ROW)
    text = cut_end(f"{said}\n{hex_dump(head[:shown], 0)}", limits.characters)
    return Preview(kind="binary", text=text.rstrip("\n"), shown=shown, total=content.size, unit="bytes")
