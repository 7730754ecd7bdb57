"""Stored outputs: who may read them, how long they stay, which goes first."""

from __future__ import annotations

import contextlib
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from toolkeel import ToolError


def said(reader: Any, ref: str, **where: str) -> str:
    with pytest.raises(ToolError) as caught:
        reader.read(ref, **where)
    return str(caught.value)


@pytest.mark.requirement("C3")
def test_outputs_are_kept_as_the_very_bytes_that_were_given(reader: Any) -> None:
    data = b"x" * 100_000
    assert reader().keep(data).content.buffer is data


@pytest.mark.requirement("C3")
def test_a_ref_is_short_and_never_the_same(reader: Any) -> None:
    kept = reader()
    refs = {kept.keep(b"data", agent=str(number)).ref for number in range(500)}
    assert len(refs) == 500
    assert all(re.fullmatch(r"out_[0-9a-hjkmnp-tv-z]{13}", ref) for ref in refs)


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("where", [{"session": "s2"}, {"agent": "other"}])
def test_a_ref_of_another_session_reads_like_one_that_never_was(reader: Any, where: dict[str, str]) -> None:
    kept = reader()
    ref = kept.keep(b"secret\n").ref
    never = "out_" + "0" * 13
    assert said(kept, ref, **where) == said(kept, never).replace(never, ref)
    kept.clock.now += 4_000
    assert said(kept, ref, **where) == said(kept, never).replace(never, ref)


@pytest.mark.requirement("C3")
def test_an_expired_ref_says_so_and_names_the_call_to_repeat(reader: Any) -> None:
    kept = reader()
    ref = kept.keep(b"data\n").ref
    kept.clock.now += 3_599
    assert kept.read(ref).startswith("data\n")
    kept.clock.now += 1
    text = said(kept, ref)
    assert text == (
        f"the output {ref} of orders(n=5) has expired: outputs are kept for 1 hour. "
        "Call orders again and use the ref of its new result"
    )
    assert kept.store.size == 0


@pytest.mark.requirement("C3")
def test_the_oldest_output_of_the_same_agent_makes_room_for_a_new_one(reader: Any) -> None:
    kept = reader(max_entries=3)
    other = kept.keep(b"other\n", agent="other").ref
    refs = [kept.keep(f"{number}\n".encode(), session=f"s{number % 2}").ref for number in range(4)]
    assert "has expired: it made room for newer ones, 3 are kept for each agent" in said(kept, refs[0], session="s0")
    assert kept.read(refs[1], session="s1").startswith("1\n")
    assert kept.read(other, agent="other").startswith("other\n")
    assert len(kept.store) == 4


@pytest.mark.requirement("C3")
def test_the_oldest_output_of_all_makes_room_where_the_store_is_full(reader: Any) -> None:
    kept = reader(max_bytes=100)
    first = kept.keep(b"a" * 60, agent="one").ref
    kept.keep(b"b" * 60, agent="two")
    assert "it made room for newer ones, 100 bytes are kept in all" in said(kept, first, agent="one")
    assert kept.store.size == 60


def test_a_store_that_many_threads_use_stays_in_its_budget(reader: Any) -> None:
    kept = reader(max_bytes=1_000, max_entries=5)

    def work(number: int) -> None:
        for _ in range(200):
            ref = kept.keep(b"x" * 90, agent=str(number % 3)).ref
            with contextlib.suppress(ToolError):
                kept.read(ref, agent=str(number % 3))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert kept.store.size == 90 * len(kept.store)
    assert len(kept.store) == 11


def test_what_is_remembered_of_expired_outputs_stays_bounded(reader: Any) -> None:
    kept = reader(max_entries=1)
    first = kept.keep(b"x").ref
    for _ in range(5_001):
        last = kept.keep(b"x").ref
    assert "there is no output" in said(kept, first)
    assert kept.read(last)
