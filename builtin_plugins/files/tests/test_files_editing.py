"""file_edit: exact replacements that match once, or say why not."""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolkeel import ToolError
from toolkeel_files import editing, writing
from toolkeel_files.editing import Edit

pytestmark = pytest.mark.requirement("G4")

MOST = 1 << 20
TEXTS = st.text(st.sampled_from("ab \tü\n"), max_size=60)
PARTS = st.text(st.sampled_from("ab \tü\n"), min_size=1, max_size=4)


def edit(text: str, *edits: Edit) -> str:
    return editing.apply(text, edits, MOST).text


def occurrences(text: str, part: str) -> int:
    return sum(text.startswith(part, at) for at in range(len(text)))


def test_one_match_is_replaced(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\ny = 2\n")
    assert call("file_edit", "a.py", old="y = 2", new="y = 3") == "edited a.py: 1 replacement, at line 2"
    assert (workspace / "a.py").read_text() == "x = 1\ny = 3\n"


def test_several_matches_are_refused_with_their_lines(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.py").write_text("x\ny\nx\nx x\n")
    with pytest.raises(ToolError, match=r"old occurs 4 times, at lines 1, 3, 4, 4. Quote more of the lines"):
        call("file_edit", "a.py", old="x", new="z")
    assert (workspace / "a.py").read_text() == "x\ny\nx\nx x\n"
    assert call("file_edit", "a.py", old="x", new="z", replace_all=True).endswith("4 replacements, at lines 1, 3, 4, 4")
    assert (workspace / "a.py").read_text() == "z\ny\nz\nz z\n"


def test_overlapping_matches_are_several() -> None:
    with pytest.raises(ToolError, match="occurs 2 times"):
        edit("aaa", Edit(old="aa", new="b"))


def test_a_difference_in_blanks_alone_is_shown(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.py").write_text("def f():\n\treturn 1\n\n")
    with pytest.raises(ToolError) as refused:
        call("file_edit", "a.py", old="def f():\n    return 1", new="")
    assert str(refused.value) == (
        "a.py: old does not occur in the file, but text that differs only in blanks is at line 1: "
        'line 2 is "\\treturn 1" where old has "    return 1"'
    )


def test_a_difference_in_case_alone_is_shown() -> None:
    with pytest.raises(
        ToolError, match='differs only in case or blanks is at line 1: line 1 is "Hello" where old has "hello"'
    ):
        edit("Hello", Edit(old="hello", new="x"))


def test_without_a_match_the_nearest_lines_are_shown(call: Callable[..., str], workspace: Path) -> None:
    lines = [f"value_{number} = compute({number})" for number in range(100)]
    (workspace / "a.py").write_text("\n".join(lines))
    with pytest.raises(
        ToolError, match='old does not occur in the file; nearest: line 43 "value_42 = compute\\(42\\)"'
    ):
        call("file_edit", "a.py", old="value_42 = compote(42)", new="x")


def test_looking_for_the_nearest_lines_stays_quick_in_a_large_file() -> None:
    text = "\n".join(f"the value {number} of many" for number in range(200_000))
    with pytest.raises(ToolError, match="nearest"):
        edit(text, Edit(old="the value 77 of munny", new="x"))


def test_several_edits_are_made_in_order_or_not_at_all(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.py").write_text("a\nb\n")
    with pytest.raises(ToolError, match=r"a.py: edit 2 of 2: old does not occur"):
        call("file_edit", "a.py", edits=[Edit(old="a", new="c"), Edit(old="a", new="d")])
    assert (workspace / "a.py").read_text() == "a\nb\n"
    call("file_edit", "a.py", edits=[Edit(old="a", new="c"), Edit(old="c\nb", new="d")])
    assert (workspace / "a.py").read_text() == "d\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"old": "", "new": "x"}, "old is empty"),
        ({"old": "a", "new": "a"}, "the same"),
        ({"old": "a", "new": "b", "edits": [Edit(old="a", new="b")]}, "both old and edits"),
        ({"old": "a", "new": "\ud800"}, "surrogate"),
        ({"old": "a", "new": "x" * 2_000_000, "replace_all": True}, "grow over"),
    ],
)
def test_an_edit_that_cannot_be_meant_is_refused(
    call: Callable[..., str], workspace: Path, arguments: dict[str, object], message: str
) -> None:
    (workspace / "a.txt").write_text("a" * 100)
    with pytest.raises(ToolError, match=message):
        call("file_edit", "a.txt", **arguments)
    assert (workspace / "a.txt").read_text() == "a" * 100


def test_line_ends_stay_as_they_are(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    call("file_edit", "a.txt", old="one\ntwo\n", new="1\n2\n2b\n")
    assert (workspace / "a.txt").read_bytes() == b"1\r\n2\r\n2b\r\nthree\r\n"


def test_line_ends_are_changed_where_they_are_quoted(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    call("file_edit", "a.txt", old="one\r\n", new="one\n")
    assert (workspace / "a.txt").read_bytes() == b"one\ntwo\r\n"


def test_in_mixed_line_ends_the_nearest_one_counts(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"a\nb\r\nc\n")
    call("file_edit", "a.txt", old="b\nc", new="x\ny")
    assert (workspace / "a.txt").read_bytes() == b"a\nx\r\ny\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_the_encoding_stays_as_it_is(call: Callable[..., str], workspace: Path, encoding: str) -> None:
    (workspace / "a.txt").write_bytes("Grüße\naus Köln\n".encode(encoding))
    call("file_edit", "a.txt", old="Köln", new="Düren")
    assert (workspace / "a.txt").read_bytes() == "Grüße\naus Düren\n".encode(encoding)


def test_damaged_bytes_elsewhere_stay_as_they_are(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("Grüße ".encode() * 5 + b"\xff x = 1\n")
    call("file_edit", "a.txt", old="x = 1", new="x = 2")
    assert (workspace / "a.txt").read_bytes() == "Grüße ".encode() * 5 + b"\xff x = 2\n"


def test_a_character_that_the_encoding_lacks_is_refused(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.txt").write_bytes("Grüße".encode("latin-1"))
    with pytest.raises(ToolError, match="the file is Latin-1, which has no €"):
        call("file_edit", "a.txt", old="Gr", new="€")
    assert (workspace / "a.txt").read_bytes() == "Grüße".encode("latin-1")


def test_what_is_no_text_is_not_edited(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"abc\0\1")
    with pytest.raises(ToolError, match="no text that could be edited"):
        call("file_edit", "a.bin", old="abc", new="x")


def test_permission_bits_stay_as_they_are(call: Callable[..., str], workspace: Path) -> None:
    path = workspace / "run.sh"
    path.write_text("echo a")
    path.chmod(0o750)
    call("file_edit", "run.sh", old="a", new="b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_a_file_that_someone_else_changed_meanwhile_is_not_written(
    call: Callable[..., str], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace / "a.txt"
    path.write_text("old text")

    def sync(opened: int) -> None:
        path.write_text("someone else's")  # at the last moment: the new content is on disk, not yet in place
        os.fdatasync(opened)

    monkeypatch.setattr(writing.os, "fsync", sync)
    with pytest.raises(ToolError, match="changed by someone else meanwhile, and nothing was written"):
        call("file_edit", "a.txt", old="old", new="new")
    assert path.read_text() == "someone else's"
    assert [entry.name for entry in workspace.iterdir()] == ["a.txt"]


def test_of_many_edits_at_once_none_is_lost(call: Callable[..., str], workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("".join(f"<{number}>\n" for number in range(40)))
    done: list[int] = []
    refused: list[str] = []

    def work(numbers: range) -> None:
        for number in numbers:
            try:
                call("file_edit", "a.txt", old=f"<{number}>", new=f"[{number}]")
                done.append(number)
            except ToolError as error:
                refused.append(error.what)

    threads = [threading.Thread(target=work, args=(range(start, 40, 4),)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert done
    assert set(refused) <= {"the file was changed by someone else meanwhile, and nothing was written"}
    assert path.read_text() == "".join(f"[{n}]\n" if n in done else f"<{n}>\n" for n in range(40))


@given(TEXTS, PARTS, PARTS)
def test_an_edit_is_the_one_replacement_or_an_error(text: str, old: str, new: str) -> None:
    assume(old != new)
    if occurrences(text, old) == 1:
        assert edit(text, Edit(old=old, new=new)) == text.replace(old, new)
    else:
        with pytest.raises(ToolError):
            edit(text, Edit(old=old, new=new))


@given(TEXTS, PARTS, TEXTS, st.text(st.sampled_from("ab\n"), max_size=4))
def test_replacing_all_is_what_python_replaces(before: str, old: str, after: str, new: str) -> None:
    assume(old != new)
    text = before + old + after + old
    assert edit(text, Edit(old=old, new=new, replace_all=True)) == text.replace(old, new)


@given(TEXTS, PARTS, TEXTS, PARTS)
def test_a_text_with_crlf_is_edited_as_one_without(before: str, old: str, after: str, new: str) -> None:
    assume(old != new)
    text = f"{before}{old}{after}\n"
    change = Edit(old=old, new=new, replace_all=occurrences(text, old) > 1)
    assert edit(text.replace("\n", "\r\n"), change) == edit(text, change).replace("\n", "\r\n")


@given(st.text(st.sampled_from("a\r\n"), max_size=20), PARTS, PARTS)
def test_what_an_edit_does_not_touch_stays_byte_for_byte(text: str, old: str, new: str) -> None:
    assume(old != new)
    try:
        edited = editing.apply(text, [Edit(old=old, new=new)], MOST)
    except ToolError:
        return
    [match] = re.finditer(re.escape(old).replace("\\\n", "\r?\n"), text)
    assert edited.text.startswith(text[: match.start()])
    assert edited.text.endswith(text[match.end() :])
    assert edited.text[match.start() : len(edited.text) - len(text) + match.end()].replace("\r", "") == new
    assert edited.lines == ((text.count("\n", 0, match.start()) + 1,),)
