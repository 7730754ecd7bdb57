"""Anthropic's messages: a response's tool uses, the message with their results, the tool list."""

from __future__ import annotations

import base64

import msgspec

from toolkeel import Media, ToolCall

from .forms import Ids, Response, ToolListing, WireCall, WireError, arguments_of, decode, echoed
from .outcome import Outcome

BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"})
"""What a message can begin with. The last two are run by the vendor: they are no calls for anybody else."""
_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


class _Block(msgspec.Struct):
    type: str
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    toolset_name: msgspec.Raw = msgspec.Raw()


class _Message(msgspec.Struct):
    content: str | list[_Block] | None = None
    role: str | None = None
    stop_reason: str | None = None


def read(data: bytes, keys: frozenset[str] | None) -> Response:
    """Read a whole message, a bare assistant message, its content blocks (``keys`` is ``None``), or one block."""
    path = ""
    if keys is None:
        message = _Message(decode(data, list[_Block]))
    elif "content" in keys:
        message, path = decode(data, _Message), "content"
    else:
        message = _Message([decode(data, _Block)])
    if message.role not in (None, "assistant"):
        raise WireError(
            f"expected a message with the role assistant, got {message.role!r}",
            where="role",
            remedy="Give the model's answer, not what was sent to it",
        )
    blocks = message.content if isinstance(message.content, list) else []
    ids = Ids((block.id for block in blocks if block.type == "tool_use"), "toolu_")
    notes: list[str] = []
    if message.stop_reason == "refusal":
        notes.append("the model refused (stop_reason is refusal)")
    if message.stop_reason == "pause_turn":
        notes.append("the model paused (stop_reason is pause_turn): send the message back to let it go on")
    calls: list[WireCall] = []
    for index, block in enumerate(blocks):
        where = path if keys is not None and not path else f"{path}[{index}]"
        if block.type == "tool_use":
            cut_off = index == len(blocks) - 1 and message.stop_reason in _CUT_OFF
            calls.append(_call(block, where, ids, cut_off=cut_off))
            if cut_off:
                notes.append(f"{where} may be unfinished (stop_reason is {message.stop_reason}); it is not run")
    return Response("anthropic", tuple(calls), (*notes, *ids.notes))


def _call(block: _Block, where: str, ids: Ids, *, cut_off: bool) -> WireCall:
    if block.name is None:
        raise WireError("object missing required field `name`", where=where)
    call = ToolCall(block.name, arguments_of(block.input), ids.use(block.id, where))
    unfinished = "the response reached its token limit" if cut_off else ""
    return WireCall(call, where, unfinished=unfinished, echo=echoed(toolset_name=block.toolset_name))


def results(calls: list[tuple[WireCall, Outcome]]) -> list[dict[str, object]]:
    """One user message with every result, as the API wants them; no message where there was no call."""
    blocks: list[dict[str, object]] = []
    for wire, outcome in calls:
        block: dict[str, object] = {
            "type": "tool_result",
            "tool_use_id": wire.call.id,
            "content": _content(outcome),
            **wire.echo,
        }
        if outcome.failed:
            block["is_error"] = True
        blocks.append(block)
    return [{"role": "user", "content": blocks}] if blocks else []


def _content(outcome: Outcome) -> str | list[dict[str, object]]:
    shown = [part for part in map(_media, outcome.media) if part]
    if not shown or outcome.failed:  # an error may hold text only
        return outcome.text
    text: list[dict[str, object]] = [{"type": "text", "text": outcome.text}] if outcome.text.strip() else []
    return [*text, *shown]


def _media(media: Media) -> dict[str, object] | None:
    source = {"type": "base64", "media_type": media.media_type, "data": base64.b64encode(media.data).decode()}
    if media.media_type in _IMAGES:
        return {"type": "image", "source": source}
    if media.media_type == "application/pdf":
        return {"type": "document", "source": source}
    return None


def tool_entry(tool: ToolListing) -> dict[str, object]:
    """A tool as an entry of a request's ``tools``."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
