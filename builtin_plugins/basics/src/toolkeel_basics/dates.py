"""The tool ``datetime``: the present time, and arithmetic of moments, zones and calendars."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Literal

from toolkeel import Data, Text, ToolError, tool

from .times.durations import parse_duration
from .times.moments import Moment, at_midnight, between, elapsed, moved, parse_moment
from .times.patterns import DAYS, unix_seconds, written
from .times.zones import find_zone, zone_name

Operation = Literal["now", "info", "convert", "add", "difference", "format"]
Fields = dict[str, object]

_MAX_ZONES = 50


@tool(name="datetime", effect="read", volatile=True)
def datetime_tool(
    operation: Operation = "now",
    value: str | int = "now",
    zone: str = "",
    to_zones: Sequence[str] = (),
    other: str | int = "now",
    duration: str = "",
    pattern: str = "",
) -> Data | Text:
    """Tell the present date and time, and compute with dates, times and time zones, daylight saving included.

    Use it whenever an answer depends on today's date, on a weekday, on a zone or on the distance of two dates. Answers
    give the moment in ISO 8601 with offset, in UTC and in Unix seconds, with weekday, calendar week, day of the year
    and days in the month. Times that clocks skip or repeat are pointed out under "notes".

    Args:
        operation: "now" tells the present time in zone, and in to_zones if given. "info" tells all about value.
            "convert" tells value in each of to_zones. "add" adds duration to value. "difference" tells how far it is
            from value to other. "format" writes value by pattern.
        value: The moment: ISO 8601 such as "2024-03-31T14:30", "2024-03-31T14:30:00+02:00", "2024-03-31", "2024-03" or
            "2024-W13-7"; or "now", "today", "tomorrow", "yesterday"; or Unix time in seconds (9 to 11 digits) or
            milliseconds (12 or 13); or the date of a mail or HTTP header.
        zone: The zone that a value without an offset is in, and that the answer is given in: an IANA name such as
            "Europe/Berlin", or an offset such as "+02:00". Left out, a value keeps its own offset, and one without an
            offset is read as UTC.
        to_zones: For "convert" and "now": the zones to tell the moment in, such as ["America/New_York", "Asia/Tokyo"].
        other: For "difference": the second moment, written like value.
        duration: For "add": ISO 8601 such as "P1M10DT2H", or words such as "3 weeks", "1 year 2 months", "-90 minutes".
            A minus subtracts. Months and days keep the wall time; hours, minutes and seconds are time that elapses.
        pattern: For "format": strftime directives such as "%A, %-d %B %Y, %H:%M %Z", or "iso", "rfc2822", "http" or
            "unix".
    """
    try:
        return _answer(operation, str(value), zone, to_zones, str(other), duration, pattern, _now())
    except OverflowError as error:
        raise ToolError("the result is outside of the years 1 to 9999") from error


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _answer(
    operation: Operation,
    value: str,
    zone: str,
    to_zones: Sequence[str],
    other: str,
    duration: str,
    pattern: str,
    now: datetime,
) -> Data | Text:
    moment = parse_moment("now" if operation == "now" else value, zone, now)
    if operation == "convert" and not to_zones:
        raise _missing("to_zones", "Give the zones to convert to, such as ['Asia/Tokyo']", operation)
    if operation == "add":
        if not duration:
            raise _missing("duration", "Give one such as '3 weeks' or P1M10D", operation)
        return Data(_described(moved(moment, parse_duration(duration))))
    if operation == "difference":
        return Data(_difference(moment, parse_moment(other, zone, now)))
    if operation == "format":
        if not pattern:
            raise _missing("pattern", "Give one such as '%d %B %Y', or iso, rfc2822, http, unix", operation)
        return Text("\n".join((written(moment.time, pattern), *(f"({note})" for note in moment.notes))))
    if operation == "convert":
        moment = at_midnight(moment)
    fields = _described(moment)
    if operation in ("now", "convert") and to_zones:
        fields["in"] = _in_zones(moment.time, to_zones)
    return Data(fields)


def _missing(parameter: str, remedy: str, operation: str) -> ToolError:
    return ToolError(f"{operation!r} needs {parameter}", remedy=remedy)


def _described(moment: Moment) -> Fields:
    time = moment.time
    week = time.isocalendar()
    fields: Fields = {}
    if moment.whole_day:
        fields["date"] = time.date().isoformat()
    else:
        fields["datetime"] = time.isoformat()
        fields["zone"] = _zone_text(time)
        fields["utc"] = time.astimezone(UTC).isoformat().replace("+00:00", "Z")
        fields["unix"] = unix_seconds(time)
        fields["daylight_saving"] = bool(time.dst())
    fields |= {
        "weekday": DAYS[time.weekday()],
        "week": f"{week.year:04}-W{week.week:02}",
        "day_of_year": time.timetuple().tm_yday,
        "days_in_month": calendar.monthrange(time.year, time.month)[1],
        "leap_year": calendar.isleap(time.year),
    }
    return fields | _notes(moment)


def _notes(*moments: Moment) -> Fields:
    notes = list(dict.fromkeys(note for moment in moments for note in moment.notes))
    return {"notes": notes} if notes else {}


def _zone_text(time: datetime) -> str:
    name = zone_name(time.tzinfo or UTC, time)
    abbreviation = time.tzname() or ""
    return name if abbreviation == name or not abbreviation.isalpha() else f"{name} ({abbreviation})"


def _in_zones(moment: datetime, to_zones: Sequence[str]) -> list[Fields]:
    if len(to_zones) > _MAX_ZONES:
        raise ToolError(f"to_zones has {len(to_zones):,} zones: the limit is {_MAX_ZONES}")
    times = [moment.astimezone(find_zone(name)) for name in to_zones]
    return [{"zone": _zone_text(time), "datetime": time.isoformat(), "weekday": DAYS[time.weekday()]} for time in times]


def _difference(start: Moment, end: Moment) -> Fields:
    if start.whole_day and end.whole_day:
        # Days have no zone: one of them may have 23 hours, which the calendar does not care about.
        first, last = start.time.replace(tzinfo=UTC), end.time.replace(tzinfo=UTC)
    else:
        start, end = at_midnight(start), at_midnight(end)
        first, last = start.time, end.time
    duration, time = between(first, last), elapsed(start, end)
    fields: Fields = {
        "from": start.time.date().isoformat() if start.whole_day else first.isoformat(),
        "to": end.time.date().isoformat() if end.whole_day else last.isoformat(),
        "difference": duration.words(),
        "iso": duration.iso(),
        "days": _number(time, timedelta(days=1)),
        "hours": _number(time, timedelta(hours=1)),
        "seconds": _number(time, timedelta(seconds=1)),
    }
    return fields | _notes(start, end)


def _number(time: timedelta, unit: timedelta) -> int | float:
    """How many units, exact to the microsecond where that is a whole number, else to six places."""
    microsecond = timedelta(microseconds=1)
    count = Fraction(time // microsecond, unit // microsecond)
    return int(count) if count.denominator == 1 else round(float(count), 6)
