"""The commands of ``toolkeel``, each imported when it is run."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterable
from typing import Annotated, Any, cast

import msgspec
import typer
from typer.core import TyperCommand, TyperGroup

from toolkeel.errors import DefinitionError

from .hookspecs import Command
from .options import Options
from .running import run
from .screen import Screen
from .shared import adapted

_HERE = "toolkeel_cli.commands"

COMMANDS = (
    Command("demo", "Watch the engine at work, without a key and without a network", f"{_HERE}.demo:demo"),
    Command(
        "tools", "List the tools that are offered, for people or as a model's API takes them", f"{_HERE}.tools:tools"
    ),
    Command("call", "Call one tool", f"{_HERE}.call:call"),
    Command("exec", "Run the tool calls of a model's response", f"{_HERE}.execute:execute"),
    Command("explain", "Say whether a tool is offered, and which rules decided", f"{_HERE}.explain:explain"),
    Command(
        "plugins",
        "List plugins with their state, and turn them on and off",
        f"{_HERE}.plugins:plugins",
        (
            Command("enable", "Turn a plugin on, in the settings", f"{_HERE}.plugins:enable"),
            Command("disable", "Turn a plugin off, in the settings", f"{_HERE}.plugins:disable"),
            Command("hash", "Print the content hash of a plugin folder", f"{_HERE}.plugins:content_hash"),
        ),
    ),
    Command("config", "Show the settings in effect and where each comes from", f"{_HERE}.config:config"),
    Command("doctor", "Check this installation, and say what to do about what is wrong", f"{_HERE}.doctor:doctor"),
    Command("new-plugin", "Start a plugin of your own as a package", f"{_HERE}.new_plugin:new_plugin"),
)


class Commands(TyperGroup):
    """A group whose commands are built when they are asked for. ``more`` gives those of plugins."""

    known: dict[str, Command]
    more: Callable[[], Iterable[Command]] | None = None

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """The names, those of plugins last."""
        self._ask_plugins()
        return list(self.known)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:  # noqa: ARG002
        """The command of a name, built on first use."""
        if cmd_name not in self.known:
            self._ask_plugins()
        command = self.known.get(cmd_name)
        if command is None:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = built(command)
        return cast("TyperCommand | TyperGroup", self.commands[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer does, with the nearest names of all commands, built or not."""
        if self.get_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], self.known, 3)
            ctx.fail(f"there is no command {args[0]!r}" + (f"; nearest: {', '.join(near)}" if near else ""))
        return super().resolve_command(ctx, args)

    def _ask_plugins(self) -> None:
        more, self.more = self.more, None
        for command in more() if more else ():
            self.known.setdefault(command.name, command)


def built(command: Command) -> TyperCommand | TyperGroup:
    """A command as typer runs it. Its target is imported now; one that cannot be used says so when it is run."""
    try:
        return _built(command, adapted(_target(command), run))
    except Exception as error:  # noqa: BLE001 - a plugin's fault must not hide the commands of others
        fault = DefinitionError(
            f"the command cannot be used: {type(error).__name__}: {error}",
            where=f"command {command.name!r}: {command.target}",
        )

        def unusable() -> None:
            raise fault

        return _built(msgspec.structs.replace(command, commands=()), adapted(unusable, run))


def _built(command: Command, function: Callable[..., Any]) -> TyperCommand | TyperGroup:
    text = function.__doc__ or command.help
    if command.commands:
        app = typer.Typer(name=command.name, add_completion=False, rich_markup_mode=None)
        app.callback(cls=Commands, help=text, short_help=command.help, invoke_without_command=True)(function)
        return _with(app, command.commands)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(command.name, help=text, short_help=command.help)(function)
    return cast("TyperCommand", typer.main.get_command(app))


def _with(app: typer.Typer, commands: Iterable[Command]) -> Commands:
    group = cast("Commands", typer.main.get_command(app))
    group.known = {command.name: command for command in commands}
    return group


def _target(command: Command) -> Callable[..., Any]:
    if not isinstance(command.target, str):
        return command.target
    module, _, name = command.target.partition(":")
    return cast("Callable[..., Any]", getattr(importlib.import_module(module), name))


def toolkeel(
    context: typer.Context,
    options: Options,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit")] = False,
) -> int:
    """An engine for agent tools: which tools a model is offered, and the guarded running of its calls.

    Begin with `toolkeel demo`.
    """
    from .versions import versions

    if not version:
        typer.echo(context.get_help())
        return 0
    screen = Screen(as_json=options.json)
    if options.json:
        screen.json(versions())
    else:
        screen.text("\n".join(f"{name} {number}" for name, number in versions().items()))
    return 0


def main_group(screen: Screen) -> Commands:
    """The group of all commands. Plugins are asked for theirs only where it matters."""

    def of_plugins() -> Iterable[Command]:
        from .opening import commands_of_plugins

        return commands_of_plugins(screen, [command.name for command in COMMANDS])

    app = typer.Typer(rich_markup_mode=None)
    function = adapted(toolkeel, run)
    app.callback(cls=Commands, invoke_without_command=True, help=function.__doc__)(function)
    group = _with(app, COMMANDS)
    group.more = of_plugins
    return group
