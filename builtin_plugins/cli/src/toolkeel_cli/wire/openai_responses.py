"""OpenAI's responses: a response's function calls, their output items, the tool list."""

from __future__ import annotations

import base64

import msgspec

from toolkeel import Media, ToolCall

from .forms import Ids, Response, ToolListing, WireCall, WireError, arguments_of, decode, echoed, is_json
from .outcome import Outcome

CALLS = frozenset({"function_call", "custom_tool_call"})
_LEFT_ALONE = frozenset({"apply_patch_call", "computer_call", "local_shell_call", "mcp_approval_request", "shell_call"})


class _Item(msgspec.Struct):
    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    status: str | None = None
    content: msgspec.Raw = msgspec.Raw()
    caller: msgspec.Raw = msgspec.Raw()


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Output(msgspec.Struct):
    output: list[_Item]
    status: str | None = None
    incomplete_details: _Incomplete | None = None


class _Part(msgspec.Struct):
    type: str | None = None
    refusal: str | None = None


def read(data: bytes, keys: frozenset[str] | None) -> Response:
    """Read a whole response, the list of its output items (``keys`` is ``None``), or one item."""
    path = ""
    if keys is None:
        response = _Output(decode(data, list[_Item]))
    elif "output" in keys and "call_id" not in keys:
        response, path = decode(data, _Output), "output"
    else:
        response = _Output([decode(data, _Item)])
    notes = list(_remarks(response))
    ids = Ids((item.call_id for item in response.output), "call_")
    calls: list[WireCall] = []
    for index, item in enumerate(response.output):
        where = path if keys is not None and not path else f"{path}[{index}]"
        if item.type in CALLS:
            last = index == len(response.output) - 1
            calls.append(_call(item, where, ids, cut_off=last and response.status == "incomplete", notes=notes))
        else:
            notes.extend(_note(item, where))
    return Response("responses", tuple(calls), (*notes, *ids.notes))


def _call(item: _Item, where: str, ids: Ids, *, cut_off: bool, notes: list[str]) -> WireCall:
    if item.name is None:
        raise WireError("object missing required field `name`", where=where)
    custom = item.type == "custom_tool_call"
    arguments = arguments_of(item.input if custom else item.arguments)
    call = ToolCall(item.name, arguments, ids.use(item.call_id, where))
    unfinished = ""
    if item.status in ("incomplete", "in_progress") or (cut_off and not custom and not is_json(arguments)):
        unfinished = "the response ended before the call was complete"
        notes.append(f"{where} is unfinished; it is not run")
    return WireCall(call, where, custom, unfinished, echoed(caller=item.caller))


def _remarks(response: _Output) -> list[str]:
    if response.status in (None, "completed"):
        return []
    reason = response.incomplete_details.reason if response.incomplete_details else None
    return [f"the response's status is {response.status}" + (f": {reason}" if reason else "")]


def _note(item: _Item, where: str) -> list[str]:
    if item.type == "message":
        try:
            parts = decode(bytes(item.content) or b"[]", list[_Part])
        except WireError:
            return []
        return [f"the model refused: {part.refusal}" for part in parts if part.refusal]
    if item.type in _LEFT_ALONE:
        return [f"{where} is a {item.type}, which waits for an answer that toolkeel does not give"]
    return []


def results(calls: list[tuple[WireCall, Outcome]]) -> list[dict[str, object]]:
    """One output item per call, to be appended to ``input``."""
    return [
        {
            "type": "custom_tool_call_output" if wire.custom else "function_call_output",
            "call_id": wire.call.id,
            "output": _output(outcome),
            **wire.echo,
        }
        for wire, outcome in calls
    ]


def _output(outcome: Outcome) -> str | list[dict[str, str]]:
    shown = [part for part in map(_media, outcome.media) if part]
    if not shown:
        return outcome.text
    return [{"type": "input_text", "text": outcome.text}, *shown]


def _media(media: Media) -> dict[str, str] | None:
    url = f"data:{media.media_type};base64,{base64.b64encode(media.data).decode()}"
    if media.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": url}
    if media.media_type == "application/pdf":
        return {"type": "input_file", "filename": media.name or "document.pdf", "file_data": url}
    return None


def tool_entry(tool: ToolListing) -> dict[str, object]:
    """A tool as an entry of a request's ``tools``; ``strict`` is said, because there it is on unless it is off."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }
