"""datetime: right across zones, clock changes and calendars, and plain about what is ambiguous."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel import Data, Text, ToolError
from toolkeel_basics.dates import datetime_tool
from toolkeel_basics.times.durations import Duration, parse_duration
from toolkeel_basics.times.moments import Moment, between, moved, parse_moment
from toolkeel_basics.times.patterns import written

NOW = datetime(2024, 5, 17, 22, 30, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "UTC")


def answer(operation: str, **arguments: Any) -> dict[str, Any]:
    result = datetime_tool(operation, **arguments)
    assert isinstance(result, Data)
    assert isinstance(result.value, dict)
    return result.value


def text(**arguments: Any) -> str:
    result = datetime_tool("format", **arguments)
    assert isinstance(result, Text)
    return str(result.content)


def refused(operation: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        datetime_tool(operation, **arguments)
    return str(caught.value)


def test_now_is_the_present_time_in_the_zones_that_are_asked_for() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    told = answer("now", zone="Asia/Tokyo", to_zones=["America/New_York", "+05:30"])
    times = [told["datetime"], *(entry["datetime"] for entry in told["in"])]
    for time in times:
        assert before <= datetime.fromisoformat(time) <= before + timedelta(seconds=60)
    assert told["zone"] == "Asia/Tokyo (JST)"
    assert [time[19:] for time in times][0::2] == ["+09:00", "+05:30"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-03-31T14:30", "2024-03-31T14:30:00+02:00"),
        ("2024-03-31T14:30:05.25Z", "2024-03-31T16:30:05.250000+02:00"),
        ("2024-03-31t14:30z", "2024-03-31T16:30:00+02:00"),
        ("20240331T143000+0530", "2024-03-31T11:00:00+02:00"),
        ("2024-10-27T02:30:00+01:00[Europe/Paris]", "2024-10-27T02:30:00+01:00"),
        ("1711848600", "2024-03-31T03:30:00+02:00"),
        (1711848600, "2024-03-31T03:30:00+02:00"),
        ("1711848600.25", "2024-03-31T03:30:00.250000+02:00"),
        ("1711848600123", "2024-03-31T03:30:00.123000+02:00"),
        ("-100000000", "1966-10-31T15:13:20+01:00"),
        ("Sun, 31 Mar 2024 01:30:00 GMT", "2024-03-31T03:30:00+02:00"),
        ("31 Mar 2024 01:30 -0500", "2024-03-31T08:30:00+02:00"),
    ],
)
def test_a_moment_is_read_in_every_common_form(value: str | int, expected: str) -> None:
    assert answer("info", value=value, zone="Europe/Berlin")["datetime"] == expected


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2024-02-29", "2024-02-29"),
        ("20240229", "2024-02-29"),
        ("2024-02", "2024-02-01"),
        ("2024-W09-4", "2024-02-29"),
        ("2024-W09", "2024-02-26"),
        ("2024-060", "2024-02-29"),
        ("0001-01-01", "0001-01-01"),
        ("9999-12-31", "9999-12-31"),
    ],
)
def test_a_day_has_no_time_and_no_zone(value: str, day: str) -> None:
    told = answer("info", value=value, zone="Europe/Berlin")
    assert told["date"] == day
    assert "datetime" not in told


def test_a_day_stays_itself_where_the_clocks_skip_its_midnight_or_all_of_it() -> None:
    assert answer("info", value="2011-12-30", zone="Pacific/Apia")["date"] == "2011-12-30"
    assert answer("add", value="2011-12-29", duration="1 day", zone="Pacific/Apia")["date"] == "2011-12-30"
    told = answer("convert", value="2024-09-08", zone="America/Santiago", to_zones=["UTC"])
    assert told["datetime"] == "2024-09-08T01:00:00-03:00"


def test_info_tells_weekday_calendar_week_and_days_of_the_month() -> None:
    told = answer("info", value="2024-12-30")
    assert told == {
        "date": "2024-12-30",
        "weekday": "Monday",
        "week": "2025-W01",
        "day_of_year": 365,
        "days_in_month": 31,
        "leap_year": True,
    }


def test_today_depends_on_the_zone() -> None:
    assert parse_moment("today", "Asia/Tokyo", NOW).time.date() == date(2024, 5, 18)
    assert parse_moment("today", "America/New_York", NOW).time.date() == date(2024, 5, 17)
    assert parse_moment("tomorrow", "", NOW).time.date() == date(2024, 5, 18)
    assert parse_moment("yesterday", "", NOW).time.date() == date(2024, 5, 16)


def test_a_time_that_comes_twice_is_pointed_out_and_the_offset_chooses() -> None:
    told = answer("info", value="2024-10-27T02:30", zone="Europe/Berlin")
    assert told["datetime"] == "2024-10-27T02:30:00+02:00"
    assert "comes twice in Europe/Berlin, at offset +02:00 and again at +01:00" in told["notes"][0]
    second = answer("info", value="2024-10-27T02:30+01:00", zone="Europe/Berlin")
    assert second["datetime"] == "2024-10-27T02:30:00+01:00"
    assert "notes" not in second


def test_a_time_that_the_clocks_skip_is_pointed_out() -> None:
    told = answer("info", value="2024-03-31T02:30", zone="Europe/Berlin")
    assert told["datetime"] == "2024-03-31T03:30:00+02:00"
    assert "2024-03-31 02:30:00 does not exist in Europe/Berlin" in told["notes"][0]


def test_a_time_without_offset_and_zone_is_said_to_be_read_as_utc() -> None:
    told = answer("info", value="2024-03-31T02:30")
    assert told["datetime"] == "2024-03-31T02:30:00+00:00"
    assert "read as UTC" in told["notes"][0]


def test_a_value_keeps_its_own_offset_where_no_zone_is_asked_for() -> None:
    assert answer("info", value="2024-03-31T02:30+05:30")["datetime"] == "2024-03-31T02:30:00+05:30"


def test_a_moment_is_converted_between_zones() -> None:
    told = answer(
        "convert",
        value="2024-07-01T12:00",
        zone="europe/berlin",
        to_zones=["America/New York", "Asia/Kolkata", "UTC-3"],
    )
    assert [entry["datetime"] for entry in told["in"]] == [
        "2024-07-01T06:00:00-04:00",
        "2024-07-01T15:30:00+05:30",
        "2024-07-01T07:00:00-03:00",
    ]


def test_a_day_is_converted_from_its_midnight_which_is_said() -> None:
    told = answer("convert", value="2024-07-01", zone="Europe/Berlin", to_zones=["UTC"])
    assert told["in"][0]["datetime"] == "2024-06-30T22:00:00+00:00"
    assert told["notes"] == ["2024-07-01 was taken as its midnight in Europe/Berlin"]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("PST", "America/Los_Angeles"),
        ("Berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Kolkota", "Asia/Kolkata"),
        ("Asia/Tokio", "Asia/Tokyo"),
    ],
)
def test_an_unknown_zone_is_answered_with_the_nearest(name: str, nearest: str) -> None:
    said = refused("convert", value="now", to_zones=[name])
    assert "there is no time zone" in said
    assert nearest in said


@pytest.mark.parametrize(
    "name", ["../etc/passwd", "/etc/localtime", "Mars/Phobos", "America", "x" * 5_000, " ", "\x00"]
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    assert "there is no time zone" in refused("info", value="now", zone=name)


@pytest.mark.parametrize(
    ("value", "duration", "expected"),
    [
        ("2024-01-31", "1 month", "2024-02-29"),
        ("2024-02-29", "P1Y", "2025-02-28"),
        ("2024-01-01", "-1 week 2 days", "2023-12-23"),
        ("2024-01-01", "2 weeks", "2024-01-15"),
        ("2024-12-31", "P1D", "2025-01-01"),
        ("2024-03-31", "-1 months", "2024-02-29"),
    ],
)
def test_days_and_months_are_added_by_the_calendar(value: str, duration: str, expected: str) -> None:
    assert answer("add", value=value, duration=duration)["date"] == expected


@pytest.mark.parametrize(
    ("value", "duration", "expected"),
    [
        ("2024-03-30T12:00", "1 day", "2024-03-31T12:00:00+02:00"),
        ("2024-03-30T12:00", "24 hours", "2024-03-31T13:00:00+02:00"),
        ("2024-03-31T01:59", "1 minute", "2024-03-31T03:00:00+02:00"),
        ("2024-10-27T02:30+02:00", "1 hour", "2024-10-27T02:30:00+01:00"),
        ("2024-10-27T02:30+01:00", "-1 hour", "2024-10-27T02:30:00+02:00"),
        ("2024-10-26T02:30", "1 day", "2024-10-27T02:30:00+02:00"),
        ("2024-10-28T02:30", "-1 day", "2024-10-27T02:30:00+01:00"),
        ("2024-03-30T02:30", "1 day", "2024-03-31T03:30:00+02:00"),
        ("2024-01-01T00:00", "P1M10DT2H30M0.5S", "2024-02-11T02:30:00.500000+01:00"),
        ("2024-01-01T00:00", "1.5 days", "2024-01-02T12:00:00+01:00"),
        ("2024-01-01T00:00", "1 day and 2 hours, 3 min", "2024-01-02T02:03:00+01:00"),
        ("2024-01-01T00:00", "1:30", "2024-01-01T01:30:00+01:00"),
        ("2024-01-01T00:00", "-90 min", "2023-12-31T22:30:00+01:00"),
        ("2024-01-01", "90 min", "2024-01-01T01:30:00+01:00"),
    ],
)
def test_days_keep_the_wall_time_and_hours_elapse(value: str, duration: str, expected: str) -> None:
    assert answer("add", value=value, duration=duration, zone="Europe/Berlin")["datetime"] == expected


def test_a_day_that_the_month_does_not_have_is_pointed_out() -> None:
    assert answer("add", value="2024-01-31", duration="1 month")["notes"] == ["February 2024 has no day 31"]


@pytest.mark.parametrize(
    ("value", "other", "difference", "days", "seconds"),
    [
        ("2024-01-31", "2024-03-01", "1 month 1 day", 30, 2_592_000),
        ("2024-03-01", "2024-01-31", "minus 1 month 1 day", -30, -2_592_000),
        ("2000-02-29", "2024-02-28", "23 years 11 months 30 days", 8_765, 757_296_000),
        ("2024-01-01", "2024-01-01", "no time", 0, 0),
        ("2024-03-30T12:00", "2024-03-31T12:00", "1 day", 0.958333, 82_800),
        ("2024-03-31", "2024-04-01", "1 day", 1, 86_400),
        ("2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00", "1 hour", 0.041667, 3_600),
        ("2024-01-01T00:00", "2024-01-01T00:00:00.5", "0.5 seconds", 0.000006, 0.5),
        ("0001-01-01", "9999-12-31", "9998 years 11 months 30 days", 3_652_058, 315_537_811_200),
    ],
)
def test_a_difference_is_told_by_the_calendar_and_as_time_that_elapses(
    value: str, other: str, difference: str, days: float, seconds: float
) -> None:
    told = answer("difference", value=value, other=other, zone="Europe/Berlin")
    assert (told["difference"], told["days"], told["seconds"]) == (difference, days, seconds)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("%A, %-d %B %Y, %H:%M %Z", "Tuesday, 5 March 2024, 09:07 EST"),
        ("%F %T %z %:z", "2024-03-05 09:07:03 -0500 -05:00"),
        ("%a %d %b %y %I:%M %p", "Tue 05 Mar 24 09:07 AM"),
        ("week %V of %G, day %u, %j", "week 10 of 2024, day 2, 065"),
        ("100%% %s %f %R", "100% 1709647623 000000 09:07"),
        ("iso", "2024-03-05T09:07:03-05:00"),
        ("rfc2822", "Tue, 05 Mar 2024 09:07:03 -0500"),
        ("http", "Tue, 05 Mar 2024 14:07:03 GMT"),
        ("unix", "1709647623"),
    ],
)
def test_a_moment_is_written_by_a_pattern(pattern: str, expected: str) -> None:
    assert text(value="2024-03-05T09:07:03", zone="America/New_York", pattern=pattern) == expected


@pytest.mark.parametrize(
    ("operation", "arguments", "words"),
    [
        ("info", {"value": "31/03/2024"}, "is not a date or time. Write ISO 8601"),
        ("info", {"value": "2024-02-30"}, "day is out of range for month"),
        ("info", {"value": "2024-13-01"}, "month must be in 1..12"),
        ("info", {"value": "March 5, 2024"}, "is not a date or time"),
        ("info", {"value": ""}, "is not a date or time"),
        ("info", {"value": "x" * 500}, "the limit is 100 characters"),
        ("info", {"value": 10**40}, "is not a date or time"),
        ("info", {"value": "0001-01-01T00:00", "zone": "Asia/Tokyo"}, "outside of the years 1 to 9999"),
        ("convert", {"value": "now"}, "'convert' needs to_zones"),
        ("convert", {"value": "now", "to_zones": ["UTC"] * 51}, "the limit is 50"),
        ("add", {"value": "now"}, "'add' needs duration"),
        ("add", {"value": "now", "duration": "soon"}, "'soon' is not a duration"),
        ("add", {"value": "now", "duration": "1 fortnight"}, "is not a duration"),
        ("add", {"value": "now", "duration": "P"}, "is not a duration"),
        ("add", {"value": "now", "duration": "PT"}, "is not a duration"),
        ("add", {"value": "now", "duration": "0.5 months"}, "a part of a month or year has no fixed length"),
        ("add", {"value": "now", "duration": "1 d " * 200}, "the limit is 200 characters"),
        ("add", {"value": "now", "duration": "99999999999 years"}, "outside of the years 1 to 9999"),
        ("add", {"value": "now", "duration": "999999999999 days"}, "outside of the years 1 to 9999"),
        ("add", {"value": "9999-12-31T23:00Z", "duration": "3 hours"}, "outside of the years 1 to 9999"),
        ("format", {"value": "now"}, "'format' needs pattern"),
        ("format", {"value": "now", "pattern": "%q"}, "%q is not a directive"),
        ("format", {"value": "now", "pattern": "%1000000000d"}, "%1 is not a directive"),
        ("format", {"value": "now", "pattern": "tomorrow"}, "has no % directive"),
        ("format", {"value": "now", "pattern": "%d" * 501}, "the limit is 1,000 characters"),
        ("info", {"value": "now", "zone": "+25:00"}, "is not below 24 hours"),
    ],
)
def test_what_cannot_be_told_says_why(operation: str, arguments: dict[str, Any], words: str) -> None:
    assert words in refused(operation, **arguments)


zones = st.sampled_from(ZONES)
instants = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))


@settings(deadline=None, max_examples=300)
@given(instants, instants, zones, zones)
def test_the_difference_added_to_the_first_moment_is_the_second(
    first: datetime, second: datetime, zone: str, other: str
) -> None:
    start, end = first.astimezone(zoneinfo.ZoneInfo(zone)), second.astimezone(zoneinfo.ZoneInfo(other))
    duration = between(start, end)
    assert moved(Moment(start), duration).time.astimezone(UTC) == second
    assert min(duration.months, duration.days, duration.microseconds) >= 0 or (
        max(duration.months, duration.days, duration.microseconds) <= 0
    )


@given(instants, zones)
def test_a_moment_written_in_iso_form_reads_back_as_itself(instant: datetime, zone: str) -> None:
    time = instant.astimezone(zoneinfo.ZoneInfo(zone))
    if time.utcoffset() is not None and time.utcoffset().seconds % 60 == 0:  # type: ignore[union-attr]
        assert parse_moment(time.isoformat(), "", NOW).time.astimezone(UTC) == instant
        assert parse_moment(time.isoformat(), zone, NOW).time == time


@given(st.integers(-2_000, 2_000), st.integers(-9_999, 9_999), st.integers(-(10**13), 10**13))
def test_a_duration_reads_back_from_its_iso_form_and_its_words(months: int, days: int, microseconds: int) -> None:
    sign = -1 if months < 0 else 1
    duration = Duration(months, sign * abs(days), sign * abs(microseconds))
    assert parse_duration(duration.iso()) == duration
    if duration != Duration():
        assert parse_duration(duration.words().replace("minus ", "-")) == duration


@given(st.datetimes(datetime(1000, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)))
def test_patterns_agree_with_the_c_library(time: datetime) -> None:
    for pattern in ("%Y-%m-%d %H:%M:%S.%f", "%A %a %B %b %p %I %j %u %y", "%G-W%V", "%z %%"):
        assert written(time, pattern) == time.strftime(pattern)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(["info", "convert", "add", "difference", "format"]),
    st.one_of(st.text(max_size=40), st.text("0123456789-+:.TZWP[] ", max_size=30), st.integers()),
    st.one_of(st.text(max_size=20), st.sampled_from(ZONES)),
    st.text(max_size=30),
)
def test_any_arguments_are_answered_or_refused(operation: str, value: str | int, zone: str, other: str) -> None:
    try:
        result = datetime_tool(
            operation, value=value, zone=zone, to_zones=[zone], other=other, duration=other, pattern=other
        )
    except ToolError as error:
        result = str(error)
    assert result
