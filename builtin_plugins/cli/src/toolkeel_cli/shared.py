"""Turns a command's function into one that typer takes, with the options that every command has."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from toolkeel.scope import Role

from .options import Options


def _shared(
    json: Annotated[bool, typer.Option("--json", help="Write results and errors as JSON")] = False,
    workspace: Annotated[
        list[Path] | None,
        typer.Option(
            "--workspace",
            "-w",
            metavar="FOLDER",
            help="A folder that tools may work in; repeatable. Else the settings' folders, else the current one",
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent's id (main)")] = None,
    session: Annotated[str | None, typer.Option(metavar="KEY", help="The session's key (main)")] = None,
    role: Annotated[
        Role | None, typer.Option(metavar="ROLE", help="Act as admin (the default), operator, user or service")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a setting; repeatable")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PLUGIN", help="Load only this plugin; repeatable, or a list with commas"),
    ] = None,
    disable: Annotated[
        list[str] | None, typer.Option(metavar="PLUGIN", help="Do not load this plugin; likewise")
    ] = None,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Show the log on standard error; -vv shows all of it",
        ),
    ] = 0,
    trace: Annotated[bool, typer.Option("--trace", help="Show where in the code an error happened")] = False,
) -> None: ...


_SHARED = [
    parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    for parameter in inspect.signature(_shared, eval_str=True).parameters.values()
]
_FILLED = (Options, typer.Context)
_CONTEXT = inspect.Parameter("_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

Run = Callable[[Callable[..., Any], Options, dict[str, Any]], int]
"""Runs a command's function with the options and its arguments by name; gives the exit code."""


def adapted(function: Callable[..., Any], run: Run) -> Callable[..., int]:
    """A function with the signature that typer reads: the command's own parameters and the shared options.

    Options before the command's name and behind it count alike; of two the later wins, lists grow. Where a further
    command follows, the options are remembered for it and nothing runs.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints.get(name, str), kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
    ]
    takes = {parameter.name: parameter.annotation for parameter in own if parameter.annotation in _FILLED}
    mine = [parameter for parameter in own if parameter.name not in takes]

    def command(*, _context: typer.Context, **values: Any) -> int:
        given = {parameter.name: values.pop(parameter.name) for parameter in _SHARED}
        _context.obj = options = _merged(_context.obj, given)
        if _context.invoked_subcommand is not None:
            return 0
        filled = {name: options if kind is Options else _context for name, kind in takes.items()}
        return run(function, options, {**filled, **values})

    parameters = [_CONTEXT, *mine, *_SHARED]
    made: Any = command
    made.__signature__ = inspect.Signature(parameters)
    made.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    made.__doc__ = inspect.getdoc(function)
    return command


def _merged(before: object, given: dict[str, Any]) -> Options:
    known = before if isinstance(before, Options) else Options()
    return Options(
        json=known.json or given["json"],
        workspaces=(*known.workspaces, *(given["workspace"] or ())),
        agent=given["agent"] or known.agent,
        session=given["session"] or known.session,
        role=given["role"] or known.role,
        settings=(*known.settings, *(given["setting"] or ())),
        only=(*known.only, *_names(given["only"])),
        disable=(*known.disable, *_names(given["disable"])),
        verbose=known.verbose + given["verbose"],
        trace=known.trace or given["trace"],
    )


def _names(values: list[str] | None) -> list[str]:
    return [name.strip() for value in values or () for name in value.split(",") if name.strip()]
