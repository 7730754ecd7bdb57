"""Reads a moment as people and machines write it, and moves it through the calendar."""

from __future__ import annotations

import calendar
import email.utils
import re
from datetime import UTC, date, datetime, timedelta, tzinfo

import msgspec

from toolkeel import ToolError

from .durations import Duration
from .patterns import MONTHS
from .zones import WallTime, find_zone, zone_name

_MAX_LENGTH = 100
_UNIX = re.compile(r"(?P<sign>-?)(?P<seconds>\d{9,11})(?:\.(?P<fraction>\d{1,9}))?", re.ASCII)
_UNIX_MILLISECONDS = re.compile(r"\d{12,13}", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_ORDINAL = re.compile(r"(\d{4})-?(\d{3})", re.ASCII)
_BRACKETS = re.compile(r"(.*)\[([^\]]*)\]")
_HEADER = re.compile(
    r"(?:[A-Za-z]{3},\s*)?\d{1,2} [A-Za-z]{3} \d{4} \d{2}:\d{2}(?::\d{2})?(?: [A-Za-z]{1,5}| [+-]\d{4})?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RELATIVE = {"today": 0, "tomorrow": 1, "yesterday": -1}


class Moment(msgspec.Struct, frozen=True):
    """A moment with its zone, or a whole day: then ``time`` is midnight, be it that the clocks skip it there.

    ``notes`` say what a reader should know of how the text was understood.
    """

    time: datetime
    whole_day: bool = False
    notes: tuple[str, ...] = ()


def parse_moment(text: str, zone: str, now: datetime) -> Moment:
    """Read a moment: ISO 8601, ``now``, ``today``, Unix time, or the date of a mail or HTTP header.

    Args:
        text: what is to be read. An ``[Area/City]`` behind an ISO time is its zone.
        zone: the zone that a time without an offset is in, and that the answer is in; empty means that of ``text``,
            else UTC.
        now: the present moment, aware.

    Raises:
        ToolError: it cannot be read, or the zone is unknown.
    """
    bare = text.strip()
    if len(bare) > _MAX_LENGTH:
        raise ToolError(f"the date is too long: the limit is {_MAX_LENGTH} characters")
    bracket = _BRACKETS.fullmatch(bare)
    if bracket:
        bare, zone = bracket[1], zone or bracket[2].lstrip("!")
    target = find_zone(zone) if zone else None
    relative = bare.lower()
    if relative == "now":
        return Moment(now.astimezone(target or UTC))
    if relative in _RELATIVE:
        today = now.astimezone(target or UTC).date()
        return _day(today + timedelta(days=_RELATIVE[relative]), target)
    unix = _unix_time(bare)
    if unix is not None:
        return Moment(unix.astimezone(target or UTC))
    day = _whole_day(bare)
    if day is not None:
        return _day(day, target)
    return _in_zone(_time(bare, text), target)


def at_midnight(moment: Moment) -> Moment:
    """A whole day as the moment that it begins, which the notes say; other moments as they are."""
    if not moment.whole_day:
        return moment
    zone = _zone(moment.time)
    start = WallTime(moment.time.replace(tzinfo=None), zone).moment
    taken = f"{moment.time.date()} was taken as its midnight in {zone_name(zone, start)}"
    return Moment(start, notes=(*moment.notes, taken))


def moved(moment: Moment, duration: Duration) -> Moment:
    """The moment after a duration: months and days by the calendar of its zone, then the time that elapses.

    A day that the month does not have becomes the month's last one. A whole day stays one unless time is added.

    Raises:
        OverflowError: the result is outside of the years 1 to 9999.
    """
    if duration.microseconds:
        moment = at_midnight(moment)
    time, notes = moment.time, moment.notes
    if duration.months or duration.days:
        wall = _shifted_wall(time.replace(tzinfo=None), duration.months, duration.days)
        if moment.whole_day:
            reached = wall.replace(tzinfo=_zone(time))
        else:
            found = WallTime(wall, _zone(time))
            reached = found.nearest_to(time.utcoffset())
            notes += (found.note,) if found.note else ()
        if duration.months and not duration.days and wall.day != time.day:
            notes += (f"{MONTHS[wall.month - 1]} {wall.year} has no day {time.day}",)
        time = reached
    if duration.microseconds:
        time = (time.astimezone(UTC) + timedelta(microseconds=duration.microseconds)).astimezone(_zone(time))
    return Moment(time, moment.whole_day, notes)


def between(start: datetime, end: datetime) -> Duration:
    """The duration that leads from ``start`` to ``end`` when it is added to ``start``, in the zone of ``start``.

    Whole months first, then whole days, then the time that remains; all of one sign.
    """
    sign = 1 if _elapsed(start, end) >= timedelta(0) else -1
    wall = end.astimezone(start.tzinfo)
    months = abs((wall.year - start.year) * 12 + wall.month - start.month)
    while months and not _comes_before(start, sign * months, 0, end, sign):
        months -= 1
    reached = _shifted_wall(start.replace(tzinfo=None), sign * months, 0)
    days = abs((wall.replace(tzinfo=None) - reached) // timedelta(days=1)) + 1
    while days and not _comes_before(start, sign * months, sign * days, end, sign):
        days -= 1
    rest = _elapsed(_shifted(start, sign * months, sign * days), end)
    return Duration(sign * months, sign * days, rest // timedelta(microseconds=1))


def elapsed(start: Moment, end: Moment) -> timedelta:
    """The time from one moment to another; between whole days that of the calendar, 24 hours for each."""
    if start.whole_day and end.whole_day:
        return timedelta(days=end.time.toordinal() - start.time.toordinal())
    return _elapsed(start.time, end.time)


def _elapsed(start: datetime, end: datetime) -> timedelta:
    # In one zone, datetime would subtract the wall times.
    return end.astimezone(UTC) - start.astimezone(UTC)


def _shifted(time: datetime, months: int, days: int) -> datetime:
    return moved(Moment(time), Duration(months, days)).time


def _comes_before(start: datetime, months: int, days: int, end: datetime, sign: int) -> bool:
    """Whether the shifted start lies on the way from start to end, or is the end."""
    try:
        return sign * _elapsed(_shifted(start, months, days), end) >= timedelta(0)
    except OverflowError:
        return False


def _shifted_wall(wall: datetime, months: int, days: int) -> datetime:
    index = wall.year * 12 + wall.month - 1 + months
    year, month = index // 12, index % 12 + 1
    if not 1 <= year <= 9999:
        raise OverflowError
    day = min(wall.day, calendar.monthrange(year, month)[1])
    return wall.replace(year=year, month=month, day=day) + timedelta(days=days)


def _zone(time: datetime) -> tzinfo:
    return time.tzinfo or UTC


def _day(day: date, zone: tzinfo | None) -> Moment:
    return Moment(datetime(day.year, day.month, day.day, tzinfo=zone or UTC), whole_day=True)


def _in_zone(time: datetime, zone: tzinfo | None) -> Moment:
    if time.tzinfo is not None:
        if zone is None and time.utcoffset() == timedelta(0):
            zone = UTC
        return Moment(time.astimezone(zone) if zone else time)
    found = WallTime(time, zone or UTC)
    notes = [found.note] if found.note else []
    if zone is None:
        notes.append("the time has no offset and no zone was given: it was read as UTC")
    return Moment(found.moment, notes=tuple(notes))


def _unix_time(text: str) -> datetime | None:
    milliseconds = _UNIX_MILLISECONDS.fullmatch(text)
    if milliseconds:
        return _EPOCH + timedelta(milliseconds=int(text))
    match = _UNIX.fullmatch(text)
    if match is None:
        return None
    microseconds = int((match["fraction"] or "").ljust(6, "0")[:6])
    elapsed = timedelta(seconds=int(match["seconds"]), microseconds=microseconds)
    return _EPOCH - elapsed if match["sign"] else _EPOCH + elapsed


def _whole_day(text: str) -> date | None:
    month = _MONTH.fullmatch(text)
    if month:
        text = f"{text}-01"
    ordinal = _ORDINAL.fullmatch(text)
    try:
        if ordinal:
            return datetime.strptime(f"{ordinal[1]} {ordinal[2]}", "%Y %j").date()
        return date.fromisoformat(text.upper())
    except ValueError:
        return None


def _time(text: str, given: str) -> datetime:
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError as error:
        reason = str(error)
    if _HEADER.fullmatch(text):
        try:
            return email.utils.parsedate_to_datetime(text)
        except ValueError as error:
            reason = str(error)
    shown = given if len(given) <= 60 else f"{given[:60]}…"
    # fromisoformat says "Invalid isoformat string" of what is none, and names the part of one that is out of range
    detail = "" if "isoformat" in reason else f": {reason}"
    raise ToolError(
        f"{shown!r} is not a date or time{detail}",
        remedy="Write ISO 8601, such as 2024-03-31T14:30:00+02:00 or 2024-03-31; also now, today, Unix seconds",
    )
