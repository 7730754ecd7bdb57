"""Between toolkeel and OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolkeel import Answer, Offer, ToolCall


def tools_of(offer: Offer) -> list[dict[str, object]]:
    """The ``tools`` of a request to the model."""
    return [{"type": "function", "function": tool} for tool in json.loads(offer.json())]


def calls_of(message: Mapping[str, Any]) -> list[ToolCall]:
    """The calls in the model's message."""
    return [
        ToolCall(name=call["function"]["name"], arguments=call["function"]["arguments"], id=call["id"])
        for call in message.get("tool_calls") or ()
    ]


def messages_of(answers: Iterable[Answer]) -> list[dict[str, object]]:
    """The messages that go behind the model's."""
    return [{"role": "tool", "tool_call_id": answer.id, "content": answer.text} for answer in answers]
