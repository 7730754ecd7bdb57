"""toolkeel: a plugin-based microkernel for agent tools."""

from .calls import Allow, Answer, Answered, Ask, Call, CallRecord, Reason, Refuse, Repair, ToolCall, Verdict
from .errors import ToolError, ToolkeelError
from .hookspecs import API_VERSION, Hooks, PluginContext, hookimpl, hookspec
from .outputs import Data, Failure, Markdown, Media, Parts, Preview, Result, Spilled, Text
from .scope import Principal, Request, Scope
from .selection import Pin, Ranking
from .services import Services
from .skills import PromptSection, Skill
from .tools import EVERYTHING, Key, Preset, Tool, ToolContext, raw_tool, tool

__all__ = [
    "API_VERSION",
    "EVERYTHING",
    "Allow",
    "Answer",
    "Answered",
    "Ask",
    "Call",
    "CallRecord",
    "Data",
    "Failure",
    "Hooks",
    "Key",
    "Markdown",
    "Media",
    "Parts",
    "Pin",
    "PluginContext",
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
    "Skill",
    "Spilled",
    "Text",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolkeelError",
    "Verdict",
    "hookimpl",
    "hookspec",
    "raw_tool",
    "tool",
]
