"""Reads tool calls out of models' responses and writes tool results in the vendors' forms."""

from __future__ import annotations

from .forms import FORMS, Form, Response, WireCall, WireError
from .reading import read_response
from .writing import tool_list, write_results

__all__ = [
    "FORMS",
    "Form",
    "Response",
    "WireCall",
    "WireError",
    "read_response",
    "tool_list",
    "write_results",
]
