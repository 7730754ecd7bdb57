"""The fields of a pydantic model, for tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from .markdown import as_json, cell


class Field(NamedTuple):
    """One field of a settings or manifest model, in cells of a table."""

    name: str
    kind: str
    default: str
    workspace: str
    description: str


def fields(model: type[BaseModel]) -> Iterator[Field]:
    """The fields of a model in their order."""
    properties = model.model_json_schema(mode="validation")["properties"]
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else f"`{as_json(field.get_default(call_default_factory=True))}`"
        extra = field.json_schema_extra
        may = str(extra.get("workspace", "")) if isinstance(extra, Mapping) else ""
        yield Field(name, type_of(properties[name]), default, _WORKSPACE[may], cell(field.description or ""))


_WORKSPACE = {"": "no", "lower": "may lower it", "extend": "may add to it", "any": "may set it"}


def type_of(schema: Mapping[str, Any]) -> str:
    """A JSON schema in a few words for a table."""
    if "$ref" in schema:
        return "object"
    if "anyOf" in schema:
        return " or ".join(type_of(option) for option in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"mapping to {type_of(values)}" if isinstance(values, Mapping) else "mapping"
    bounds = [
        f"{sign} {schema[key]:g}"
        for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
        if key in schema
    ]
    return " ".join([kind, ", ".join(bounds)]).strip()
