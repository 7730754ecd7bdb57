"""The tools that ship, as a model sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .markdown import as_json, literal
from .models import type_of
from .shipped import shipped


def page() -> Iterator[str]:
    """The tools that the shipped plugins bring, as a model sees them."""
    yield "# Tools that ship with toolkeel\n"
    yield "What each plugin brings: the name, effect, description and parameters that a model is shown.\n"
    for plugin in shipped():
        if plugin.tools:
            yield f"## {plugin.name}\n"
        for tool in plugin.tools:
            yield f"### {tool.name}\n"
            marks = [tool.effect, *(mark for mark in ("volatile", "idempotent", "optional") if getattr(tool, mark))]
            yield f"{' · '.join(f'**{mark}**' for mark in marks)}\n"
            yield f"```text\n{tool.description}\n```\n"
            properties: Mapping[str, Mapping[str, Any]] = tool.parameters.get("properties", {})
            if properties:
                yield "| parameter | type | default | |\n|---|---|---|---|"
            required = tool.parameters.get("required", ())
            for name, schema in properties.items():
                default = "required" if name in required else f"`{as_json(schema.get('default'))}`"
                yield f"| `{name}` | {type_of(schema)} | {default} | {literal(schema.get('description', ''))} |"
            yield ""
