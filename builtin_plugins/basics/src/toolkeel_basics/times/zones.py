"""Finds a time zone by name, and knows what its clocks do at a wall time."""

from __future__ import annotations

import difflib
import functools
import re
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from toolkeel import ToolError

_MAX_NAME = 64
_OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE | re.ASCII)
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
_ABBREVIATIONS = {
    "aedt": "Australia/Sydney",
    "aest": "Australia/Sydney",
    "akst": "America/Anchorage",
    "bst": "Europe/London",
    "cdt": "America/Chicago",
    "cest": "Europe/Berlin",
    "cst": "America/Chicago",
    "edt": "America/New_York",
    "eest": "Europe/Athens",
    "hkt": "Asia/Hong_Kong",
    "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo",
    "kst": "Asia/Seoul",
    "mdt": "America/Denver",
    "msk": "Europe/Moscow",
    "nzdt": "Pacific/Auckland",
    "nzst": "Pacific/Auckland",
    "pdt": "America/Los_Angeles",
    "pst": "America/Los_Angeles",
    "sgt": "Asia/Singapore",
    "west": "Europe/Lisbon",
}


def find_zone(name: str) -> tzinfo:
    """The zone of an IANA name in any case (``Europe/Berlin``), or of an offset (``+02:00``, ``UTC-5``, ``Z``).

    Raises:
        ToolError: there is no such zone; the remedy names the nearest ones.
    """
    wanted = name.strip().replace(" ", "_")
    if wanted.upper() in ("UTC", "Z", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(wanted)
    if offset:
        return _fixed(name, offset[1], int(offset[2]), int(offset[3] or 0))
    if len(wanted) <= _MAX_NAME and _KEY.fullmatch(wanted):
        key = _keys().get(wanted.lower())
        if key:
            return zoneinfo.ZoneInfo(key)
    raise _unknown(wanted)


def zone_name(zone: tzinfo, moment: datetime) -> str:
    """What the zone is called: its IANA name, or its offset."""
    if isinstance(zone, zoneinfo.ZoneInfo):
        return zone.key
    return "UTC" if zone is UTC else moment.strftime("%Z")


class WallTime:
    """What a wall time (a naive ``datetime``) is in a zone: one moment, two (clocks went back), or none (skipped).

    ``moment`` is the one that is taken: the first of two; for a skipped time, the moment as far after the gap's start
    as the wall time says. ``note`` tells a reader what is special, and is empty where nothing is.
    """

    def __init__(self, wall: datetime, zone: tzinfo) -> None:
        first, second = wall.replace(tzinfo=zone, fold=0), wall.replace(tzinfo=zone, fold=1)
        self.moment = first
        self.note = ""
        before, after = first.utcoffset(), second.utcoffset()
        if before is None or after is None or before == after:
            return
        name, shown = zone_name(zone, first), wall.isoformat(" ", "auto")
        if before > after:
            self.note = (
                f"{shown} comes twice in {name}, at offset {offset_text(before)} and again at {offset_text(after)}: "
                f"the first is taken; give the offset to choose"
            )
        else:
            self.moment = first.astimezone(UTC).astimezone(zone)
            self.note = (
                f"{shown} does not exist in {name}: the clocks skip it; {self.moment.isoformat(' ', 'auto')} is taken"
            )

    def nearest_to(self, offset: timedelta | None) -> datetime:
        """The moment, or the second of two where that one has this offset."""
        second = self.moment.replace(fold=1)
        return second if self.note and second.utcoffset() == offset else self.moment


def offset_text(offset: timedelta) -> str:
    """An offset as ISO 8601 writes it: ``+05:30``."""
    sign, size = ("-", -offset) if offset < timedelta(0) else ("+", offset)
    hours, rest = divmod(size, timedelta(hours=1))
    minutes, seconds = divmod(rest, timedelta(minutes=1))
    return f"{sign}{hours:02}:{minutes:02}" + (f":{seconds.seconds:02}" if seconds else "")


def _fixed(name: str, sign: str, hours: int, minutes: int) -> tzinfo:
    offset = timedelta(hours=hours, minutes=minutes)
    if offset >= timedelta(hours=24):
        raise ToolError(f"the offset {name!r} is not below 24 hours", remedy="Write it as +05:30")
    return timezone(-offset if sign == "-" else offset)


@functools.cache
def _keys() -> dict[str, str]:
    return {key.lower(): key for key in zoneinfo.available_timezones()}


def _unknown(name: str) -> ToolError:
    known = _keys()
    wanted = name[:_MAX_NAME].lower()
    found = [_ABBREVIATIONS[wanted]] if wanted in _ABBREVIATIONS else []
    cities: dict[str, list[str]] = {}
    for lower, key in known.items():
        cities.setdefault(lower.rpartition("/")[2], []).append(key)
    city = wanted.rpartition("/")[2]
    for near in difflib.get_close_matches(city, cities, 4, 0.75):
        found += sorted(cities[near], key=len, reverse=True)
    found += [known[lower] for lower in difflib.get_close_matches(wanted, known, 4, 0.7)]
    nearest = list(dict.fromkeys(found))[:5]
    remedy = f"Nearest: {', '.join(nearest)}" if nearest else "Use an IANA name such as Europe/Berlin, or +02:00"
    return ToolError(f"there is no time zone {name[:_MAX_NAME]!r}", remedy=remedy)
