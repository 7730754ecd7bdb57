"""toolkeel: a plugin-based microkernel for agent tools."""

from .calls import Allow, Answer, Answered, Ask, Call, CallRecord, Reason, Refuse, Repair, ToolCall, Verdict
from .config import Config
from .errors import ToolError, ToolkeelError
from .hookspecs import API_VERSION, Hooks, PluginContext, hookimpl, hookspec
from .kernel import Kernel, Session
from .offer import Explanation, Offer, Step
from .outputs import Data, Failure, Markdown, Media, Parts, Preview, Result, Spilled, Text
from .plugins import PluginInfo
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
    "Config",
    "Data",
    "Explanation",
    "Failure",
    "Hooks",
    "Kernel",
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
    "raw_tool",
    "tool",
]
