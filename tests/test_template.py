"""The plugin template renders a package that installs, is found by the kernel and passes its own tests."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import copier
import pytest
import yaml

Run = Callable[..., str]

LIST_PLUGINS = """
import json
import trio
from toolkeel import Kernel

async def main():
    async with Kernel.open(None) as kernel:
        print(json.dumps({plugin.name: plugin.state for plugin in kernel.plugins.list()}))

trio.run(main)
"""


@pytest.fixture
def render(checkout: Path, tmp_path: Path) -> Callable[..., Path]:
    def rendered(**answers: object) -> Path:
        place = tmp_path / f"toolkeel-{answers['name']}"
        template = str(checkout / "plugin_template")
        copier.run_copy(template, place, data=answers, defaults=True, quiet=True)
        return place

    return rendered


def test_the_rendered_plugin_installs_passes_its_tests_and_is_found(
    checkout: Path, fresh_python: Path, render: Callable[..., Path], run: Run, uv: str, tmp_path: Path
) -> None:
    place = render(name="sea-weather", description="Wind and waves, \N{GREEK SMALL LETTER PI} included", author="José")
    pins = checkout / "constraints.txt"
    install = [uv, "pip", "install", "--quiet", "--python", fresh_python, "--constraint", pins]
    run(*install, checkout / "kernel", place, "pytest")
    tests = run(fresh_python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=place)
    assert " passed" in tests
    found = json.loads(run(fresh_python, "-c", LIST_PLUGINS, cwd=tmp_path, env={"HOME": str(tmp_path)}))
    assert found == {"sea-weather": "active"}

    tools = Path(sys.executable).parent
    run(tools / "ruff", "check", "--no-cache", cwd=place)
    run(tools / "ruff", "format", "--check", "--no-cache", cwd=place)
    run(tools / "mypy", "--python-executable", fresh_python, "--cache-dir", tmp_path / "mypy", "src", cwd=place)


def test_the_licence_is_the_one_that_was_chosen(checkout: Path, render: Callable[..., Path]) -> None:
    assert (render(name="a") / "LICENSE").read_text().strip() == (checkout / "LICENSE").read_text().strip()
    mit = render(name="b", licence="MIT", author="José")
    assert "Copyright (c) José\n" in (mit / "LICENSE").read_text(encoding="utf-8")
    assert project(mit)["project"]["license"] == "MIT"
    closed = render(name="c", licence="LicenseRef-Proprietary")
    assert "All rights reserved" in (closed / "LICENSE").read_text()


def test_the_workflow_is_left_out_on_request(render: Callable[..., Path]) -> None:
    assert (render(name="a") / ".github" / "workflows" / "test.yml").is_file()
    without = render(name="b", ci=False)
    assert not (without / ".github").exists()
    assert "workflow" not in (without / "README.md").read_text(encoding="utf-8")


def test_the_workflow_installs_toolkeel_from_where_the_repository_says(render: Callable[..., Path]) -> None:
    """It is on no index yet, so that the plugin's own requirement alone could not be met."""
    workflow = yaml.safe_load((render(name="a") / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["test"]["steps"]
    (kernel,) = [place for place, step in enumerate(steps) if "TOOLKEEL" in step.get("env", {})]
    (plugin,) = [place for place, step in enumerate(steps) if "--editable ." in step.get("run", "")]
    assert steps[kernel]["env"]["TOOLKEEL"] == "${{ vars.TOOLKEEL }}"
    assert kernel < plugin
    for said, expected in (("", "toolkeel"), ("git+https://host/a#subdirectory=kernel",) * 2):
        command = steps[kernel]["run"].replace("python -m pip install", "echo")
        done = subprocess.run(
            ["bash", "-ec", command], env={"TOOLKEEL": said}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected


@pytest.mark.parametrize(
    ("answers", "remedy"),
    [
        ({"name": "Weather"}, "lower case"),
        ({"name": "a--b"}, "single hyphens"),
        ({"name": "weather\n"}, "lower case"),
        ({"name": "../weather"}, "lower case"),
        ({"name": "x" * 41}, "up to 40"),
        ({"name": "files"}, "belongs to toolkeel itself"),
        ({"name": "toolkeel-weather"}, "it is put in front"),
        ({"name": "weather", "description": 'says "hello"'}, "without double quotes"),
        ({"name": "weather", "description": "two\nlines"}, "one line"),
        ({"name": "weather", "author": "back\\slash"}, "without double quotes"),
    ],
)
def test_answers_that_cannot_work_are_refused_with_the_remedy(
    answers: Mapping[str, str], remedy: str, checkout: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    with pytest.raises(ValueError, match=remedy):
        copier.run_copy(str(checkout / "plugin_template"), place, data=dict(answers), defaults=True, quiet=True)
    assert not place.exists()


def shipped(pattern: str) -> list[Path]:
    return sorted(path.parent for path in Path(__file__).parent.parent.glob(f"{pattern}/*/pyproject.toml"))


@pytest.mark.parametrize("folder", [*shipped("builtin_plugins"), *shipped("contrib")], ids=lambda folder: folder.name)
def test_a_shipped_plugin_has_the_shape_that_the_template_renders(folder: Path, render: Callable[..., Path]) -> None:
    """A stranger gets the same but for dependencies, needs, commands and build hooks; tools are set up in the root."""
    real = project(folder)
    as_stranger = project(render(name=f"copy-of-{folder.name}", description=real["project"]["description"]))
    for table in ("dependency-groups", "tool.ruff", "tool.mypy", "tool.pytest"):
        drop(as_stranger, *table.split("."))
    expected = json.loads(json.dumps(as_stranger).replace("copy-of-", "").replace("copy_of_", ""))
    package = f"toolkeel_{folder.name.replace('-', '_')}"
    scripts = real["project"].pop("scripts", {})
    assert all(target.startswith(f"{package}.") for target in scripts.values())
    real["tool"]["hatch"]["build"].pop("hooks", None)
    points = real["project"]["entry-points"]
    points.pop("toolkeel.needs", None)
    points["toolkeel"] = {name: target.partition(":")[0] for name, target in points["toolkeel"].items()}
    for shape in (real, expected):
        kernels = [need for need in shape["project"].pop("dependencies") if need.startswith("toolkeel>=")]
        shape["kernel"] = kernels
    assert [list(real), list(real["project"])] == [list(expected), list(expected["project"])], "the order of the tables"
    assert real == expected
    for name in ("__init__.py", "py.typed", "plugin.py"):
        assert (folder / "src" / package / name).is_file(), name
    assert (folder / "README.md").is_file()
    assert (folder / "LICENSE").is_file()


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def drop(table: dict[str, Any], *path: str) -> None:
    for key in path[:-1]:
        table = table[key]
    del table[path[-1]]
