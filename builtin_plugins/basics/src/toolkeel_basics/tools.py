"""The tools of this plugin: the same objects for every session."""

from __future__ import annotations

from .calc import calc
from .dates import datetime_tool
from .json_transform import json_transform
from .regex import regex
from .text_utils import text_utils

TOOLS = (calc, datetime_tool, json_transform, regex, text_utils)
