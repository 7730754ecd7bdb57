"""Write the reference pages from the code, and into every page the code that it shows.

Usage: python docs/generate.py            writes the pages that differ, and names them
       python docs/generate.py --check    changes nothing; names them, and fails if there is one
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pages import command_line, hooks, manifest, requirements, settings, snippets, tools

DOCS = Path(__file__).resolve().parent
NOTICE = "<!-- Written by docs/generate.py from the code. Change the code, then run it. -->\n"

PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "reference/command-line.md": command_line.page,
    "reference/hooks.md": hooks.page,
    "reference/manifest.md": manifest.page,
    "reference/requirements.md": requirements.page,
    "reference/settings.md": settings.page,
    "reference/tools.md": tools.page,
}


def main(arguments: list[str]) -> int:
    """Write every page that differs, or with ``--check`` only name them and fail."""
    check = "--check" in arguments
    with tempfile.TemporaryDirectory() as place:
        # What the machine at hand has in its settings and its terminal is not what the pages are about.
        os.environ |= {"TOOLKEEL_HOME": place, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
        return _write(check)


def _write(check: bool) -> int:
    stale = {path: expected for path, expected in _pages() if not _holds(DOCS / path, expected)}
    for path, expected in stale.items():
        if not check:
            (DOCS / path).write_text(expected, encoding="utf-8")
        sys.stdout.write(f"docs/{path}\n")
    return 1 if stale and check else 0


def _pages() -> Iterator[tuple[str, str]]:
    """Every page's path and what should stand there."""
    for path, page in PAGES.items():
        yield path, snippets.filled(text(page))
    for file in sorted(DOCS.rglob("*.md")):
        path = file.relative_to(DOCS).as_posix()
        if path not in PAGES:
            try:
                yield path, snippets.filled(file.read_text(encoding="utf-8"))
            except ValueError as error:
                raise SystemExit(f"docs/{path}: {error}") from error


def text(page: Callable[[], Iterator[str]]) -> str:
    """The whole text of a page."""
    body = "\n".join(page()).rstrip() + "\n"
    return re.sub(r"\n{3,}", "\n\n", f"{NOTICE}\n{body}")


def _holds(path: Path, expected: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == expected


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
