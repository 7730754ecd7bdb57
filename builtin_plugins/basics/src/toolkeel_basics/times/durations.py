"""Reads and writes durations: calendar months and days, which follow the clocks, and elapsed time, which does not."""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec

from toolkeel import ToolError

_MAX_LENGTH = 200
_AMOUNT = r"\d{1,12}(?:[.,]\d{1,9})?"
_ISO = re.compile(
    rf"(?P<sign>[+-]?)P(?:(?P<years>{_AMOUNT})Y)?(?:(?P<months>{_AMOUNT})M)?(?:(?P<weeks>{_AMOUNT})W)?"
    rf"(?:(?P<days>{_AMOUNT})D)?(?:T(?=\d)(?:(?P<hours>{_AMOUNT})H)?(?:(?P<minutes>{_AMOUNT})M)?"
    rf"(?:(?P<seconds>{_AMOUNT})S)?)?",
    re.IGNORECASE | re.ASCII,
)
_CLOCK = re.compile(r"(?P<sign>[+-]?)(?P<hours>\d{1,6}):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:\.\d{1,6})?))?")
_WORD = re.compile(rf"\s*(?:and\b|,)?\s*(?P<sign>[+-]?)\s*(?P<amount>{_AMOUNT})\s*(?P<unit>[a-zµ]+)", re.IGNORECASE)
_UNITS = {
    "years": ("y", "yr", "yrs", "year", "years"),
    "months": ("mo", "mos", "mon", "month", "months"),
    "weeks": ("w", "wk", "wks", "week", "weeks"),
    "days": ("d", "day", "days"),
    "hours": ("h", "hr", "hrs", "hour", "hours"),
    "minutes": ("m", "min", "mins", "minute", "minutes"),
    "seconds": ("s", "sec", "secs", "second", "seconds"),
    "milliseconds": ("ms", "millisecond", "milliseconds"),
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
_MICROSECONDS = {
    "days": 86_400_000_000,
    "hours": 3_600_000_000,
    "minutes": 60_000_000,
    "seconds": 1_000_000,
    "milliseconds": 1_000,
}


class Duration(msgspec.Struct, frozen=True):
    """Months and days move the date and keep the wall time; microseconds are time that elapses."""

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def iso(self) -> str:
        """The duration as ISO 8601 writes it; a minus stands before the ``P`` where all parts are negative."""
        negative = min(self.months, self.days, self.microseconds) < 0
        years, months = divmod(abs(self.months), 12)
        date = "".join(
            f"{amount}{unit}" for amount, unit in ((years, "Y"), (months, "M"), (abs(self.days), "D")) if amount
        )
        hours, rest = divmod(abs(self.microseconds), _MICROSECONDS["hours"])
        minutes, rest = divmod(rest, _MICROSECONDS["minutes"])
        seconds = _plain(Fraction(rest, 1_000_000))
        time = "".join(f"{amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M")) if amount)
        time += f"{seconds}S" if rest else ""
        text = f"P{date}{'T' if time else ''}{time}"
        return "PT0S" if text == "P" else f"-{text}" if negative else text

    def words(self) -> str:
        """The duration in words: ``1 year 2 months 3 days 4 hours``."""
        negative = min(self.months, self.days, self.microseconds) < 0
        years, months = divmod(abs(self.months), 12)
        hours, rest = divmod(abs(self.microseconds), _MICROSECONDS["hours"])
        minutes, rest = divmod(rest, _MICROSECONDS["minutes"])
        parts = {
            "year": str(years),
            "month": str(months),
            "day": str(abs(self.days)),
            "hour": str(hours),
            "minute": str(minutes),
            "second": _plain(Fraction(rest, 1_000_000)),
        }
        text = " ".join(
            f"{amount} {unit}{'' if amount == '1' else 's'}" for unit, amount in parts.items() if amount != "0"
        )
        return "no time" if not text else f"minus {text}" if negative else text


def parse_duration(text: str) -> Duration:
    """Read a duration: ISO 8601 (``P1M10DT2H``), words (``1 month 10 days``, ``-90 min``) or a clock (``1:30``).

    A sign counts for all parts that follow it, up to the next sign. Fractions of days and weeks become elapsed time.

    Raises:
        ToolError: the text is none of these, or counts fractions of months or years.
    """
    bare = text.strip()
    if len(bare) > _MAX_LENGTH:
        raise ToolError(f"the duration is too long: the limit is {_MAX_LENGTH} characters")
    match = _ISO.fullmatch(bare) or _CLOCK.fullmatch(bare)
    if match:
        parts = match.groupdict()
        sign = -1 if parts.pop("sign") == "-" else 1
        amounts = {unit: sign * _fraction(amount) for unit, amount in parts.items() if amount}
    else:
        amounts = _words(bare)
    if not amounts:
        raise _unreadable(text)
    return _duration(amounts)


def _words(text: str) -> dict[str, Fraction]:
    amounts: dict[str, Fraction] = {}
    sign, at = 1, 0
    while at < len(text):
        match = _WORD.match(text, at)
        unit = _UNIT_OF.get(match["unit"].lower()) if match else None
        if match is None or unit is None:
            raise _unreadable(text)
        sign = {"-": -1, "+": 1}.get(match["sign"], sign)
        amounts[unit] = amounts.get(unit, Fraction(0)) + sign * _fraction(match["amount"])
        at = match.end()
    return amounts


def _duration(amounts: dict[str, Fraction]) -> Duration:
    months = amounts.pop("years", Fraction(0)) * 12 + amounts.pop("months", Fraction(0))
    if months.denominator != 1:
        raise ToolError("a part of a month or year has no fixed length", remedy="Give whole months, or days")
    days = amounts.pop("weeks", Fraction(0)) * 7 + amounts.pop("days", Fraction(0))
    whole_days = int(days)
    amounts["days"] = days - whole_days
    elapsed = sum((amount * _MICROSECONDS[unit] for unit, amount in amounts.items()), Fraction(0))
    return Duration(int(months), whole_days, round(elapsed))


def _fraction(text: str) -> Fraction:
    return Fraction(text.replace(",", "."))


def _plain(number: Fraction) -> str:
    return f"{float(number):.6f}".rstrip("0").rstrip(".")


def _unreadable(text: str) -> ToolError:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return ToolError(
        f"{shown!r} is not a duration", remedy="Write it as P1M10DT2H, as '1 month 10 days 2 hours', or as 1:30"
    )
