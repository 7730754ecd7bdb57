"""Models' responses in the vendors' forms: the calls that are read, the results that are written, what is refused."""

from __future__ import annotations

import contextlib
import copy
import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkeel import Answer, CallRecord, Failure, Media, Parts, Text
from toolkeel_cli.wire import FORMS, Form, Response, WireError, read_response, tool_list, write_results

RECORDED = Path(__file__).parents[3] / "tests" / "wire"


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.json").read_bytes()


def read(name: str, **options: Any) -> Response:
    return read_response(recorded(name), **options)


def answer(text: str, *, failed: bool = False, media: tuple[Media, ...] = ()) -> Answer:
    status = "failed" if failed else "completed"
    record = CallRecord(
        id="c", model_id="m", tool="t", plugin="p", arguments={}, status=status, agent="a", session="s",
        principal="x", role="admin", created=0.0,
    )  # fmt: skip
    result: Any = Failure(text) if failed else Parts((Text(text), *media)) if media else Text(text)
    return Answer("c", "t", status, text, result, record)


def expressions(response: Response) -> list[str]:
    return [json.loads(str(call.arguments))["expression"] for call in response.tool_calls if call.name == "calc"]


# Recorded responses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai_chat_parallel", "openai_responses_parallel", "anthropic_parallel"])
def test_parallel_calls_are_read_in_the_models_order_in_every_form(name: str) -> None:
    response = read(name)
    assert [call.name for call in response.tool_calls] == ["calc", "file_read", "calc"]
    assert expressions(response) == ["1299.50 * 3 - 17.25", "2 ** 64"]
    assert len({call.id for call in response.tool_calls}) == 3
    assert response.notes == ()


def test_each_form_gets_its_results_back_in_its_own_shape() -> None:
    answers = [answer("3881.25"), answer("no such file", failed=True), answer("18446744073709551616")]
    chat, responses, anthropic = (
        read(name) for name in ("openai_chat_parallel", "openai_responses_parallel", "anthropic_parallel")
    )
    assert write_results(chat, answers) == [
        {"role": "tool", "tool_call_id": call.id, "content": each.text}
        for call, each in zip(chat.tool_calls, answers, strict=True)
    ]
    assert write_results(responses, answers) == [
        {"type": "function_call_output", "call_id": call.id, "output": each.text}
        for call, each in zip(responses.tool_calls, answers, strict=True)
    ]
    first, second, third = anthropic.tool_calls
    assert write_results(anthropic, answers) == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": first.id, "content": "3881.25"},
                {"type": "tool_result", "tool_use_id": second.id, "content": "no such file", "is_error": True},
                {"type": "tool_result", "tool_use_id": third.id, "content": "18446744073709551616"},
            ],
        }
    ]


def test_the_call_id_of_the_responses_form_is_not_the_items_own_id() -> None:
    items = {item["call_id"]: item["id"] for item in json.loads(recorded("openai_responses_parallel"))["output"][1:]}
    ids = [call.id for call in read("openai_responses_parallel").tool_calls]
    assert ids == list(items)
    assert not set(ids) & set(items.values())


def test_broken_arguments_are_handed_on_as_the_model_wrote_them() -> None:
    arguments = [call.arguments for call in read("openai_chat_broken_arguments").tool_calls]
    assert arguments == [
        '{"expression": "1 + 1"',
        '{"expression": "2 + 2"}',
        "expression: 3 + 3",
        None,
        '["4 + 4"]',
    ]


@pytest.mark.parametrize("name", ["openai_chat_hundred_calls", "anthropic_hundred_calls"])
def test_a_hundred_calls_keep_their_order(name: str) -> None:
    response = read(name)
    assert expressions(response) == [f"{number} * {number}" for number in range(100)]
    messages = write_results(response, [answer(str(number)) for number in range(100)])
    assert len(messages) == (100 if response.form == "openai" else 1)


