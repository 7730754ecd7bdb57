"""The settings reference, from the settings models."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel
from toolkeel import hookspecs
from toolkeel.settings import KernelSettings

from .hooks import hooks
from .models import fields
from .shipped import shipped


def page() -> Iterator[str]:
    """Every setting of the kernel and of the plugins that ship with it."""
    yield "# Settings\n"
    yield (
        "Every setting with its path, type and default. [Configuration](../run/configuration.md) tells where values "
        "come from and what a workspace file may set.\n"
    )
    yield "## The kernel: `kernel`\n"
    yield from _settings("kernel", KernelSettings)
    yield "## Which plugin serves an exclusive hook\n"
    yield "| setting | hooks |\n|---|---|"
    exclusive = [hook for hook in hooks(hookspecs) if hook.exclusive]
    for setting in sorted({hook.exclusive for hook in exclusive}):
        names = ", ".join(f"[`{hook.name}`](hooks.md#{hook.name})" for hook in exclusive if hook.exclusive == setting)
        yield f"| `{setting}` | {names} |"
    yield "\nWhere it is not set, the first plugin in the order of loading serves.\n"
    for plugin in shipped():
        if plugin.settings is not None:
            yield f"## The plugin `{plugin.name}`: `{plugin.section}`\n"
            yield from _settings(plugin.section, plugin.settings)


def _settings(section: str, model: type[BaseModel]) -> Iterator[str]:
    yield "| setting | type | default | workspace file | what it does |\n|---|---|---|---|---|"
    for field in fields(model):
        path = f"`{section}.{field.name}`"
        yield f"| {path} | {field.kind} | {field.default} | {field.workspace} | {field.description} |"
    yield ""
