"""toolkeel: a plugin-based microkernel for agent tools."""

from typing import TYPE_CHECKING, Any

from .calls import Allow, Answer, Answered, Ask, Call, CallRecord, Reason, Refuse, Repair, ToolCall, Verdict, thawed
from .errors import ToolError, ToolkeelError
from .hookspecs import API_VERSION, Hooks, PluginContext, hookimpl, hookspec
from .outputs import Data, Failure, Markdown, Media, Parts, Preview, Result, Spilled, Text
from .scope import Principal, Request, Scope
from .selection import Pin, Ranking
from .services import Services
from .skills import PromptSection, Skill
from .tools import EVERYTHING, Key, Preset, Tool, ToolContext, raw_tool, tool

if TYPE_CHECKING:
    from .config import Config
    from .kernel import Kernel, Session
    from .offer import Explanation, Offer, Step
    from .plugin import PluginInfo
    from .settings import KernelSettings, narrowing

_ENGINE = {
    "Config": "config",
    "Explanation": "offer",
    "Kernel": "kernel",
    "Offer": "offer",
    "KernelSettings": "settings",
    "PluginInfo": "plugin",
    "Session": "kernel",
    "Step": "offer",
    "narrowing": "settings",
}
"""What is imported on first use: a plugin that only declares tools and hooks does not load the engine."""

__all__ = [
    "API_VERSION",
    "EVERYTHING",
    "Allow",
    "Answer",
    "Answered",
    "Ask",
    "Call",
    "CallRecord",
    "Config",
    "Data",
    "Explanation",
    "Failure",
    "Hooks",
    "Kernel",
    "KernelSettings",
    "Key",
    "Markdown",
    "Media",
    "Offer",
    "Parts",
    "Pin",
    "PluginContext",
    "PluginInfo",
    "Preset",
    "Preview",
    "Principal",
    "PromptSection",
    "Ranking",
    "Reason",
    "Refuse",
    "Repair",
    "Request",
    "Result",
    "Scope",
    "Services",
    "Session",
    "Skill",
    "Spilled",
    "Step",
    "Text",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolkeelError",
    "Verdict",
    "hookimpl",
    "hookspec",
    "narrowing",
    "raw_tool",
    "thawed",
    "tool",
]


if not TYPE_CHECKING:  # a type checker that saw it would take any name for one of ours

    def __getattr__(name: str) -> Any:
        module = _ENGINE.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f".{module}", __name__), name)
        globals()[name] = value
        return value
