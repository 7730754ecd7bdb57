"""The manifest reference, from the manifest models."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from toolkeel import manifest

from .markdown import inline
from .models import fields


def page() -> Iterator[str]:
    """The fields of the manifests that a plugin folder may have."""
    yield "# Manifests\n"
    yield (
        "A plugin that is not a package is a folder with a `plugin.json`. It lies in `extensions` below the state "
        "folder or below a workspace folder. It is listed, and not run until an operator enables it by id and content "
        "hash: `toolkeel plugins` shows both.\n"
    )
    yield '<!-- snippet: docs/snippets/manifest/plugin.json -->\n```json title="extensions/greeter/plugin.json"\n```\n'
    for model, title in (
        (manifest.PluginManifest, "`plugin.json`"),
        (manifest.Entry, "The object `toolkeel`"),
        (manifest.OpenClawManifest, "`openclaw.plugin.json`"),
    ):
        yield f"## {title}\n"
        yield f"{inline(inspect.getdoc(model) or '')}\n"
        yield "| field | type | default | what it is |\n|---|---|---|---|"
        for field in fields(model):
            yield f"| `{field.name}` | {field.kind} | {field.default} | {field.description} |"
        yield ""
