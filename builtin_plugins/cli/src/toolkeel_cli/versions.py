"""The versions of what answers a bug report's first question."""

from __future__ import annotations

import importlib.metadata
import platform


def versions() -> dict[str, str]:
    """The toolkeel packages that are installed, by name, then Python and the system."""
    found = {
        distribution.name: distribution.version
        for distribution in importlib.metadata.distributions()
        if distribution.name == "toolkeel" or distribution.name.startswith("toolkeel-")
    }
    return dict(sorted(found.items())) | {"python": platform.python_version(), "system": platform.platform()}
