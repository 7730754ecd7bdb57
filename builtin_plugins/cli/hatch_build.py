"""Packs the plugin template, which stands beside this distribution in a checkout, into what is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TemplateHook(BuildHookInterface):
    """Puts ``plugin_template`` into wheels as ``toolkeel_cli/template`` and into source distributions beside it.

    An editable install reads the template where it stands in the checkout.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the template's folder; a build from a source distribution finds it already in place."""
        template = Path(self.root).parent.parent / "plugin_template"
        if version == "editable" or not template.is_dir():
            return
        inside = "toolkeel_cli/template" if self.target_name == "wheel" else "src/toolkeel_cli/template"
        build_data["force_include"][str(template)] = inside
