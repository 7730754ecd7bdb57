"""The command ``toolkeel``: what a plugin needs to add a command to it."""

from .hookspecs import Command
from .options import Options

__all__ = ["Command", "Options"]
