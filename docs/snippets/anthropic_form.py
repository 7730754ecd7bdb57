"""Between toolkeel and Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolkeel import Answer, Offer, ToolCall


def tools_of(offer: Offer) -> list[dict[str, object]]:
    """The ``tools`` of a request to the model."""
    return [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
        for tool in json.loads(offer.json())
    ]


def calls_of(message: Mapping[str, Any]) -> list[ToolCall]:
    """The calls in the model's message."""
    blocks = [block for block in message["content"] if block["type"] == "tool_use"]
    return [ToolCall(name=block["name"], arguments=block["input"], id=block["id"]) for block in blocks]


def messages_of(answers: Iterable[Answer]) -> list[dict[str, object]]:
    """The one message that goes behind the model's; none where it called nothing."""
    blocks = [
        {"type": "tool_result", "tool_use_id": answer.id, "content": answer.text, "is_error": answer.failed}
        for answer in answers
    ]
    return [{"role": "user", "content": blocks}] if blocks else []
