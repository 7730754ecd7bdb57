"""The plugin of the command line: it declares the hook by which others add commands."""

from __future__ import annotations

from toolkeel import hookimpl


@hookimpl
def declare_hookspecs() -> object:
    """Declare ``cli_commands``."""
    from . import hookspecs

    return hookspecs
