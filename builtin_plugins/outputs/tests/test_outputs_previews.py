"""Previews: each type is found and shown in its own way, within the limit, whatever the bytes."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel import Preview
from toolkeel_outputs.content import Content
from toolkeel_outputs.previews import Limits, make_preview

LIMIT = 4_000
ROWS = [
    {"id": number, "title": f"Задача {number}", "labels": ["bug", "ui"], "author": {"login": "ann"}, "body": "x" * 300}
    for number in range(200)
]


def preview(data: bytes | str, media_type: str = "", limit: int = LIMIT, **limits: int) -> Preview:
    found = make_preview(Content(data.encode() if isinstance(data, str) else data), media_type, Limits(limit, **limits))
    assert len(found.text) <= limit
    return found


# What is whole -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("text", ["", "x", "а" * LIMIT, '{"a": 1}', "a,b\n1,2\n3,4\n"])
def test_what_fits_is_shown_as_it_is(text: str) -> None:
    found = preview(text)
    assert found.whole
    assert found.text == text


@pytest.mark.requirement("C4")
def test_one_character_more_is_not_whole() -> None:
    assert not preview("а" * (LIMIT + 1)).whole


# JSON --------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_shows_its_first_five_items_and_counts_the_rest(indent: int | None) -> None:
    found = preview(json.dumps(ROWS, indent=indent, ensure_ascii=False))
    assert (found.kind, found.shown, found.total, found.unit) == ("json", 5, 200, "items")
    assert all(f'"Задача {number}"' in found.text for number in range(5))
    assert "Задача 5" not in found.text
    assert '"author": {"login": "ann"}' in found.text
    assert "characters left out" in found.text  # the body is shortened
    assert "… 195 more" in found.text


@pytest.mark.requirement("C4")
def test_a_json_object_shows_its_first_five_keys_and_names_the_others() -> None:
    value = {"total": 200, "data": ROWS, "empty": [], "nested": {"a": {"b": 1}}, "next": None, "sixth": 6, "seventh": 7}
    found = preview(json.dumps(value))
    assert (found.kind, found.shown, found.total, found.unit) == ("json", 5, 7, "keys")
    assert '"total": 200' in found.text
    assert "… 196 more items" in found.text
    assert '"nested": {"a": {"b": 1}}' in found.text
    assert '… 2 more keys: "sixth", "seventh"' in found.text


@pytest.mark.requirement("C4")
def test_json_numbers_are_shown_as_they_are_written() -> None:
    text = "[" + ",".join(["1.10", "12345678901234567890123", "1e5", "-0"] * 2_000) + "]"
    assert "[\n  1.10,\n  12345678901234567890123,\n  1e5,\n  -0,\n  1.10,\n  … 7,995 more\n]" in preview(text).text


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (json.dumps(ROWS)[:-1], "Input data was truncated"),
        (json.dumps(ROWS)[:-1] + ",]", "trailing comma in array"),
        (json.dumps(ROWS).replace('"id": 3', '"id": NaN'), "invalid character"),
        ('{"a": 01, "b": "' + "x" * LIMIT + '"}', "byte"),
    ],
)
def test_json_that_is_broken_says_so_and_is_shown_as_text(broken: str, why: str) -> None:
    found = preview(broken)
    assert found.kind == "text"
    first, _, rest = found.text.partition("\n")
    assert first.startswith("Looks like JSON but is not valid (")
    assert why in first
    assert rest.startswith(broken[:30])


@pytest.mark.requirement("C4")
def test_log_lines_that_begin_like_json_are_plain_text() -> None:
    found = preview("".join(f"[{number}] worker started\n" for number in range(1_000)))
    assert found.kind == "text"
    assert found.text.startswith("[0] worker started\n[1] worker")


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    "first",
    [
        "[83 matches in 13 files; the first 40]",
        "[12, apples and pears]",
        "[1, 2] started",
        "[2026-01-02, 12:00] INFO up",
        '["warn"] low',
        '{"oops" he said}',
        "{}: nothing",
    ],
)
def test_text_whose_first_line_merely_begins_like_json_is_plain_text(first: str) -> None:
    text = first + "\n" + "src/a.py:1: import os\n" * 500
    found = preview(text)
    assert found.kind == "text"
    assert found.text.startswith(first)
    assert preview(text, "application/json").text.startswith("Looks like JSON but is not valid (")


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (", ", " : "), (",", ":  ")])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("form", ["array", "object", "lines", "start"])
def test_items_are_shown_as_the_output_spells_them(separators: tuple[str, str], ascii_only: bool, form: str) -> None:
    rows = [{"id": n, "naïve": 'Zoë "№"', "tags": ["a", "b"], "sub": {"x": None, "y": 1.50}} for n in range(400)]

    def spelled(value: object) -> str:
        return json.dumps(value, separators=separators, ensure_ascii=ascii_only)

    if form == "lines":
        text = "\n".join(map(spelled, rows))
    elif form == "object":
        text = spelled({"n\u00e4me": "x", "rows": rows})
    else:
        text = spelled(rows)
    text = text[:-1] + "1" * 20_000_000 + "]" if form == "start" else text  # over what is read whole
    found = preview(text)
    assert spelled(rows[0])[1:-1] in found.text
    if form == "object":
        assert spelled({"n\u00e4me": "x"})[1:-1] + "," in found.text


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("depth", [4_000, 5_000, 200_000])
@pytest.mark.parametrize("unit", ["[]", '{"a":}'])
def test_deep_nesting_is_shown_and_harms_nothing(depth: int, unit: str) -> None:
    opening, closing = (unit[:-1], unit[-1])
    found = preview(opening * depth + "1" + closing * depth)
    assert found.kind == "json"
    assert found.text.count(opening[0]) < 20


@pytest.mark.requirement("C4")
def test_a_value_is_never_shown_cut_inside_a_character() -> None:
    found = preview(json.dumps([{"text": "𝄞" * 5_000}, {"text": "и" * 70_000}], ensure_ascii=False))
    assert "\ufffd" not in found.text
    assert "𝄞" in found.text


@pytest.mark.requirement("C4")
def test_many_long_keys_leave_room_for_every_item() -> None:
    row = {f"key_{number}_" + "k" * 60: "v" * 500 for number in range(100)}
    found = preview(json.dumps([row] * 50))
    assert found.text.count('"key_0_') == 5
    assert "more keys" in found.text


@pytest.mark.requirement("C4")
def test_json_behind_a_byte_order_mark_is_json() -> None:
    assert preview(b"\xef\xbb\xbf" + json.dumps(ROWS).encode()).kind == "json"


def test_a_lone_json_string_of_a_json_tool_is_json() -> None:
    found = preview(json.dumps("word " * 5_000), "application/json")
    assert (found.kind, found.unit, found.shown) == ("json", "values", 1)
    assert found.text.startswith('"word word')


# JSON lines --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("media_type", ["", "application/json", "application/x-ndjson", "text/plain"])
def test_json_lines_show_the_first_five_objects_each_on_a_line(media_type: str) -> None:
    found = preview("\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS) + "\n", media_type)
    assert (found.kind, found.shown, found.total, found.unit) == ("jsonl", 5, 200, "objects")
    lines = found.text.splitlines()
    assert len(lines) == 6
    assert [f'{{"id": {number}, "title": "Задача {number}"' in lines[number] for number in range(5)] == [True] * 5
    assert lines[5] == "… 195 more"


@pytest.mark.requirement("C4")
def test_json_lines_with_a_broken_one_say_so() -> None:
    lines = [json.dumps(row) for row in ROWS]
    found = preview("\n\n".join([*lines[:50], "oops", *lines[50:]]))
    assert found.kind == "jsonl"
    assert found.text.startswith("Not every line is valid JSON.\n")
    assert (found.shown, found.total) == (5, None)


@pytest.mark.requirement("C4")
def test_one_json_object_over_many_lines_is_not_taken_for_json_lines() -> None:
    assert preview(json.dumps({"rows": ROWS}, indent=1)).kind == "json"


# HTML and XML ------------------------------------------------------------------------------------------------------

PAGE = (
    "<!doctype html>\n<html><head><title>Prices &amp; more</title><style>p { color: red }</style>"
    "<script>if (a < b) { document.write('<p>not shown</p>') }</script></head><body><h1>Список</h1>"
    "<table><tr><td>Tea</td><td>3&nbsp;€</td></tr></table>"
)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("media_type", ["", "text/html; charset=utf-8"])
def test_html_shows_its_title_and_visible_text(media_type: str) -> None:
    found = preview(PAGE + "<p>One   <b>two</b>\n three</p><!-- note -->" * 500, media_type)
    assert found.kind == "html"
    assert found.text.startswith("Title: Prices & more\nСписок\nTea | 3 €\nOne two three\nOne two three\n")
    assert not any(hidden in found.text for hidden in ("color", "not shown", "note", "<"))
    assert found.unit == "characters of its text"


@pytest.mark.requirement("C4")
def test_html_whose_text_fits_counts_all_of_it() -> None:
    found = preview(PAGE + "<script>" + "x" * LIMIT + "</script>end")
    assert found.shown == found.total == len(found.text)
    assert found.text.endswith("end")


@pytest.mark.requirement("C4")
def test_html_that_shows_nothing_is_shown_as_it_is_written() -> None:
    found = preview("<html><script>" + "var a;\n" * 1_000)
    assert found.text.startswith(
        "HTML without visible text at its start; shown as it is written.\n<html><script>var a;"
    )


@pytest.mark.parametrize(
    "unit", ["<a b='", "<a ' ", "<!--a--", "<![x[", "</", "<", "&#", "<script>", "<!doctype [<", "<svg>"]
)
def test_html_made_to_choke_parsers_is_answered(unit: str) -> None:
    preview("<html><body>" + unit * 60_000)


@pytest.mark.requirement("C4")
def test_xml_shows_its_root_and_first_ten_lines() -> None:
    items = "".join(f'  <item id="{number}">text</item>\n' for number in range(500))
    found = preview(f'<?xml version="1.0"?>\n<!-- made by hand -->\n<feed version="2" xmlns="urn:x">\n{items}</feed>\n')
    lines = found.text.splitlines()
    assert (found.kind, found.shown, found.total, found.unit) == ("xml", 10, 504, "lines")
    assert lines[0] == 'Root element: <feed version="2" xmlns="urn:x">'
    assert len(lines) == 11
    assert lines[10] == '  <item id="6">text</item>'


@pytest.mark.requirement("C4")
def test_xml_on_one_line_is_broken_at_its_tags() -> None:
    found = preview("<feed>" + "<item><name>Чай</name></item>" * 1_000 + "</feed>")
    assert found.kind == "xml"
    assert "<feed>\n<item>\n<name>Чай</name>\n</item>\n<item>" in found.text


@pytest.mark.requirement("C4")
def test_xml_entities_are_never_expanded() -> None:
    bomb = '<!DOCTYPE lolz [<!ENTITY a "lol">' + "".join(
        f'<!ENTITY {chr(98 + level)} "{f"&{chr(97 + level)};" * 10}">' for level in range(20)
    )
    found = preview(f'<?xml version="1.0"?>\n{bomb}]>\n<lolz x="&u;">&u;</lolz>\n' + "<a/>\n" * 2_000)
    assert found.kind == "xml"
    assert found.text.startswith("Root element: <lolz>")


# CSV ---------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_shows_its_header_and_five_rows_by_any_delimiter(delimiter: str, mark: str) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["id", "name", "note"])
    writer.writerows([number, f"Анна {number}", f'said "hi"{delimiter}\nthen left'] for number in range(300))
    found = preview(mark + out.getvalue())
    assert (found.kind, found.shown, found.total, found.unit) == ("csv", 5, 300, "rows")
    lines = found.text.splitlines()
    assert lines[0].startswith("3 columns, separated by ")
    assert lines[1] == "id | name | note"
    assert lines[2] == f'0 | Анна 0 | said "hi"{delimiter}⏎then left'
    assert len(lines) == 7


@pytest.mark.requirement("C4")
def test_csv_with_hundreds_of_columns_shows_the_first_ones() -> None:
    header = ",".join(f"column_{number}" for number in range(800))
    found = preview("\n".join([header, *[",".join(["value"] * 800)] * 20]))
    assert found.kind == "csv"
    assert found.text.startswith("800 columns, separated by comma:\ncolumn_0 | ")
    assert found.text.count("more cells") == 6


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    "line",
    [
        "2026-01-01 12:00:00,123 INFO all is well",
        "Dear reader, this is prose",
        "    if a, b:",
        "| a | b |",
        "def f(a, b): return a",
    ],
)
def test_text_with_commas_is_not_taken_for_csv(line: str) -> None:
    assert preview(f"{line}\n" * 1_000).kind == "text"


@pytest.mark.requirement("C4")
def test_a_table_that_a_tool_calls_csv_is_csv_without_a_header_that_reads_like_one() -> None:
    found = preview("1,2\n3,4\n" * 2_000, "text/csv")
    assert (found.kind, found.total) == ("csv", 3_999)


# Text and binary data ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_text_shows_its_first_sixty_lines(newline: str) -> None:
    found = preview("".join(f"line {number}{newline}" for number in range(1_000)))
    assert (found.kind, found.shown, found.total, found.unit) == ("text", 60, 1_000, "lines")
    assert found.text == "\n".join(f"line {number}" for number in range(60))


@pytest.mark.requirement("C4")
def test_a_long_line_of_text_is_cut_in_the_middle_with_a_count() -> None:
    found = preview("short\n" + "A" * 5_000 + "Z" * 5_000 + "\n" + "short\n" * 1_000)
    line = found.text.splitlines()[1]
    head, _, tail = line.partition(" … [")
    count, _, tail = tail.partition(" characters left out] … ")
    assert len(head) + int(count.replace(",", "")) + len(tail) == 10_000
    assert (set(head), set(tail)) == ({"A"}, {"Z"})


@pytest.mark.requirement("C4")
def test_one_line_of_text_takes_the_whole_preview_and_says_how_many_bytes_are_hidden() -> None:
    found = preview("ж" * 1_000_000)
    assert 3_900 < len(found.text) <= LIMIT
    assert found.unit == "bytes"
    assert found.total == 2_000_000
    assert found.shown == 2 * found.text.count("ж")


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\x89PNG\r\n\x1a\n\x00", "PNG image"),
        (b"%PDF-1.7\n", "PDF document"),
        (b"PK\x03\x04\x00", "ZIP archive"),
        (b"SQLite format 3\x00", "SQLite database"),
        ("text".encode("utf-16"), "text in UTF-16"),
        (b"\x00\x01", "of a type that is not known"),
    ],
)
def test_binary_data_says_what_it_is_and_shows_its_first_bytes(start: bytes, name: str) -> None:
    data = start + random.Random(1).randbytes(50_000)
    found = preview(data, "text/plain")
    assert (found.kind, found.total, found.unit) == ("binary", len(data), "bytes")
    assert found.text.startswith(f"Not text: {name}")
    assert f"{len(data):,} bytes" in found.text
    assert f"00000000  {data[:16].hex(' ')}  |" in found.text
    assert found.shown == 256


@pytest.mark.requirement("C4")
def test_text_with_a_few_bytes_that_are_not_utf_8_is_still_text() -> None:
    found = preview("crème brûlée, ".encode("latin-1") * 1_000)
    assert found.kind == "text"
    assert found.text.startswith("cr\ufffdme br\ufffdl\ufffde")


# Anything ----------------------------------------------------------------------------------------------------------

MEDIA_TYPES = st.sampled_from(
    [
        "",
        "json",
        "application/json",
        "application/x-ndjson",
        "text/html",
        "text/xml",
        "text/csv",
        "text/plain",
        "a/b+xml",
        ";",
    ]
)
FRAGMENTS = st.sampled_from(
    [*"[]{}\":,\\\n\r<>a1ы𝄞 \t;|&='", "null", "<a", "</a>", "<!--", "<?xml", "<html>", "]]>", "<![CDATA[", "\ufeff"]
) | st.just("\x00")


@pytest.mark.requirement("C4")
@given(
    data=st.binary(max_size=300) | st.lists(FRAGMENTS, max_size=120).map(lambda parts: "".join(parts).encode()),
    media_type=MEDIA_TYPES,
    times=st.sampled_from([1, 1, 40]),
    limit=st.integers(60, 400),
)
@settings(deadline=None, max_examples=600)
def test_any_bytes_have_a_preview_within_its_limit(data: bytes, media_type: str, times: int, limit: int) -> None:
    data *= times
    found = preview(data, media_type, limit)
    assert found.shown >= 0
    assert found.total is None or found.shown <= found.total
    if found.whole:
        assert found.text.encode() == data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=10), inner, max_size=8),
    max_leaves=40,
)


@pytest.mark.requirement("C4")
@given(value=st.lists(JSON, min_size=1, max_size=20), ascii_only=st.booleans())
@settings(deadline=None)
def test_any_json_array_is_json_whose_items_are_counted(value: list[object], ascii_only: bool) -> None:
    found = preview(json.dumps(value, ensure_ascii=ascii_only), "application/json", 400)
    if not found.whole:
        assert (found.kind, found.total) == ("json", len(value))
        assert found.shown == min(5, len(value))
