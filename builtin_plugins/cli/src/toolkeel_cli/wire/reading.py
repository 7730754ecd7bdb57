"""Finds out which form a response has, and reads it."""

from __future__ import annotations

import msgspec

from . import anthropic, openai_chat, openai_responses
from .forms import Form, Response, WireError, decode, readable

_EXPECTED = (
    "Expected a response of OpenAI's chat completions (choices[].message.tool_calls), of OpenAI's responses "
    "(output[] with function_call items) or of Anthropic's messages (content[] with tool_use blocks)"
)
_STREAMED = "Collect the stream first: tool calls are whole only at its end"

Keys = dict[str, msgspec.Raw]


class _Error(msgspec.Struct):
    message: str | None = None


def read_response(data: bytes, form: Form | None = None, choice: int | None = None) -> Response:
    """Read the tool calls of one model response.

    Args:
        data: JSON in UTF-8: a whole response, a bare assistant message, or the list of its items or content blocks.
        form: the form; found out by shape where it is ``None``.
        choice: which of several choices of a chat completion counts, from 0.

    Raises:
        WireError: not JSON, no known form, or a part is not what its form says; names the JSON path.
    """
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if data.startswith((b"data:", b"event:")):
        raise WireError("the input is a stream of server-sent events", remedy=_STREAMED)
    data = readable(data)
    if data.startswith(b"["):
        return _read_list(data, form)
    top = decode(data, Keys)
    keys = frozenset(top)
    _refuse_what_is_no_response(top)
    form = form or _form_of(top)
    if form == "openai":
        return openai_chat.read(data, keys, choice)
    if choice is not None:
        raise WireError(f"only chat completions have choices, and this response has the form {form}")
    return openai_responses.read(data, keys) if form == "responses" else anthropic.read(data, keys)


def _read_list(data: bytes, form: Form | None) -> Response:
    items = decode(data, list[Keys])
    if form is None:
        form = "anthropic" if any(_text(item, "type") in anthropic.BLOCKS for item in items) else "responses"
    for index, item in enumerate(items):
        if "tool_calls" in item or ("role" in item and _text(item, "role") != "assistant"):
            raise WireError(
                "the input is a list of messages", where=f"[{index}]", remedy="Give the model's last answer alone"
            )
    if form == "openai":
        raise WireError("expected an object with choices, got a list", remedy=_EXPECTED)
    return anthropic.read(data, None) if form == "anthropic" else openai_responses.read(data, None)


def _form_of(top: Keys) -> Form:
    kind = _text(top, "type")
    if "choices" in top or "tool_calls" in top or "function_call" in top:
        return "openai"
    if "output" in top or _text(top, "object") == "response" or kind in openai_responses.CALLS:
        return "responses"
    if kind in anthropic.BLOCKS:
        return "anthropic"
    if "content" in top:
        parts = bytes(top["content"])
        if not parts.startswith(b"["):
            return "openai"
        kinds = {_text(part, "type") for part in decode(parts, list[Keys])}
        return "responses" if kinds & {"output_text", "refusal"} else "anthropic"
    if "message" in top:
        return "openai"
    seen = ", ".join(sorted(top)[:8]) or "nothing"
    raise WireError(f"no known form of response: an object that holds {seen}", remedy=_EXPECTED)


def _refuse_what_is_no_response(top: Keys) -> None:
    kind, name = _text(top, "type"), _text(top, "object")
    if name == "chat.completion.chunk" or kind.startswith(("response.", "message_", "content_block_")):
        raise WireError(f"the input is one piece of a stream ({name or kind})", remedy=_STREAMED)
    error = bytes(top.get("error", b"null"))
    if error != b"null" and not {"choices", "output", "content"} & set(top):
        try:
            message = decode(error, _Error).message if error.startswith(b"{") else decode(error, str)
        except WireError:
            message = None
        raise WireError(
            f"the vendor answered with an error: {(message or 'it has no message').rstrip('.')}",
            where="error",
            remedy="There are no tool calls in it",
        )


def _text(keys: Keys, key: str) -> str:
    try:
        return msgspec.json.decode(keys.get(key, b"null"), type=str)
    except msgspec.DecodeError:
        return ""