@pytest.mark.parametrize("name", ["openai_chat_duplicate_ids", "anthropic_duplicate_ids"])
def test_calls_that_share_an_id_are_both_answered_and_noted(name: str) -> None:
    response = read(name)
    first, second = response.tool_calls[:2]
    assert first.id == second.id
    assert expressions(response)[:2] == ["1 + 2", "3 + 4"]
    assert any(first.id in note for note in response.notes)


def test_missing_ids_are_made_up_without_meeting_those_that_are_there() -> None:
    response = read("openai_chat_compatible_server")
    ids = [call.id for call in response.tool_calls]
    assert ids[2] == "call_0"
    assert len(set(ids)) == 3
    assert expressions(response) == ["7 * 8", "8 * 9", "9 * 9"]
    assert "tool_calls[0] has no id" in response.notes[0]


@pytest.mark.parametrize(
    "name",
    ["openai_chat_no_calls", "openai_chat_null_calls", "openai_responses_no_calls", "anthropic_no_calls"],
)
def test_a_response_without_calls_gives_nothing_to_send_back(name: str) -> None:
    response = read(name)
    assert response.calls == ()
    assert write_results(response, []) == []


@pytest.mark.parametrize("name", ["openai_chat_refusal", "openai_responses_refusal", "anthropic_refusal"])
def test_a_models_refusal_is_noted(name: str) -> None:
    response = read(name)
    assert response.calls == ()
    assert "the model refused" in response.notes[0]


def test_the_first_choice_counts_unless_another_is_named() -> None:
    first = read("openai_chat_two_choices")
    assert expressions(first) == ["10 / 4"]
    assert "other choices" in first.notes[0]
    second = read("openai_chat_two_choices", choice=1)
    assert expressions(second) == ["10 // 4", "10 - 4"]
    assert second.notes == ()
    with pytest.raises(WireError, match="there is no choice 2: the response has 2"):
        read("openai_chat_two_choices", choice=2)


@pytest.mark.parametrize("name", ["openai_chat_cut_off", "openai_responses_incomplete", "anthropic_cut_off"])
def test_a_call_that_was_cut_off_is_answered_but_not_run(name: str) -> None:
    response = read(name)
    assert [call.name for call in response.tool_calls] == ["calc"]
    messages = json.dumps(write_results(response, [answer("25")]))
    assert "file_write was not run" in messages
    assert messages.index("25") < messages.index("file_write was not run")
    assert any("not run" in note for note in response.notes)


def test_calls_of_custom_tools_are_run_with_their_text_and_answered_in_their_form() -> None:
    chat, responses = read("openai_chat_custom"), read("openai_responses_custom")
    assert expressions(chat) == ["12 * 12", "13 * 13"]
    kinds = [item["type"] for item in write_results(responses, [answer("144"), answer("169")])]
    assert kinds == ["custom_tool_call_output", "function_call_output"]


def test_what_the_vendor_runs_itself_is_left_alone() -> None:
    assert expressions(read("anthropic_server_side")) == ["100 * 1.16"]
    response = read("openai_responses_server_side")
    assert expressions(response) == ["100 * 1.16"]
    assert response.notes == ("output[4] is a local_shell_call, which waits for an answer that toolkeel does not give",)


def test_the_caller_of_a_programmatic_call_is_repeated_in_its_output() -> None:
    [item] = write_results(read("openai_responses_programmatic"), [answer("5")])
    assert item["caller"] == {"type": "program", "caller_id": "prog_1"}


@pytest.mark.parametrize(
    ("name", "path"), [("openai_chat_message", "tool_calls[0]"), ("anthropic_message", "content[1]")]
)
def test_a_bare_assistant_message_is_enough(name: str, path: str) -> None:
    [wire] = read(name).calls
    assert wire.path == path
    assert expressions(read(name)) == ["100 - 1"]


@pytest.mark.parametrize("form", FORMS)
def test_the_list_of_items_of_a_response_is_enough(form: Form) -> None:
    whole = {"openai": "openai_chat_parallel", "responses": "openai_responses_parallel"}.get(form, "anthropic_parallel")
    body = json.loads(recorded(whole))
    part = {"openai": lambda: body["choices"][0], "responses": lambda: body["output"]}.get(
        form, lambda: body["content"]
    )()
    bare = read_response(json.dumps(part).encode())
    assert bare.form == form
    assert [call.id for call in bare.tool_calls] == [call.id for call in read(whole).tool_calls]


