"""The hooks of toolkeel-files."""

from __future__ import annotations

import os
import threading

from toolkeel import PluginContext, Scope, Tool, hookimpl
from toolkeel.errors import PluginError

from .settings import Settings


class Files:
    """File tools that never leave the registered workspace folders."""

    def __init__(self, context: PluginContext) -> None:
        if os.open not in os.supports_dir_fd:
            raise PluginError(
                "this system cannot open files relative to an open folder, and without that a link which is swapped at "
                "the right moment leads out of the workspace",
                remedy="Use Linux, macOS or a BSD; or list the plugin under kernel.disable",
            )
        self._settings: Settings = context.settings
        self._tools: tuple[Tool, ...] = ()
        self._making = threading.Lock()

    @hookimpl
    def register_tools(self, scope: Scope) -> tuple[Tool, ...] | None:
        """Give the same tools to every session that has a workspace folder, and none to others."""
        if not scope.workspaces:
            return None
        with self._making:
            if not self._tools:
                from .tools import FileTools

                self._tools = FileTools(self._settings).tools()
        return self._tools
