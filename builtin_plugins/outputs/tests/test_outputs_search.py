"""Search in outputs: any script and letter case, lines around, parts of long lines, and how it goes on."""

from __future__ import annotations

from typing import Any

import pytest

LOG = "".join(f"{number} {'ERROR' if number % 50 == 0 else 'info'} step\n" for number in range(1, 1_001))


@pytest.mark.requirement("C5")
def test_search_shows_matching_lines_with_numbers_and_lines_around(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(LOG.encode()).ref
    answer = kept.read(ref, mode="search", query="error", context=1, end=150)
    assert answer == (
        "49- 49 info step\n50: 50 ERROR step\n51- 51 info step\n--\n"
        "99- 99 info step\n100: 100 ERROR step\n101- 101 info step\n--\n"
        "149- 149 info step\n150: 150 ERROR step\n151- 151 info step\n"
        "[3 matching lines shown; what stands from line 1 to line 150 was searched to the end.]"
    )


@pytest.mark.requirement("C5")
def test_lines_around_neighbouring_matches_are_shown_once(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(b"a\nhit\nb\nc\nhit\nd\nhit\nhit\ne\nf\n").ref
    answer = kept.read(ref, mode="search", query="HIT", context=1)
    assert kept.body(answer) == "1- a\n2: hit\n3- b\n4- c\n5: hit\n6- d\n7: hit\n8: hit\n9- e\n"


@pytest.mark.requirement("C5")
@pytest.mark.parametrize(
    ("text", "query"),
    [("ПрИвЕт мир", "привет"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("東京タワー", "東京"), ("K", "K".lower())],
)
def test_search_ignores_letter_case_in_every_script(reader: Any, text: str, query: str) -> None:
    kept = reader()
    ref = kept.keep(f"other\n{text}\n".encode()).ref
    assert f"2: {text}" in kept.read(ref, mode="search", query=query)


@pytest.mark.requirement("C5")
def test_the_words_themselves_are_searched_for_unless_regex_is_set(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(b"a.c\nabc\n(x\n").ref
    assert kept.body(kept.read(ref, mode="search", query="A.C", context=0)) == "1: a.c\n"
    assert kept.body(kept.read(ref, mode="search", query="^A.C$", context=0, regex=True)) == "1: a.c\n2: abc\n"
    assert kept.body(kept.read(ref, mode="search", query="(x", context=0)) == "3: (x\n"


@pytest.mark.requirement("C5")
def test_a_regular_expression_that_would_never_end_elsewhere_answers(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(b"a" * 100_000 + b"!").ref
    assert "No line" in kept.read(ref, mode="search", query="(a+)+$", regex=True)


@pytest.mark.requirement("C5")
def test_search_that_finds_nothing_says_where_it_looked(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(LOG.encode()).ref
    assert kept.read(ref, mode="search", query="nowhere") == (
        '[No line in the output matches "nowhere", in any letter case.]'
    )
    assert 'No line in what stands from line 1 to line 1 matches "step 9"' in kept.read(
        ref, mode="search", query="step 9", end=1
    )


@pytest.mark.requirement("C5")
def test_following_a_search_finds_every_match_once(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(LOG.encode()).ref
    options: dict[str, Any] | None = {"ref": ref, "mode": "search", "query": "error", "lines": 3, "context": 0}
    found: list[str] = []
    while options is not None:
        answer = kept.read(**options)
        found += [line.partition(":")[0] for line in answer.splitlines() if "ERROR" in line]
        options = kept.following(answer)
    assert found == [str(number) for number in range(50, 1_001, 50)]


@pytest.mark.requirement("C5")
def test_following_a_search_over_answers_that_are_full_finds_every_match(reader: Any) -> None:
    kept = reader(4_000)
    ref = kept.keep("".join(f"{number} {'д' * 300}\n" for number in range(200)).encode()).ref
    options: dict[str, Any] | None = {"ref": ref, "mode": "search", "query": "Д", "context": 5}
    found: list[int] = []
    while options is not None:
        answer = kept.read(**options)
        found += [int(line.partition(":")[0]) for line in answer.splitlines() if ": " in line[:6]]
        options = kept.following(answer)
    assert found == list(range(1, 201))


@pytest.mark.requirement("C5")
def test_a_long_line_shows_a_thousand_bytes_each_side_of_its_first_ten_matches(reader: Any) -> None:
    kept = reader()
    block = "." * 9_990 + "needle" + "." * 4
    ref = kept.keep((block * 30).encode()).ref
    answer = kept.read(ref, mode="search", query="Needle")
    rows = answer.splitlines()
    assert rows[0] == ('1: a line of 300,000 bytes, 10 matches shown, more from unit="bytes", start=109990:')
    assert rows[1] == f"  bytes 8,990 to 10,996: …{'.' * 1_000}needle{'.' * 1_000}…"
    assert len(rows) == 12
    seen, options = 10, kept.following(answer)
    assert (options["unit"], options["start"]) == ("bytes", 109_990)
    while options is not None:
        answer = kept.read(**options)
        seen += answer.count("needle…") + answer.count("needle.")
        options = kept.following(answer)
    assert seen == 30


@pytest.mark.requirement("C5")
def test_near_matches_in_a_long_line_are_shown_in_one_piece(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(b"x" * 5_000 + b"hit hit hit" + b"x" * 5_000).ref
    rows = kept.read(ref, mode="search", query="hit").splitlines()
    assert rows[0] == "1: a line of 10,011 bytes, 3 matches shown:"
    assert rows[1] == f"  bytes 4,000 to 6,011: …{'x' * 1_000}hit hit hit{'x' * 1_000}…"


@pytest.mark.requirement("C5")
def test_a_match_as_long_as_the_line_is_shown_at_its_start(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(b"y" * 300_000).ref
    answer = kept.read(ref, mode="search", query="y.*y", regex=True)
    assert len(answer) < 3_000
    assert "1 match shown" in answer


@pytest.mark.requirement("C5")
def test_long_lines_around_a_match_are_cut(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(b"z" * 9_000 + b"\nhit\n").ref
    assert kept.body(kept.read(ref, mode="search", query="hit")) == f"1- {'z' * 200} … [9,000 bytes]\n2: hit\n"


@pytest.mark.requirement("C5")
def test_words_over_the_end_of_a_line_are_found(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(b"one\ntwo\nthree\n").ref
    assert kept.body(kept.read(ref, mode="search", query="ONE\nTWO", context=0)) == "1: one\n2: two\n"


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("query", ["a\u2028b", "a\x85b", "a\u202eb", 'say "a"', "a\\b", "𝄞"])
def test_the_call_that_goes_on_stays_on_one_line_and_finds_the_same_words(reader: Any, query: str) -> None:
    kept = reader()
    ref = kept.keep(f"{query}\n{query}\n".encode()).ref
    options = kept.following(kept.read(ref, mode="search", query=query, lines=1))
    assert options == {"ref": ref, "mode": "search", "query": query, "lines": 1, "start": 2}
    assert "1 matching line shown" in kept.read(**options)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    ("data", "query", "words"),
    [
        ('{"id":1,"status":"held"}', '"status": "held"', 'JSON that writes "id":…'),
        ('{\n  "id": 1,\n  "status": "held"\n}', '"id": 1, "status": "held"', 'JSON that writes "id": …'),
        ('[{"name":"Zo\\u00eb"}]', '"name":"Zoë"', "outside ASCII are written as \\uXXXX"),
        ('[{"name":"long and longer"}]', '"long … [9 characters left out] … ger"', "search for the words on one side"),
        ("a\nb\n", "a\nc", "within one line"),
    ],
)
def test_a_search_that_finds_nothing_says_how_the_text_is_spelled(
    reader: Any, data: str, query: str, words: str
) -> None:
    reading = reader()
    answer = reading.read(reading.keep(data.encode()).ref, mode="search", query=query)
    assert answer.startswith("[No line in the output matches")
    assert words in answer


@pytest.mark.requirement("C4")
def test_a_search_for_plain_words_that_finds_nothing_says_only_so(reader: Any) -> None:
    reading = reader()
    answer = reading.read(reading.keep(b'{"id":1}').ref, mode="search", query="late")
    assert answer == '[No line in the output matches "late", in any letter case.]'
