"""The text that a model gets in place of a large result."""

from __future__ import annotations

from toolkeel import Preview

from .answers import FOOTER, read_call
from .store import Output
from .texts import counted, cut_end, duration

CHARACTERS_COUNTED = 1024 * 1024
"""Bytes up to which the header counts characters; over it bytes."""


def spilled_text(output: Output, preview: Preview, limit: int, ttl: float, answer_bytes: int) -> str:
    """Header, what is shown and hidden, the preview, and the calls of ``read_output`` that read on."""
    header = _header(output, preview.kind, f"ref {output.ref}")
    if output.content.size == 0:
        return f"{header}\nResult: empty."
    if preview.whole:
        return f"{header}\nResult:\n{cut_end(preview.text, limit)}"
    lines = [
        header,
        _shown_and_hidden(preview, output),
        "",
        cut_end(preview.text, limit),
        "",
        f"The whole is kept for {duration(ttl)}. To read on, for example:",
        *(f"- {call}  {why}" for call, why in _calls(output, preview, answer_bytes)),
    ]
    return "\n".join(lines)


def unkept_text(output: Output, preview: Preview, limit: int, max_bytes: int) -> str:
    """What stands there for a result that is larger than the whole store."""
    return "\n".join(
        [
            _header(output, preview.kind, "not kept"),
            _shown_and_hidden(preview, output),
            "",
            cut_end(preview.text, limit),
            "",
            f"The rest is lost: it is larger than {max_bytes:,} bytes (plugins.outputs.max_bytes). "
            f"Call {output.tool} again for a smaller part.",
        ]
    )


def _header(output: Output, kind: str, ref: str) -> str:
    content = output.content
    if content.size > CHARACTERS_COUNTED or output.binary:
        size = counted(content.size, "bytes")
    else:
        size = counted(len(content.text(0, content.size)), "chars")
    lines = counted(output.lines.count, "lines")
    return f"[LARGE OUTPUT: {output.tool} | {' '.join(kind.split())} | {lines} | {size} | {ref}]"


def _shown_and_hidden(preview: Preview, output: Output) -> str:
    total = output.lines.count if preview.unit == "lines" and preview.total is None else preview.total
    if total is None:
        return f"Shown: the first {counted(preview.shown, preview.unit)}. Hidden: the rest, which was not counted."
    hidden = max(0, total - preview.shown)
    return f"Shown: {preview.shown:,} of {counted(total, preview.unit)}. Hidden: {counted(hidden, preview.unit)}."


def _calls(output: Output, preview: Preview, answer_bytes: int) -> list[tuple[str, str]]:
    """Calls that make sense for this output, the likeliest first."""
    ref, size, lines = output.ref, output.content.size, output.lines.count
    if output.binary:
        return [(read_call(ref, mode="slice", unit="bytes", start=preview.shown), "the next bytes as hex")]
    calls = [(read_call(ref, mode="search", query="…"), "what holds these words, in any letter case")]
    if size <= answer_bytes - FOOTER:
        calls.append((read_call(ref, mode="all"), "the whole"))
    if size > lines * 4_000:
        call = read_call(ref, mode="slice", unit="bytes", start=0, end=min(size, 8_000))
        calls.append((call, "by bytes: its lines are long"))
    else:
        first = _first_hidden_line(preview, lines)
        calls.append((read_call(ref, mode="slice", start=first, end=min(lines, first + 99)), "by line numbers"))
    calls.append((read_call(ref, mode="tail"), "the end"))
    return calls


def _first_hidden_line(preview: Preview, lines: int) -> int:
    """The number of the line behind the preview where that is sure, else 1."""
    if preview.unit in ("lines", "objects"):
        first = preview.shown + 1
    elif preview.unit == "rows" and preview.total is not None and preview.total + 1 == lines:
        first = preview.shown + 2  # behind the header, and every row is a line
    else:
        first = 1
    return first if first <= lines else 1
