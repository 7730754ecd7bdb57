"""What a file that is no text is, by its first bytes."""

from __future__ import annotations

_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"BM", "BMP image"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"\0\0\1\0", "icon"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive, or a document made of one (docx, xlsx, jar, whl)"),
    (b"PK\x05\x06", "empty ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", "RAR archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (b"\xca\xfe\xba\xbe", "Mach-O program or Java class"),
    (b"MZ", "Windows program or library"),
    (b"\0asm", "WebAssembly module"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"PAR1", "Parquet data"),
    (b"OggS", "Ogg sound or video"),
    (b"fLaC", "FLAC sound"),
    (b"ID3", "MP3 sound"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Microsoft Office document"),
    (b"wOFF", "WOFF font"),
    (b"wOF2", "WOFF2 font"),
    (b"OTTO", "OpenType font"),
    (b"\0\1\0\0\0", "TrueType font"),
)
_RIFF = {b"WEBP": "WebP image", b"WAVE": "WAV sound", b"AVI ": "AVI video"}
_TAR_MARK_AT = 257
_ROWS = 16
_ROW = 16


def kind_of_data(start: bytes) -> str:
    """The kind of a file by its first bytes, in words; ``binary data`` where they say nothing."""
    for mark, kind in _STARTS:
        if start.startswith(mark):
            return kind
    if start[:4] == b"RIFF":
        return _RIFF.get(start[8:12], "RIFF data")
    if start[4:8] == b"ftyp":
        return "MP4 video or relative"
    if start[_TAR_MARK_AT : _TAR_MARK_AT + 5] == b"ustar":
        return "tar archive"
    return "binary data"


def hex_dump(start: bytes) -> str:
    """The first 256 bytes as rows of offset, hexadecimal and printable ASCII."""
    rows: list[str] = []
    for at in range(0, min(len(start), _ROWS * _ROW), _ROW):
        row = start[at : at + _ROW]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{at:08x}  {row.hex(' '):<{_ROW * 3}} {letters}")
    return "\n".join(rows)
