"""What a newcomer reads first works as it is shown: the README's commands and the tutorial."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

Shell = Callable[..., str]
Fences = Callable[[str], list[tuple[str, str]]]

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "snippets" / "glossary"
TOUR = "A tour of two minutes"


def section(heading: str) -> str:
    """The README below one heading."""
    parts = re.split(r"^## (.+)$", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


# The README --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heading", ["Run it", "Test it"])
def test_the_readme_has_one_block_to_run_and_one_to_test(heading: str, fences: Fences) -> None:
    """CI and newcomers run them; here each must be one block that bash can read."""
    ((language, commands),) = fences(section(heading))
    assert language == "sh"
    subprocess.run(["bash", "-n", "-c", commands], check=True, timeout=10)


def test_ci_runs_the_readmes_test_block(fences: Fences) -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    program = re.search(r"awk '(.*?)'", script.read_text(encoding="utf-8"), re.DOTALL)
    assert program is not None
    command = ["awk", program[1], str(ROOT / "README.md")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    assert [("sh", found)] == fences(section("Test it"))


def test_the_readmes_tour_prints_what_it_shows() -> None:
    command = [sys.executable, str(DOCS / "tour.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert not done.stdout, "run .venv/bin/python docs/tour.py"
    assert done.returncode == 0, done.stderr


def test_the_readmes_python_is_that_of_a_tested_snippet(fences: Fences) -> None:
    files = [path.read_text(encoding="utf-8") for path in (DOCS / "snippets").rglob("*.py")]
    for code in [code for language, code in fences(section(TOUR)) if language == "python"]:
        assert any(code in file for file in files), code


# The docs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["run/loop.md", "run/plugins.md"])
def test_the_commands_in_the_docs_run(page: str, fences: Fences, shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / ".toolkeel" / "extensions" / "greeter"
    shutil.copytree(DOCS / "snippets" / "manifest", folder)
    digest = shell(f"toolkeel plugins hash {folder}", folder=tmp_path, home=tmp_path).strip()
    commands = [code for language, code in fences((DOCS / page).read_text(encoding="utf-8")) if language == "sh"]
    assert commands
    for command in commands:
        shell(command.replace("sha256:…", digest).replace("> messages.json", ""), folder=ROOT, home=tmp_path)
    if page == "run/plugins.md":
        assert re.search(r"^greeter +active", shell("toolkeel plugins", folder=ROOT, home=tmp_path), re.MULTILINE)


def test_no_page_shows_commands_that_no_test_runs(fences: Fences) -> None:
    run = {"run/loop.md", "run/plugins.md", "tutorial/first-plugin.md"}
    readme = "<!-- snippet: README.md:run -->\n```"  # the block that the README has, too
    shown = {
        page.relative_to(DOCS).as_posix()
        for page in DOCS.rglob("*.md")
        for text in [page.read_text(encoding="utf-8").replace(f"{readme}sh", f"{readme}text")]
        if any(language in ("sh", "console", "bash") for language, _ in fences(text))
    }
    assert shown == run


# The tutorial ------------------------------------------------------------------------------------------------------


def test_the_tutorial_leads_to_a_plugin_that_works(
    fences: Fences, shell: Shell, run: Shell, uv: str, tmp_path: Path
) -> None:
    page = (DOCS / "tutorial" / "first-plugin.md").read_text(encoding="utf-8")
    create, install, test, use = [code.strip() for language, code in fences(page) if language == "sh"]
    clone, place, home = tmp_path / "clone", tmp_path / "toolkeel-glossary", tmp_path / "home"
    (clone / ".uv" / "bin").mkdir(parents=True)
    (clone / ".uv" / "bin" / "uv").symlink_to(uv)
    (clone / ".venv").symlink_to(sys.prefix)
    shell(create, folder=clone, home=home)
    follow(place)

    # This environment is not the test's to change; test_template installs a plugin into one of its own.
    assert "Would install 1 package" in run("bash", "-c", f"{install} --dry-run 2>&1", cwd=clone)
    pretend_installed(place)
    source = str(place / "src")
    assert " passed" in shell(f"{test} -p no:cacheprovider", folder=place, home=home, PYTHONPATH=source)
    shell("ruff check --no-cache && ruff format --check --no-cache", folder=place, home=home)

    (home / ".toolkeel").mkdir(parents=True)
    shutil.copy(GLOSSARY / "glossary.yaml", home / ".toolkeel" / "config.yaml")
    said = shell(use, folder=clone, home=home, PYTHONPATH=source)
    assert re.search(r"^glossary +active", said, re.MULTILINE)
    assert "a plugin, when it is active" in said
    assert "glossary_lookup is offered" in said

    settings = home / ".toolkeel" / "config.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace("terms:", "term:"), encoding="utf-8")
    said = shell("toolkeel plugins", folder=clone, home=home, PYTHONPATH=source)
    assert re.search(r"^glossary +quarantined", said, re.MULTILINE)
    assert f"{settings}:3" in said
    assert "plugins.glossary.terms" in said


def follow(place: Path) -> None:
    """Do to the rendered package what the tutorial says."""
    package = place / "src" / "toolkeel_glossary"
    (package / "closest.py").unlink()
    shutil.copy(GLOSSARY / "lookup.py", package)
    shutil.copy(GLOSSARY / "plugin.py", package)
    shutil.copy(GLOSSARY / "test_plugin.py", place / "tests")
    project, entry = place / "pyproject.toml", (GLOSSARY / "entry_point.toml").read_text(encoding="utf-8")
    before = project.read_text(encoding="utf-8")
    after = re.sub(r"\[project\.entry-points\.toolkeel\]\n.*\n", entry, before)
    assert before != after
    project.write_text(after, encoding="utf-8")


def pretend_installed(place: Path) -> None:
    """Leave what an editable install leaves for discovery; test_template installs for real."""
    points = tomllib.loads((place / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    information = place / "src" / "toolkeel_glossary-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: toolkeel-glossary\nVersion: 0.1.0\n")
    lines = [f"{name} = {value}" for name, value in points["toolkeel"].items()]
    (information / "entry_points.txt").write_text("\n".join(["[toolkeel]", *lines, ""]))
