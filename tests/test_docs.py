"""The docs as a whole: reference pages that say what the code says, code from tested files, links, the site."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toolkeel.errors
import toolkeel_cli.hookspecs
from toolkeel import hookspecs

Fences = Callable[[str], list[tuple[str, str]]]

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SNIPPETS = DOCS / "snippets"
PAGES = sorted(DOCS.rglob("*.md"))


# Reference ---------------------------------------------------------------------------------------------------------


def test_the_pages_say_what_the_code_says_and_show_what_the_files_hold() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, timeout=120, check=False
    )
    stale = done.stdout.split()
    assert not stale, f"run .venv/bin/python docs/generate.py; it differs in {stale}"
    assert done.returncode == 0, done.stderr


def declared(*modules: ModuleType) -> Iterator[tuple[str, Any]]:
    for module in modules:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if hasattr(function, "toolkeel_contract"):
                yield name, function


HOOKS = dict(declared(hookspecs, toolkeel_cli.hookspecs))


def squeezed(code: str) -> str:
    """Code without what only lays it out: white space, and a comma before a closing bracket."""
    return "".join(code.split()).replace(",)", ")")


@pytest.mark.requirement("K3")
@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_stands_in_the_docs_with_its_exact_signature(name: str, fences: Fences) -> None:
    signature = str(inspect.signature(HOOKS[name])).replace("'", "")
    word = "async def" if inspect.iscoroutinefunction(HOOKS[name]) else "def"
    page = (DOCS / "reference" / "hooks.md").read_text(encoding="utf-8")
    blocks = [squeezed(code) for language, code in fences(page) if language == "python"]
    assert squeezed(f"{word} {name}{signature}") in blocks


@pytest.mark.parametrize("name", HOOKS)
def test_a_hooks_docstring_is_a_contract(name: str) -> None:
    """One sentence first, every parameter, what it returns, since when."""
    text = inspect.getdoc(HOOKS[name]) or ""
    assert re.match(r"[A-Z][^\n]*\.( |$|\n)", text), "begins with a sentence on one line"
    parameters = list(inspect.signature(HOOKS[name]).parameters)
    described = re.findall(r"^    (\w+): ", text.partition("Args:")[2].partition("Returns:")[0], re.MULTILINE)
    assert described == parameters
    assert ("Returns:" in text) == (inspect.signature(HOOKS[name]).return_annotation not in ("None", None))
    assert re.search(r"^Since \d+\.$", text, re.MULTILINE)


def floors() -> list[list[str]]:
    """The modules of the kernel by floor, lowest first, as the design page's table has them."""
    design = (DOCS / "design.md").read_text(encoding="utf-8")
    rows = [row.split("|") for row in design.partition("| floor |")[2].partition("\n\n")[0].splitlines()[2:]]
    return [re.findall(r"`(\w+)`", row[2]) for row in sorted(rows, key=lambda row: int(row[1]))]


KERNEL = ROOT / "kernel" / "src" / "toolkeel"


def test_every_module_of_the_kernel_stands_on_one_floor() -> None:
    modules = {path.stem for path in KERNEL.glob("*.py")} - {"__init__"}
    assert sorted(module for floor in floors() for module in floor) == sorted(modules)


def test_a_module_imports_only_from_below_or_from_before_it_on_its_floor() -> None:
    order = [module for floor in floors() for module in floor]
    astray = [
        f"{module} imports {name}"
        for place, module in enumerate(order)
        for name in siblings(ast.parse((KERNEL / f"{module}.py").read_text(encoding="utf-8")))
        if name not in order[:place]
    ]
    assert not astray


def siblings(node: ast.AST) -> Iterator[str]:
    """The modules beside it that a module imports when it runs, at once or inside a function."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.ImportFrom) and node.level == 1:
        yield from [node.module] if node.module else [alias.name for alias in node.names]
    for child in ast.iter_child_nodes(node):
        yield from siblings(child)


def test_every_public_name_stands_on_the_page_of_the_api() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    shown = re.findall(r"^::: toolkeel\.(\w+)$", page, re.MULTILINE)
    whole = [
        name for name in toolkeel.__all__ if getattr(getattr(toolkeel, name), "__module__", "") == "toolkeel.errors"
    ]
    assert sorted({*shown, *whole} - {"errors", "events"}) == sorted(toolkeel.__all__)
    assert len(shown) == len(set(shown))


@pytest.fixture
def snippets(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of docs/ that puts code into pages."""
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("pages.snippets")


# Texts ----------------------------------------------------------------------------------------------------------------


def test_code_in_the_docs_lives_in_tested_files(fences: Fences) -> None:
    """A fence with code stands below a comment that names its file; generate.py, above, compares the two.

    Generated pages and plain text are no code; commands are run by test_front_pages.
    """
    for page in PAGES:
        if page.parent.name == "reference":
            continue
        text = page.read_text(encoding="utf-8")
        for language, code in fences(re.sub(r"^<!-- snippet: \S+ -->\n```\w+", "```text", text, flags=re.MULTILINE)):
            assert language in ("text", "sh"), f"{page.relative_to(ROOT)}: {code}"


@pytest.mark.parametrize(
    ("comment", "fault"),
    [
        ("<!-- snippet: docs/snippets/nothing.py -->\n```python\n```", "not there"),
        ("<!-- snippet: docs/snippets/room_tools.py:nothing -->\n```python\n```", "does not have"),
        ("<!-- snippet: docs/snippets/stopwatch.py -->\n\n```python\n```", "over no fence"),
    ],
)
def test_a_comment_that_brings_no_code_is_an_error(comment: str, fault: str, snippets: ModuleType) -> None:
    with pytest.raises(ValueError, match=fault):
        snippets.filled(f"Text.\n\n{comment}\n")


def test_a_fence_gets_the_code_of_its_file_without_the_marks(snippets: ModuleType) -> None:
    page = '<!-- snippet: docs/snippets/night_watch.py -->\n```python title="a.py"\nold = 1\n```\n\nMore.\n'
    filled = snippets.filled(page)
    opening, code = filled.removesuffix("\n```\n\nMore.\n").split('"a.py"\n')
    assert page.startswith(opening)
    assert any(isinstance(part, ast.ClassDef) and part.name == "NightWatch" for part in ast.parse(code).body)
    assert "[start:" not in filled
    assert "old" not in filled
    assert snippets.filled(filled) == filled


def test_every_snippet_is_shown() -> None:
    shown = "\n".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *PAGES])
    for path in sorted(SNIPPETS.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and path.name != "__init__.py" and "cache" not in name:
            assert name in shown, name


FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]


@pytest.mark.parametrize("path", [*FRONT, *PAGES], ids=lambda path: path.stem)
def test_links_between_files_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


# The site ----------------------------------------------------------------------------------------------------------


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tools = (tmp_path / "site" / "write" / "tools" / "index.html").read_text(encoding="utf-8")
    assert "room_book" in tools
    assert "<code>" in tools
    assert "snippet:" not in re.sub(r"<!--.*?-->", "", tools)
