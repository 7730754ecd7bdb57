"""Paths that are long, deep or tangled: answered, or refused at once, never hung."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from toolkeel import ToolError
from toolkeel_files.settings import Settings

pytestmark = pytest.mark.requirement("G4")


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < 20


@pytest.fixture
def deep(workspace: Path) -> Path:
    """Folders 400 levels deep, a file at the bottom of them and one at the top."""
    folder = os.open(workspace, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(os.open("needle.txt", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    (workspace / "a.txt").write_text("needle")
    return workspace


def test_a_deep_path_is_read_and_written(call: Callable[..., str], deep: Path) -> None:
    path = "d/" * 400 + "new.txt"
    call("file_write", path, "text")
    assert call("file_read", path) == "text"
    assert call("file_read", "d/" * 400 + "../" * 400 + "a.txt") == "needle"
    assert call("file_read", "d/../" * 700 + "a.txt") == "needle"


def test_a_deep_tree_is_gone_through_as_far_as_is_sensible(call: Callable[..., str], deep: Path) -> None:
    assert "a.txt:1: needle" in call("code_search", "needle")
    assert "too deep" in call("code_search", "needle").splitlines()[0]
    assert "too deep" in call("file_list", depth=0, limit=1_000).splitlines()[0]


def test_dots_that_climb_through_a_deep_path_again_and_again_are_refused(call: Callable[..., str], deep: Path) -> None:
    (deep / "link").symlink_to("d/" * 400 + "../d/" * 400 + "needle.txt")
    with pytest.raises(ToolError, match="too tangled"):
        call("file_read", "link")


def test_links_that_multiply_are_refused(call: Callable[..., str], workspace: Path) -> None:
    (workspace / "d").mkdir()
    (workspace / "l0").symlink_to("d")
    for number in range(1, 30):
        (workspace / f"l{number}").symlink_to(f"l{number - 1}/../l{number - 1}")
    with pytest.raises(ToolError, match="too many links"):
        call("file_list", "l29")


def test_a_link_whose_target_holds_dots_is_followed_as_the_system_would(
    call: Callable[..., str], workspace: Path
) -> None:
    (workspace / "x" / "y").mkdir(parents=True)
    (workspace / "x" / "a.txt").write_text("x's")
    (workspace / "a.txt").write_text("top's")
    (workspace / "to_y").symlink_to("x/y")
    (workspace / "odd").symlink_to("to_y/../a.txt")  # by its text this is a.txt
    assert call("file_read", "odd") == "x's" == (workspace / "odd").read_text()
    assert call("file_read", "to_y/../a.txt") == "x's"


def test_the_example_of_the_readme_is_valid() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    example = yaml.safe_load(readme.partition("```yaml\n")[2].partition("```")[0])
    assert set(example["plugins"]["files"]) == set(Settings.model_fields)
    Settings.model_validate(example["plugins"]["files"])