def test_a_result_with_an_image_shows_it_where_the_form_can() -> None:
    image = Media(b"\x89PNG", "image/png")
    answers = [answer("a chart", media=(image,)), answer("x"), answer("y")]
    anthropic: Any = write_results(read("anthropic_parallel"), answers)[0]["content"]
    assert anthropic[0]["content"] == [
        {"type": "text", "text": "a chart"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
    ]
    responses: Any = write_results(read("openai_responses_parallel"), answers)
    assert responses[0]["output"][1] == {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="}
    chat = write_results(read("openai_chat_parallel"), answers)
    assert chat[0]["content"] == "a chart"


# What is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "where", "what"),
    [
        (b"", "", "the input is empty"),
        (b'{"choices": [', "", "not JSON"),
        (b'{"choices":\n [{"message": oops}]}', "", "invalid character at line 2, column 15"),
        (b"null", "", "expected `object`"),
        (b'{"choices": {}}', "choices", "expected `array`, got `object`"),
        (b'{"choices": []}', "choices", "the response has 0"),
        (b'{"choices": [{"message": {"role": "user"}}]}', "choices[0].message.role", "the role assistant, got 'user'"),
        (
            b'{"choices": [{"message": {"tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]}}]}',
            "choices[0].message.tool_calls[0].function",
            "missing required field `name`",
        ),
        (
            b'{"choices": [{"message": {"tool_calls": [{"id": 7, "function": {"name": "calc"}}]}}]}',
            "choices[0].message.tool_calls[0].id",
            "expected `string | null`, got `int`",
        ),
        (b'{"tool_calls": [{"id": "a", "type": "magic"}]}', "tool_calls[0]", "of type 'magic'"),
        (b'{"role": "assistant", "function_call": {"name": "calc"}}', "function_call", "expected tool_calls"),
        (b'{"output": [{"type": "function_call", "call_id": "a"}]}', "output[0]", "missing required field `name`"),
        (b'{"content": [{"text": "x"}]}', "content[0]", "missing required field `type`"),
        (b'{"content": [{"type": "tool_use", "id": "a", "input": {}}]}', "content[0]", "required field `name`"),
        (b'{"role": "user", "content": [{"type": "tool_use"}]}', "role", "the role assistant, got 'user'"),
        (b'[{"role": "user", "content": "hi"}]', "[0]", "a list of messages"),
        (b'{"candidates": []}', "", "no known form of response: an object that holds candidates"),
        (b'data: {"id": "x"}\n\n', "", "a stream of server-sent events"),
        (b'{"type": "content_block_delta"}', "", "one piece of a stream"),
        (b'{"x": ' + b"[" * 100_000, "", "nested too deeply"),
    ],
    ids=range(20),
)
def test_what_is_no_response_is_refused_naming_the_place(data: bytes, where: str, what: str) -> None:
    with pytest.raises(WireError) as raised:
        read_response(data)
    assert raised.value.where == where
    assert what in raised.value.what


@pytest.mark.parametrize(("name", "words"), [("openai_error", "Rate limit reached"), ("anthropic_error", "Overloaded")])
def test_an_error_of_the_vendor_is_told_as_such(name: str, words: str) -> None:
    with pytest.raises(WireError, match=f"the vendor answered with an error: {words}"):
        read(name)


def test_a_piece_of_a_stream_is_told_from_a_response() -> None:
    with pytest.raises(WireError, match="Collect the stream first"):
        read("openai_chat_stream_piece")


def test_a_byte_order_mark_is_no_fault() -> None:
    assert read_response(b"\xef\xbb\xbf" + recorded("openai_chat_message")).calls


# Any response ------------------------------------------------------------------------------------------------------

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
names = st.text(string.ascii_letters + string.digits + "_-.", min_size=1, max_size=64)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)
calls = st.lists(st.tuples(texts.filter(bool), names, st.dictionaries(texts, values, max_size=3)), max_size=6)


