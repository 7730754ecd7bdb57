"""What the tests of the file tools share: the tools over given folders, each test with either way of opening."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolkeel_files import openat2
from toolkeel_files.settings import Settings
from toolkeel_files.tools import FileTools

BACKENDS = ("openat2", "part by part")


class Caller:
    """Calls the tools as a session with these folders would, and gives the text of the answer."""

    def __init__(self, backend: str, *folders: Path, **settings: object) -> None:
        tools = FileTools(Settings.model_validate(settings), by_kernel=backend == "openat2").tools()
        self._tools = {tool.name: tool for tool in tools}
        self._context = SimpleNamespace(workspaces=folders, progress=lambda *_, **__: None)

    def __call__(self, tool: str, /, *arguments: object, **named: object) -> str:
        answer = self._tools[tool](self._context, *arguments, **named)
        content = answer if isinstance(answer, str) else answer.content
        return content if isinstance(content, str) else content.decode()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "openat2" and not openat2.usable():
        pytest.skip("this system has no openat2")
    return request.param


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def call(backend: str, workspace: Path) -> Caller:
    return Caller(backend, workspace)


@pytest.fixture
def caller(backend: str) -> Callable[..., Caller]:
    """Makes a caller for folders and settings of the test's choice."""
    return lambda *folders, **settings: Caller(backend, *folders, **settings)


@pytest.fixture(autouse=True)
def _no_descriptor_is_left_open() -> Iterator[None]:
    if not os.path.isdir("/proc/self/fd"):
        yield
        return
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before
