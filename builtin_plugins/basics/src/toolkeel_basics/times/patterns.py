"""Writes a moment by a pattern of ``%`` directives, the same on every system and in every locale."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from toolkeel import ToolError

from .zones import offset_text

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MAX_LENGTH = 1_000
_DIRECTIVE = re.compile(r"%(-?)(:z|.|$)", re.DOTALL)

_DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "%": lambda _: "%",
    "A": lambda time: DAYS[time.weekday()],
    "B": lambda time: MONTHS[time.month - 1],
    "F": lambda time: time.date().isoformat(),
    "G": lambda time: f"{time.isocalendar().year:04}",
    "H": lambda time: f"{time.hour:02}",
    "I": lambda time: f"{(time.hour + 11) % 12 + 1:02}",
    "M": lambda time: f"{time.minute:02}",
    "R": lambda time: f"{time.hour:02}:{time.minute:02}",
    "S": lambda time: f"{time.second:02}",
    "T": lambda time: f"{time.hour:02}:{time.minute:02}:{time.second:02}",
    "V": lambda time: f"{time.isocalendar().week:02}",
    "Y": lambda time: f"{time.year:04}",
    "Z": lambda time: time.tzname() or "",
    "a": lambda time: DAYS[time.weekday()][:3],
    "b": lambda time: MONTHS[time.month - 1][:3],
    "d": lambda time: f"{time.day:02}",
    "f": lambda time: f"{time.microsecond:06}",
    "j": lambda time: f"{time.timetuple().tm_yday:03}",
    "m": lambda time: f"{time.month:02}",
    "p": lambda time: "AM" if time.hour < 12 else "PM",
    "s": lambda time: str(unix_seconds(time)),
    "u": lambda time: str(time.isoweekday()),
    "y": lambda time: f"{time.year % 100:02}",
    "z": lambda time: offset_text(time.utcoffset() or timedelta(0)).replace(":", ""),
    ":z": lambda time: offset_text(time.utcoffset() or timedelta(0)),
}
_NAMED: dict[str, Callable[[datetime], str]] = {
    "iso": lambda time: time.isoformat(),
    "rfc2822": email.utils.format_datetime,
    "http": lambda time: email.utils.format_datetime(time.astimezone(UTC), usegmt=True),
    "unix": lambda time: str(unix_seconds(time)),
}


def unix_seconds(time: datetime) -> int:
    """Whole seconds since 1970-01-01 UTC, rounded down."""
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


def written(time: datetime, pattern: str) -> str:
    """The time by a pattern, or in a named form: ``iso``, ``rfc2822``, ``http``, ``unix``.

    ``%-d`` leaves out the zero before a number.

    Raises:
        ToolError: the pattern has a directive that is not known, or none at all.
    """
    named = _NAMED.get(pattern.strip().lower())
    if named:
        return named(time)
    if len(pattern) > _MAX_LENGTH:
        raise ToolError(f"the pattern is too long: the limit is {_MAX_LENGTH:,} characters")
    if "%" not in pattern:
        raise ToolError(
            f"the pattern {pattern[:60]!r} has no % directive",
            remedy=f"Write one such as '%A, %d %B %Y %H:%M', or one of {', '.join(_NAMED)}",
        )

    def replaced(match: re.Match[str]) -> str:
        directive = _DIRECTIVES.get(match[2])
        if directive is None:
            raise ToolError(
                f"%{match[2]} is not a directive of patterns",
                where=f"pattern, column {match.start() + 1}",
                remedy=f"Known are {', '.join('%' + name for name in _DIRECTIVES)}",
            )
        text = directive(time)
        return (text.lstrip("0") or "0") if match[1] and text.isdigit() else text

    return _DIRECTIVE.sub(replaced, pattern)
