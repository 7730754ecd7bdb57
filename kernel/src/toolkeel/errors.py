"""The tree of errors that toolkeel raises."""

from __future__ import annotations


class ToolkeelError(Exception):
    """Anything that toolkeel raises on purpose.

    ``what`` says what happened, ``where`` names the place (a settings path, a file, a plugin) and ``remedy`` says what
    to do about it. All three are one line of plain text; ``where`` and ``remedy`` may be empty.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    @property
    def said(self) -> str:
        """Where and what, without the remedy: for lists that show the remedy beside it."""
        return f"{self.where}: {self.what}" if self.where else self.what

    def __str__(self) -> str:
        return f"{self.said}. {self.remedy}" if self.remedy else self.said


class SettingsError(ToolkeelError):
    """A settings value that is unknown, of the wrong kind, or not allowed in its layer."""


class WorkspaceSettingsError(SettingsError):
    """A settings file of a checked-out folder sets what it may not. Ends the start: no plugin, which may be a guard,
    is left out on the word of such a folder.
    """


class ManifestError(ToolkeelError):
    """A manifest that cannot be read or says something impossible."""


class DefinitionError(ToolkeelError):
    """A tool, hookspec or hook implementation that is written wrongly. Raised where it is defined or registered."""


class PluginError(ToolkeelError):
    """A plugin that cannot be used; raised instead of a quarantine when ``TOOLKEEL_STRICT=1``."""


class ServiceMissing(ToolkeelError):
    """A service that no active plugin provides."""


class Closed(ToolkeelError):
    """The kernel or the session is closed."""


class ArgumentError(ToolkeelError):
    """Arguments of a call that its tool does not take; the text is written for the model."""


class ToolError(ToolkeelError):
    """The failure that a tool reports on purpose; the model reads its text, so say what to do instead."""
