"""The workspace: distributions that stand alone, pins that hold, borders that nothing crosses."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Run = Callable[..., str]

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTIONS = [ROOT / "kernel", *sorted(path.parent for path in ROOT.glob("builtin_plugins/*/pyproject.toml"))]

each_distribution = pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
each_plugin = pytest.mark.parametrize("folder", DISTRIBUTIONS[1:], ids=lambda folder: folder.name)


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def package(folder: Path) -> Path:
    (source,) = project(folder)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return folder / source


# Alone -------------------------------------------------------------------------------------------------------------

STRANGER = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "stranger"
version = "1.0"
dependencies = ["toolkeel"]

[project.entry-points.toolkeel]
stranger = "stranger"
""",
    "stranger.py": '''
from toolkeel import hookimpl, tool

@tool(effect="read")
def shout(text: str, times: int = 1) -> str:
    """Say it louder."""
    return text.upper() + "!" * times

@hookimpl
def register_tools():
    return shout
''',
}

CALL_IT = """
import json
import sys
import trio
from toolkeel import Kernel, Principal, ToolCall

async def main():
    async with Kernel.open(None) as kernel, kernel.session(channel="test") as session:
        offer = await session.offer(session.request("hello", principal=Principal("ann", "admin")))
        answers = await offer.call([ToolCall(name="shout", arguments='{"text": "ahoy", "times": 3}', id="1")])
        print(json.dumps({
            "offered": [tool.name for tool in offer.tools],
            "answers": [[answer.status, answer.text] for answer in answers],
            "plugins": [[plugin.name, plugin.state] for plugin in kernel.plugins.list()],
        }))

trio.run(main)
"""


@pytest.mark.requirement("K17")
def test_the_kernel_alone_runs_a_strangers_plugin(fresh_python: Path, run: Run, tmp_path: Path) -> None:
    for name, text in STRANGER.items():
        (tmp_path / "stranger" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "stranger" / name).write_text(text)
    pip = [fresh_python, "-m", "pip"]
    run(*pip, "install", "--quiet", "--constraint", ROOT / "constraints.txt", ROOT / "kernel")
    run(*pip, "install", "--quiet", tmp_path / "stranger")
    installed = {row["name"] for row in json.loads(run(*pip, "list", "--format=json"))}
    assert {name for name in installed if name.startswith("toolkeel")} == {"toolkeel"}
    assert json.loads(run(fresh_python, "-c", CALL_IT, cwd=tmp_path, env={"HOME": str(tmp_path)})) == {
        "offered": ["shout"],
        "answers": [["completed", "AHOY!!!"]],
        "plugins": [["stranger", "active"]],
    }


def test_every_distribution_builds_a_typed_wheel_with_its_licence_and_nothing_else(
    run: Run, uv: str, tmp_path: Path
) -> None:
    run(uv, "build", "--quiet", "--all-packages", "--out-dir", tmp_path)  # each wheel from its source distribution
    for folder in DISTRIBUTIONS:
        name = package(folder).name
        (wheel,) = tmp_path.glob(f"{canonicalize_name(project(folder)['project']['name']).replace('-', '_')}-0*.whl")
        files = zipfile.ZipFile(wheel).namelist()
        tops = {file.partition("/")[0] for file in files}
        (information,) = tops - {name}
        assert information.endswith(".dist-info")
        assert f"{name}/py.typed" in files
        assert f"{information}/licenses/LICENSE" in files
        assert f"{information}/entry_points.txt" in files
        if name == "toolkeel_cli":
            assert f"{name}/template/copier.yml" in files, "toolkeel new-plugin renders it"


# Borders -----------------------------------------------------------------------------------------------------------

HEAVY = {"re2", "jmespath", "typer", "rich", "copier", "pytest", "sqlite3", "sqlglot", "jinja2", "whoosh", "httpx"}
"""What only the work of a plugin may load."""


def imported(source: Path) -> Iterator[tuple[str, str]]:
    """The top-level packages that the modules below a folder import, each with its place."""
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            else:
                continue
            for name in names:
                yield name.partition(".")[0], f"{path.relative_to(ROOT)}:{node.lineno}"


def needed(folder: Path) -> set[str]:
    """The import names of what a distribution depends on, itself or through the kernel, whose types hold theirs."""
    needs = project(folder)["project"]["dependencies"] + project(ROOT / "kernel")["project"]["dependencies"]
    wanted = {canonicalize_name(Requirement(need).name) for need in needs}
    by_import = importlib.metadata.packages_distributions()
    theirs = {name for name, owners in by_import.items() if wanted & {canonicalize_name(owner) for owner in owners}}
    if "pydantic" in wanted:
        theirs.add("pydantic_core")  # one project in two distributions, released together
    return theirs | ({"toolkeel"} & wanted)  # an editable install does not list its own packages


