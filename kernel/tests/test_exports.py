"""What `toolkeel` exports: importable, documented, and the same to the type checkers."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolkeel
import toolkeel.testing

SOURCE = Path(toolkeel.__file__).parent
NAMES = [(toolkeel, name) for name in toolkeel.__all__] + [
    (toolkeel.testing, name) for name in toolkeel.testing.__all__
]
each_name = pytest.mark.parametrize(("module", "name"), NAMES, ids=[name for _, name in NAMES])


@each_name
def test_an_exported_name_is_there(module: types.ModuleType, name: str) -> None:
    assert getattr(module, name) is not None
    namespace: dict[str, Any] = {}
    exec(f"from {module.__name__} import {name}", namespace)
    assert namespace[name] is getattr(module, name)


def test_the_exports_are_sorted_and_stand_once() -> None:
    for module in (toolkeel, toolkeel.testing):
        assert len(set(module.__all__)) == len(module.__all__)
    assert not set(toolkeel.__all__) & set(toolkeel.testing.__all__)
    assert toolkeel.__all__ == sorted(toolkeel.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))


def test_what_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="surely_not_there"):
        _ = toolkeel.surely_not_there
    with pytest.raises(ImportError):
        exec("from toolkeel import surely_not_there")


@each_name
def test_an_exported_name_is_documented(module: types.ModuleType, name: str) -> None:
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        text = inspect.getdoc(value) or ""
        assert re.match(r"[^a-z].*[.:]$", text.splitlines()[0] if text else ""), text
        assert not text.startswith(f"{name}(")
    else:
        assert documented_assignments()[name]


def documented_assignments() -> dict[str, bool]:
    """Whether a text stands below each module-level assignment of the kernel."""
    found: dict[str, bool] = {}
    for path in SOURCE.glob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Name):
                text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                found[target.id] = found.get(target.id, False) or text
    return found


def public_members() -> Iterator[tuple[str, Any]]:
    for module, name in NAMES:
        value = getattr(module, name)
        if inspect.isclass(value):
            for member, function in vars(value).items():
                if isinstance(function, (classmethod, staticmethod)):
                    function = function.__func__
                if isinstance(function, property):
                    function = function.fget
                if inspect.isfunction(function) and not member.startswith("_"):
                    yield f"{name}.{member}", function


@pytest.mark.parametrize(("name", "function"), list(public_members()), ids=[name for name, _ in public_members()])
def test_a_public_method_is_documented_and_typed(name: str, function: Any) -> None:
    assert inspect.getdoc(function), name
    hints = set(getattr(function, "__annotations__", {}))
    parameters = [one for one in inspect.signature(function).parameters if one not in ("self", "cls")]
    assert hints >= {*parameters, "return"}, name


def test_every_module_of_the_kernel_says_what_it_is_for() -> None:
    for path in SOURCE.rglob("*.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert re.match(r"[A-Z`][^\n]*[.:]?(\n|$)", text) or path.stem == "__init__", path
        assert text, path


def test_annotations_of_the_exports_can_be_resolved_at_run_time() -> None:
    """Tools that build documentation or schemas from them need that."""
    for module, name in NAMES:
        value = getattr(module, name)
        if inspect.isfunction(value) and not typing.get_overloads(value):
            typing.get_type_hints(value)


def test_mypy_and_pyright_see_every_export_and_nothing_that_is_none(tmp_path: Path) -> None:
    lines = [f"from {module.__name__} import {name} as {name}" for module, name in NAMES]
    lines += ["from toolkeel import events, hookspecs, testing", "_ = (events, hookspecs, testing)"]
    lines += ["from toolkeel import surely_not_there as surely_not_there"]
    file = tmp_path / "uses.py"
    file.write_text("\n".join(lines) + "\n")
    checkers = {
        "mypy": [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), file.name],
        "pyright": [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, file.name],
    }
    running = {
        name: subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in checkers.items()
    }
    said = {name: process.communicate(timeout=120)[0] for name, process in running.items()}
    for name, text in said.items():
        errors = [line for line in text.splitlines() if "error" in line and "uses.py:" in line]
        assert len(errors) == 1, f"{name}: {text}"
        assert "surely_not_there" in errors[0], f"{name}: {text}"
