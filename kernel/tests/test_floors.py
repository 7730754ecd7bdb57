"""The floors of the kernel: what may import what.

The design page's table has every module, and a test of the docs holds the code to it. Here stands what does not move
when a module is split: the settled modules, their floors, and that no way round leads up.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolkeel

SOURCE = Path(toolkeel.__file__).parent
VOCABULARY = ["errors", "schema", "scope", "outputs", "skills", "selection", "tools", "calls", "events", "services"]
FLOORS = [
    {*VOCABULARY},
    {"hookspecs", "config", "manifest"},
    {"hooks", "discovery", "keys", "pool", "validate", "watch", "rendering", "delivery"},
    {"plugins", "offer", "dispatch"},
    {"kernel"},
]
ORDERED = [
    VOCABULARY,
    ["hooks", "delivery"],
    ["pool", "delivery"],
    ["watch", "delivery"],
    ["plugins", "offer", "dispatch"],
]
"""Modules of one floor that have an order: none reaches one that stands after it."""


@functools.cache
def parsed(module: str) -> ast.Module:
    return ast.parse((SOURCE / f"{module}.py").read_text(encoding="utf-8"))


def run_time(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those that only a type checker reads."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from run_time(child)


def siblings(module: str) -> set[str]:
    """The kernel's modules that a module imports, at once or inside a function."""
    found: set[str] = set()
    for node in run_time(parsed(module)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module} if node.module else {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("toolkeel"):
            found.add((node.module or "").partition(".")[2] or "__init__")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("toolkeel")}
    return found


def outsiders(module: str) -> set[str]:
    """The packages from outside that a module imports anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found - set(sys.stdlib_module_names)


MODULES = sorted(path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__")


@functools.cache
def reach() -> dict[str, set[str]]:
    """Each module with all that it imports, at once or by way of others."""
    found = {module: siblings(module) for module in MODULES}
    for _ in MODULES:
        found = {module: near.union(*(found.get(one, set()) for one in near)) for module, near in found.items()}
    return found


@pytest.mark.parametrize("module", [module for floor in FLOORS for module in sorted(floor)])
def test_no_way_leads_from_a_module_to_a_floor_above_its_own(module: str) -> None:
    level = next(number for number, floor in enumerate(FLOORS) if module in floor)
    above = set().union(*FLOORS[level + 1 :])
    assert not reach()[module] & above


@pytest.mark.parametrize("order", ORDERED, ids=" ".join)
def test_where_a_floor_has_an_order_imports_go_one_way(order: list[str]) -> None:
    found = reach()
    for place, module in enumerate(order):
        assert not found[module] & set(order[place:]), module


def test_no_two_modules_import_each_other_by_any_way() -> None:
    assert [module for module, found in reach().items() if module in found] == []


def test_nothing_below_the_test_kit_imports_it() -> None:
    assert not [
        module for module in [*MODULES, "__init__"] if any(name.startswith("testing") for name in siblings(module))
    ]


def test_the_vocabulary_is_plain() -> None:
    """It needs neither the event loop nor the plugin registry; pydantic is asked only for types that need it."""
    for module in VOCABULARY:
        for node in parsed(module).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                assert not {"trio", "pluggy", "pydantic"} & set(re.findall(r"\w+", ast.unparse(node))), module


def test_nobody_but_the_hooks_touches_pluggys_registry() -> None:
    assert {module for module in MODULES if "pluggy" in outsiders(module)} == {"hooks", "hookspecs"}
    used = {
        node.attr
        for node in ast.walk(parsed("hookspecs"))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pluggy"
    }
    assert used == {"HookimplMarker", "HookspecMarker"}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "hooks.py":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\b(pm|_?manager)\.hook\b|PluginManager|get_hookimpls|_relay\._", text), path.name


@pytest.mark.requirement("K17")
def test_the_kernel_imports_what_it_declares_and_no_plugin() -> None:
    declared = importlib.metadata.requires("toolkeel") or []
    packages = {re.split(r"[^\w.-]", line)[0].lower().replace("-", "_") for line in declared}
    packages = {{"pyyaml": "yaml"}.get(name, name) for name in packages}
    used = set().union(*(outsiders(module) for module in MODULES))
    assert used - packages <= {"typing_extensions", "pydantic_core"}  # pydantic's own, which it re-exports
    assert not {name for name in used if name.startswith("toolkeel")}