@pytest.mark.requirement("K17")
@each_distribution
def test_a_distribution_imports_only_itself_the_standard_library_and_what_it_depends_on(folder: Path) -> None:
    allowed = {package(folder).name, *sys.stdlib_module_names, *needed(folder)}
    if folder.name == "kernel":
        allowed |= {"pytest"}  # the test kit's own module for pytest, which loads it
        allowed -= {"sqlite3", "http", "socketserver", "wsgiref", "xmlrpc"}
    astray = {name: place for name, place in imported(package(folder)) if name not in allowed}
    assert not astray


@pytest.mark.requirement("K17")
def test_pytest_is_imported_by_the_test_kit_alone() -> None:
    places = {place for name, place in imported(package(ROOT / "kernel")) if name == "pytest"}
    assert all(place.startswith("kernel/src/toolkeel/testing/") for place in places), places


@each_plugin
def test_a_plugin_imports_no_other_plugin(folder: Path) -> None:
    names = {name for name, _ in imported(package(folder)) if name.startswith("toolkeel")}
    assert names <= {"toolkeel", package(folder).name}


@each_plugin
def test_importing_a_plugin_loads_nothing_heavy(folder: Path, run: Run) -> None:
    """Every start of toolkeel imports each plugin's module."""
    loaded = set(run(sys.executable, "-c", f"import sys, {package(folder).name}.plugin; print(*sys.modules)").split())
    assert not loaded & HEAVY


# Pins --------------------------------------------------------------------------------------------------------------


def pins() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def versions() -> dict[str, set[str]]:
    """Each pinned name with its version, or versions where they differ by interpreter."""
    found: dict[str, set[str]] = {}
    for requirement in map(Requirement, pins()):
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", f"{requirement} is not one exact version"
        found.setdefault(canonicalize_name(requirement.name), set()).add(specifier.version)
    return found


def test_pip_and_uv_read_the_same_pins() -> None:
    assert pins() == project(ROOT)["tool"]["uv"]["constraint-dependencies"]


def test_what_is_installed_is_what_is_pinned() -> None:
    pinned = versions()
    ours = {canonicalize_name(project(folder)["project"]["name"]) for folder in [ROOT, *DISTRIBUTIONS]}
    astray = {
        name: distribution.version
        for distribution in importlib.metadata.distributions(path=[_site_packages()])
        if (name := canonicalize_name(distribution.name)) not in ours
        and distribution.version not in pinned.get(name, ())
    }
    assert not astray, "run .ci/pin, then uv sync"


def _site_packages() -> str:
    return str(Path(pytest.__file__).parent.parent)


def test_a_fresh_resolution_for_every_supported_python_and_system_gives_the_pins(
    run: Run, uv: str, tmp_path: Path
) -> None:
    for file in ["pyproject.toml", *(f"{folder.relative_to(ROOT)}/pyproject.toml" for folder in DISTRIBUTIONS)]:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    run(uv, "lock", "--quiet", cwd=tmp_path)
    locked = tomllib.loads((tmp_path / "uv.lock").read_text(encoding="utf-8"))
    assert locked["requires-python"] == ">=3.11"
    found: dict[str, set[str]] = {}
    for entry in locked["package"]:
        if "registry" in entry["source"]:
            found.setdefault(entry["name"], set()).add(entry["version"])
    assert found == versions()


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_every_pin_installs_from_a_wheel(version: str, run: Run, uv: str, tmp_path: Path) -> None:
    """So that nobody needs a compiler, on any Python that is supported."""
    (tmp_path / "pins.txt").write_text("\n".join(pins()))
    what = ["--only-binary", ":all:", "--requirement", tmp_path / "pins.txt", "--target", tmp_path / "nowhere"]
    run(uv, "pip", "install", "--quiet", "--dry-run", "--python-version", version, *what)


# Texts -------------------------------------------------------------------------------------------------------------

# In pieces, so that this file names none.
NAMES = ("py" + "pi", "python" + "hosted", "registry.npm" + "js", "deb.deb" + "ian")
HOSTS = re.compile(rf"\b({'|'.join(map(re.escape, NAMES))})\.(org|com)\b")


def texts(run: Run) -> Iterator[tuple[str, str]]:
    """Every text file that is, or is about to be, in the repository."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, names):
        path = ROOT / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 5_000_000:
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_no_file_names_a_registry_or_a_path_of_this_machine(run: Run) -> None:
    here = [str(ROOT)]
    if len(ROOT.parents) > 2 or ROOT.parent.name not in ("", "tmp", "home", "root", "srv", "opt"):
        here.append(f"{ROOT.parent}/")
    astray = [
        (name, found)
        for name, text in texts(run)
        for found in [*(match[0] for match in HOSTS.finditer(text)), *(place for place in here if place in text)]
    ]
    assert not astray


def test_no_lock_file_is_kept(run: Run) -> None:
    kept = run("git", "ls-files").splitlines()
    assert not [name for name in kept if Path(name).name in ("uv.lock", "package-lock.json", "poetry.lock")]
