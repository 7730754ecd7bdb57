"""toolkeel new-plugin: a plugin of one's own, from the template."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

import toolkeel_cli
from toolkeel_cli.exits import UsageError
from toolkeel_cli.options import Options
from toolkeel_cli.screen import Screen


def new_plugin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The plugin's name; the package is toolkeel-NAME")],
    options: Options,
    into: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where to write it (./toolkeel-NAME)")] = None,
    description: Annotated[str | None, typer.Option(help="What it does, in one line")] = None,
    author: Annotated[str | None, typer.Option(help="Who wrote it")] = None,
    licence: Annotated[str | None, typer.Option(help="Apache-2.0, MIT or LicenseRef-Proprietary")] = None,
    ask: Annotated[
        bool | None, typer.Option("--ask/--no-ask", help="Ask for what is not given here (on a terminal: yes)")
    ] = None,
) -> None:
    """Write a plugin of your own as a package that can be published: code, tests, licence."""
    given = {"description": description, "author": author, "licence": licence}
    data: dict[str, object] = {"name": name, **{key: value for key, value in given.items() if value is not None}}
    try:
        folder = (into or Path(f"toolkeel-{name}")).resolve()
    except FileNotFoundError:
        raise UsageError("the current folder was removed", remedy="Go to one that is there: cd") from None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "the folder is there already and is not empty", where=str(folder), remedy="Name another with --into"
        )
    asking = (sys.stdin.isatty() and not options.json) if ask is None else ask
    _render(folder, data, asking=asking)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    screen = Screen(as_json=options.json)
    if options.json:
        screen.json({"folder": str(folder), "files": files})
        return
    screen.line(str(folder), style="bold")
    for file in files:
        screen.line(f"  {file}")
    screen.note(
        "\nNext: install it into this toolkeel's environment and run its tests\n"
        f"  cd {shlex.quote(str(folder))}\n"
        f"  {_installer()} --editable . pytest\n"
        f"  {shlex.quote(sys.executable)} -m pytest\n"
        "  toolkeel plugins"
    )


def _installer() -> str:
    """The command that installs into the environment that runs this; those that uv makes have no pip."""
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") is not None:
        return f"{python} -m pip install"
    beside = Path(sys.prefix).parent / ".uv" / "bin" / "uv"
    uv = shlex.quote(str(beside)) if beside.is_file() else "uv"
    return f"{uv} pip install --python {python}"


def _render(folder: Path, data: dict[str, object], *, asking: bool) -> None:
    import copier
    from copier.errors import CopierError

    try:
        copier.run_copy(str(template()), folder, data=data, defaults=not asking, quiet=True)
    except (CopierError, ValueError) as error:
        raise UsageError(" ".join(str(error).split()), remedy="toolkeel new-plugin --help") from error


def template() -> Path:
    """The template's folder: packed into the installed package, or beside it in a checkout."""
    package = Path(toolkeel_cli.__file__).parent
    packed, checkout = package / "template", package.parents[3] / "plugin_template"
    found = packed if packed.is_dir() else checkout
    if not (found / "copier.yml").is_file():
        raise UsageError("the plugin template is not in this installation", remedy="Reinstall toolkeel-cli")
    return found
