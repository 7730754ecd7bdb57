"""OpenAI's chat completions: a response's tool calls, tool messages, the tool list."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from toolkeel import ToolCall

from .forms import Ids, Response, ToolListing, WireCall, WireError, arguments_of, decode, is_json
from .outcome import Outcome


class _Function(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw()


class _Custom(msgspec.Struct):
    name: str
    input: str = ""


class _ToolCall(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None


class _Message(msgspec.Struct):
    role: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: msgspec.Raw = msgspec.Raw()


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]


def read(data: bytes, keys: frozenset[str], choice: int | None) -> Response:
    """Read a whole completion, one of its choices, or a bare assistant message.

    ``keys`` are the top-level keys; ``choice`` says which of several choices counts (0 when ``None``).
    """
    notes: list[str] = []
    if "choices" in keys:
        chosen, path = _choose(decode(data, _Completion).choices, choice, notes)
    elif "message" in keys:
        chosen, path = decode(data, _Choice), "message"
    else:
        chosen, path = _Choice(decode(data, _Message)), ""
    message = chosen.message
    if message.role not in (None, "assistant"):
        raise WireError(
            f"expected a message with the role assistant, got {message.role!r}",
            where=f"{path}.role".removeprefix("."),
            remedy="Give the model's answer, not what was sent to it",
        )
    if bytes(message.function_call).strip() not in (b"", b"null"):
        raise WireError(
            "function_call is the retired form of a tool call; expected tool_calls",
            where=f"{path}.function_call".removeprefix("."),
            remedy="Send the tools to the model as `tools`, not as `functions`",
        )
    if message.refusal:
        notes.append(f"the model refused: {message.refusal}")
    ids = Ids((call.id for call in message.tool_calls or ()), "call_")
    calls = list(_calls(message.tool_calls or [], f"{path}.tool_calls".removeprefix("."), ids))
    if chosen.finish_reason == "length" and calls and not is_json(calls[-1].call.arguments):
        last = calls.pop()
        calls.append(msgspec.structs.replace(last, unfinished="the response reached its token limit"))
        notes.append(f"{last.path} is unfinished (finish_reason is length); it is not run")
    return Response("openai", tuple(calls), (*notes, *ids.notes))


def _choose(choices: list[_Choice], choice: int | None, notes: list[str]) -> tuple[_Choice, str]:
    number = choice or 0
    if not -1 < number < len(choices):
        raise WireError(
            f"there is no choice {number}: the response has {len(choices)}",
            where="choices",
            remedy="Count from 0" if choices else "Give a response that holds an answer",
        )
    others = [str(index) for index, each in enumerate(choices) if index != number and each.message.tool_calls]
    if others and choice is None:
        notes.append(f"choice {number} is run; there are tool calls in other choices too: {', '.join(others)}")
    return choices[number], f"choices[{number}].message"


def _calls(calls: list[_ToolCall], path: str, ids: Ids) -> Iterator[WireCall]:
    for index, call in enumerate(calls):
        where = f"{path}[{index}]"
        if call.custom is not None:
            named = ToolCall(call.custom.name, call.custom.input, ids.use(call.id, where))
            yield WireCall(named, where, custom=True)
        elif call.function is not None:
            named = ToolCall(call.function.name, arguments_of(call.function.arguments), ids.use(call.id, where))
            yield WireCall(named, where)
        else:
            kind = f" of type {call.type!r}" if call.type else ""
            raise WireError(f"a tool call{kind} without function or custom", where=where)


def results(calls: list[tuple[WireCall, Outcome]]) -> list[dict[str, object]]:
    """One tool message per call. Tool messages hold text only, so media are named, not shown."""
    return [{"role": "tool", "tool_call_id": wire.call.id, "content": outcome.text} for wire, outcome in calls]


def tool_entry(tool: ToolListing) -> dict[str, object]:
    """A tool as an entry of a request's ``tools``."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
