"""Previews of HTML: the title and the visible text of the start of the page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.texts import cut_end

from . import plain
from .limits import Limits

_START = 256 * 1024
_PIECE = 16 * 1024
_HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select"})
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure",
        "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre",
        "section", "table", "tr", "ul",
    }
)  # fmt: skip
_CELLS = frozenset({"td", "th"})
_BLANKS = re.compile(r"\s+")


def preview(content: Content, limits: Limits) -> Preview:
    """Title and text. The parser gets the page piece by piece and stops once there is enough."""
    page = _Page(limits.characters)
    source = content.text(0, _START)
    try:
        for start in range(0, len(source), _PIECE):
            page.feed(source[start : start + _PIECE])
            if page.full:
                break
        if "<" not in page.rawdata:  # text behind the last tag; with an open tag, closing takes quadratic time
            page.close()
    except AssertionError:  # html.parser met a marked section that it does not know: what came before it stands
        pass
    text = page.text()
    if not text:
        return plain.preview(content, limits, note="HTML without visible text at its start; shown as it is written.")
    whole = content.size <= _START and not page.full and len(text) <= limits.characters
    shown = cut_end(text, limits.characters)
    total = len(text) if whole else None
    return Preview(kind="html", text=shown, shown=len(shown), total=total, unit="characters of its text")


class _Page(HTMLParser):
    """Collects the title and the text that a browser would show, up to a number of characters."""

    def __init__(self, limit: int) -> None:
        super().__init__(convert_charrefs=True)
        self._limit = limit
        self._title = ""
        self._in_title = False
        self._hidden: list[str] = []
        self._lines: list[str] = [""]
        self._size = 0

    @property
    def full(self) -> bool:
        """Whether there is more text than the preview takes."""
        return self._size > self._limit

    def text(self) -> str:
        """The title and the text, a line for each block."""
        lines = [line.strip(" |") for line in self._lines]
        title = _BLANKS.sub(" ", self._title).strip()
        return "\n".join([f"Title: {title}"] * bool(title) + [line for line in lines if line])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line, a cell, or what is not shown."""
        del attrs
        if tag == "title" and not self._title:
            self._in_title = True
        elif tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag in _BLOCKS and self._lines[-1]:
            self._lines.append("")
        elif tag in _CELLS and self._lines[-1]:
            self._lines[-1] += " | "

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag that closes itself holds nothing to hide."""
        if tag not in _HIDDEN:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """End what ``handle_starttag`` began."""
        if tag == "title":
            self._in_title = False
        elif tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        elif tag in _BLOCKS and self._lines[-1]:
            self._lines.append("")

    def handle_data(self, data: str) -> None:
        """Text, its white space drawn together."""
        if self._in_title:
            self._title = (self._title + data)[:300]
            return
        if self._hidden:
            return
        text = _BLANKS.sub(" ", data)
        line = self._lines[-1]
        if not line or line.endswith(" "):
            text = text.lstrip()
        self._lines[-1] += text
        self._size += len(text)