def wrap(form: Form, made: list[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    if form == "openai":
        tool_calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id_, name, arguments in made
        ]
        message = {"role": "assistant", "content": None, "tool_calls": tool_calls}
        return {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        }
    if form == "responses":
        items = [
            {"type": "function_call", "call_id": id_, "name": name, "arguments": json.dumps(arguments)}
            for id_, name, arguments in made
        ]
        return {"object": "response", "status": "completed", "output": items}
    blocks = [{"type": "tool_use", "id": id_, "name": name, "input": arguments} for id_, name, arguments in made]
    return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "tool_use"}


def results_of(form: Form, messages: list[Any]) -> list[tuple[str, str]]:
    if form == "openai":
        return [(message["tool_call_id"], message["content"]) for message in messages]
    if form == "responses":
        return [(item["call_id"], item["output"]) for item in messages]
    return [(block["tool_use_id"], block["content"]) for message in messages for block in message["content"]]


@unhurried
@given(form=st.sampled_from(FORMS), made=calls)
def test_every_call_is_read_as_written_and_answered_under_its_id(
    form: Form, made: list[tuple[str, str, dict[str, Any]]]
) -> None:
    response = read_response(json.dumps(wrap(form, made)).encode())
    assert response.form == form
    read_back = [(call.id, call.name, json.loads(str(call.arguments))) for call in response.tool_calls]
    assert read_back == made
    messages = write_results(response, [answer(f"result {index}") for index in range(len(made))])
    expected = [(id_, f"result {index}") for index, (id_, _, _) in enumerate(made)]
    assert results_of(form, json.loads(json.dumps(messages))) == expected


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [deeper for key, each in inner for deeper in paths(each, (*path, key))]


@settings(unhurried, max_examples=300)
@given(data=st.data())
def test_a_damaged_response_is_read_or_refused_but_never_breaks(data: st.DataObject) -> None:
    name = data.draw(
        st.sampled_from(sorted(path.stem for path in RECORDED.glob("*_*.json") if "hundred" not in path.stem))
    )
    body = copy.deepcopy(json.loads(recorded(name)))
    for path in data.draw(st.lists(st.sampled_from(paths(body)), min_size=1, max_size=3)):
        place = body
        for key in path[:-1]:
            place = place[key] if isinstance(place, (dict, list)) and _has(place, key) else None
        if not path:
            body = data.draw(values)
        elif isinstance(place, (dict, list)) and _has(place, path[-1]):
            place[path[-1]] = data.draw(values)
    with contextlib.suppress(WireError):
        response = read_response(json.dumps(body).encode())
        assert all(call.id for call in response.tool_calls)
        write_results(response, [answer("x")] * len(response.tool_calls))


def _has(place: Any, key: Any) -> bool:
    return key in place if isinstance(place, dict) else isinstance(key, int) and key < len(place)


@unhurried
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(WireError):
        read_response(data)


# Tool lists --------------------------------------------------------------------------------------------------------


def listing(name: str, description: str = "", **schema: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": {"type": "object", **schema}}


def test_a_tool_list_has_the_shape_of_its_form() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    offered = json.dumps([listing("add", "Adds.", properties=schema["properties"])]).encode()
    assert tool_list(offered, "openai") == (
        [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": schema}}],
        [],
    )
    assert tool_list(offered, "responses") == (
        [{"type": "function", "name": "add", "description": "Adds.", "parameters": schema, "strict": False}],
        [],
    )
    assert tool_list(offered, "anthropic") == (
        [{"name": "add", "description": "Adds.", "input_schema": schema}],
        [],
    )


def test_what_a_vendor_is_likely_to_refuse_is_noted() -> None:
    offered = [listing("server.add"), listing("a" * 65), listing("either", anyOf=[{}, {}])]
    entries, notes = tool_list(json.dumps(offered).encode(), "anthropic")
    assert len(entries) == 3
    assert [note.split(":")[0] for note in notes] == ["server.add", "a" * 65, "either"]
    assert len(tool_list(json.dumps(offered[2:]).encode(), "openai")[1]) == 0
