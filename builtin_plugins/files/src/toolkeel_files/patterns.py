"""Glob patterns and .gitignore rules, both by git's rules for ignore files."""

from __future__ import annotations

import os
import re
import stat

from pathspec import GitIgnoreSpec

from toolkeel import ToolError

from .beneath import FILE

_PATTERN_CHARS = 1_000
_ALTERNATIVES = 100
_RULES_BYTES = 1 << 18
_RULES = 500
"""Lines of one .gitignore that count; many more do not compile into one automaton."""
_NO_PATTERN = (ValueError, re.error, FutureWarning)
"""What pathspec raises for lines that make no sense; the last where warnings are errors."""


class Glob:
    """A pattern for paths: ``*.py`` at any depth, ``src/**/*.py`` from the start, ``*.{js,ts}``, ``!*.min.js``.

    Raises:
        ToolError: it is no pattern, or is too long.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > _PATTERN_CHARS:
            raise ToolError(f"the pattern has {len(pattern):,} characters, more than {_PATTERN_CHARS:,}")
        alternatives = _without_braces(pattern.removeprefix("!").removeprefix("./"))
        if pattern.startswith("!"):
            lines = ["*", *(f"!{alternative}" for alternative in alternatives)]
        else:
            lines = [f"\\{alternative}" if alternative[:1] == "#" else alternative for alternative in alternatives]
        try:
            self._rules = _rules(lines)
        except _NO_PATTERN as error:
            raise ToolError(
                f"{pattern!r} is no pattern: {str(error).splitlines()[0]}", remedy="Use forms like *.py or src/**/*.ts"
            ) from None

    def matches(self, path: str, *, folder: bool = False) -> bool:
        """Whether the pattern means a path, or a folder that it is in."""
        return self._rules.match_file(f"{path}/" if folder else path)


class Ignored:
    """What the .gitignore files of a tree leave out; the nearest file that has a say decides."""

    def __init__(self) -> None:
        self._rules: list[tuple[str, GitIgnoreSpec]] = []

    def enter(self, folder: int, prefix: str) -> None:
        """Take in the rules of an open folder; ``prefix`` is its path with ``/`` at the end, empty for the top."""
        while self._rules and not prefix.startswith(self._rules[-1][0]):
            self._rules.pop()
        rules = _read_rules(folder)
        if rules:
            self._rules.append((prefix, rules))

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Whether a path in a folder that was entered is left out."""
        asked = f"{path}/" if folder else path
        for prefix, rules in reversed(self._rules):
            if asked.startswith(prefix):
                said = rules.check_file(asked[len(prefix) :]).include
                if said is not None:
                    return said
        return False


def _rules(lines: list[str]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(lines, backend="re2")  # matching takes linear time whatever the patterns


def _read_rules(folder: int) -> GitIgnoreSpec | None:
    try:
        opened = os.open(".gitignore", os.O_RDONLY | FILE, dir_fd=folder)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return None
        text = os.read(opened, _RULES_BYTES).decode(errors="replace")
    finally:
        os.close(opened)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")][:_RULES]
    try:
        return _rules(lines)
    except _NO_PATTERN:
        return _rules([line for line in lines if _is_rule(line)])
    except Exception:  # noqa: BLE001 - RE2's own, untyped error: too much for one automaton, so nothing is left out
        return None


def _is_rule(line: str) -> bool:
    """Git passes over a line that makes no sense; one of them must not cost the others."""
    try:
        _rules([line])
    except _NO_PATTERN:
        return False
    return True


def _without_braces(pattern: str) -> list[str]:
    """``a.{b,c}`` as ``a.b`` and ``a.c``; git's patterns have no braces, and models write them."""
    done: list[str] = []
    pending = [pattern]
    while pending:
        current = pending.pop()
        close = current.find("}")
        start = current.rfind("{", 0, close) if close >= 0 else -1
        if start < 0:
            done.append(current)
        else:
            choices = current[start + 1 : close].split(",")
            pending += [current[:start] + choice + current[close + 1 :] for choice in choices]
        if len(done) + len(pending) > _ALTERNATIVES:
            raise ToolError(f"the pattern has more than {_ALTERNATIVES} alternatives", remedy="Ask several times")
    return done
