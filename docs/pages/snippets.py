"""The code that pages show, from the tested files that hold it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

_SHOWN = re.compile(
    r"^<!-- snippet: (?P<path>[^\s:]+)(:(?P<section>\w+))? -->\n((?P<opening>```[^\n]*\n).*?^```$)?",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"^[ ]*(#|<!--) \[(start|end):\w+\]( -->)?\n", re.MULTILINE)


def filled(page: str) -> str:
    """A page's text, with the code of the file in each fence below a comment that names one.

    The comment is ``<!-- snippet: PATH -->`` or ``<!-- snippet: PATH:SECTION -->``, with the path from the root.
    Raises ``ValueError`` where it names what is not there or stands over no fence.
    """
    return _SHOWN.sub(_block, page)


def _block(shown: re.Match[str]) -> str:
    comment = shown[0].partition("\n")[0]
    if shown["opening"] is None:
        raise ValueError(f"{comment} stands over no fence. Begin one on the next line")
    path = ROOT / shown["path"]
    if not path.is_file():
        raise ValueError(f"{comment} names a file that is not there")
    text = path.read_text(encoding="utf-8")
    return f"{comment}\n{shown['opening']}{_code(text, shown['section'], comment)}```"


def _code(text: str, section: str | None, comment: str) -> str:
    if section is not None:
        found = re.search(rf"\[start:{section}\].*?\n(.*?)^[^\n]*\[end:{section}\]", text, re.MULTILINE | re.DOTALL)
        if found is None:
            raise ValueError(f"{comment} names a section that the file does not have")
        text = found[1]
    code = re.sub(r"\n{4,}", "\n\n\n", _MARK.sub("", text)).strip("\n")
    fenced = re.fullmatch(r"```\w*\n(.*)\n```", code, re.DOTALL)
    return f"{fenced[1] if fenced else code}\n"
