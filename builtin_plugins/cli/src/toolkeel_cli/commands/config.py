"""toolkeel config: the settings in effect, and where each comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

import msgspec
import typer
from pydantic import BaseModel

from toolkeel import Config, Kernel
from toolkeel.layers import Origin
from toolkeel_cli.hidden import shown
from toolkeel_cli.nearest import did_you_mean
from toolkeel_cli.opening import open_kernel
from toolkeel_cli.options import Options
from toolkeel_cli.screen import Screen


class Setting(msgspec.Struct, frozen=True):
    """One value in effect: its path, the value, where it came from."""

    path: str
    value: object
    origin: Origin


async def config(
    options: Options,
    prefix: Annotated[str, typer.Argument(metavar="[PATH]", help="Only what lies below this path")] = "",
    changed: Annotated[bool, typer.Option("--changed", help="Only what differs from the defaults' layer")] = False,
) -> None:
    """Show every setting in effect with the layer that set it, and the file and line."""
    screen = Screen(as_json=options.json)
    async with open_kernel(options) as (kernel, _):
        known = settings(kernel)
    below = [each for each in known if not prefix or each.path == prefix or each.path.startswith(f"{prefix}.")]
    found = [each for each in below if not (changed and each.origin.layer == "defaults")]
    if options.json:
        screen.json({setting.path: _as_json(setting) for setting in found})
        return
    rows = [(setting.path, _short(setting.value), str(setting.origin)) for setting in found]
    if rows:
        screen.table(("setting", "value", "from"), rows)
    elif below:
        screen.note("all of it is as the defaults say")
    else:
        screen.note(f"there is no setting {prefix!r}. {_nearest(prefix, known)}".rstrip())


def _nearest(path: str, known: list[Setting]) -> str:
    """The nearest path, of a setting or of a section that holds some."""
    steps = [each.path.split(".") for each in known]
    return did_you_mean(path, dict.fromkeys(".".join(each[:end]) for each in steps for end in range(1, len(each) + 1)))


def settings(kernel: Kernel) -> list[Setting]:
    """Every setting in effect, by path: the kernel's, each active plugin's, and what else the layers set."""
    models: dict[str, BaseModel] = {"kernel": kernel.settings}
    for plugin in kernel.plugins.active():
        if plugin.section and plugin.context is not None and isinstance(plugin.context.settings, BaseModel):
            models[plugin.section] = plugin.context.settings
    found: dict[str, Setting] = {}
    for trail, value in _leaves(kernel.config.effective(), ()) if kernel.config.effective() else ():
        found[".".join(trail)] = _setting(kernel.config, trail, value)
    for section, model in models.items():
        for path in [path for path in found if path.startswith(f"{section}.")]:
            del found[path]
        for trail, value in _leaves(model.model_dump(mode="json"), tuple(section.split("."))):
            found[".".join(trail)] = _setting(kernel.config, trail, value)
    return [found[path] for path in sorted(found)]


def _setting(config: Config, trail: tuple[str, ...], value: object) -> Setting:
    return Setting(".".join(trail), shown(value, trail), config.origin(*trail))


def _leaves(value: object, trail: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping) and value:
        for key, inner in cast("Mapping[Any, Any]", value).items():
            yield from _leaves(inner, (*trail, str(key)))
    else:
        yield trail, value


def _as_json(setting: Setting) -> dict[str, object]:
    origin = setting.origin
    return {"value": setting.value, "layer": origin.layer, "source": origin.source, "line": origin.line}


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
