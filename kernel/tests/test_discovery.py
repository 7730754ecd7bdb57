"""Where plugins are found: installed packages and manifest folders, listed before anything of them runs."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio

import toolkeel.discovery
from toolkeel import Config, Kernel, PluginInfo, Principal, ToolCall, hookimpl
from toolkeel.errors import PluginError
from toolkeel.testing import kernel_with

numbers = itertools.count(1)

PLUGIN = """
from pathlib import Path
from toolkeel import hookimpl, tool
Path({marker!r}).write_text("ran")

@tool(effect="read", inline=True)
def {name}() -> str:
    "Say a word."
    return {word!r}

@hookimpl
def register_tools():
    return {name}
"""


class Place:
    """A folder of installed packages and folders of extensions; each plugin leaves a mark when its code runs."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        self.state = folder / "state"
        self.workspace = folder / "workspace"
        self.marks = folder / "marks"
        for one in (self.site, self.state / "extensions", self.workspace / "extensions", self.marks):
            one.mkdir(parents=True)
        self.names: list[str] = []

    def code(self, name: str, word: str = "ahoy") -> str:
        return PLUGIN.format(marker=str(self.marks / name), name=name, word=word)

    def ran(self, name: str) -> bool:
        return (self.marks / name).exists()

    def package(
        self, name: str, code: str | None = None, *, entry: str = "", distribution: str = "", needs: str = ""
    ) -> str:
        """Install a package with one plugin; its module has a name that no other test uses."""
        module = f"package_{name}_{next(numbers)}"
        (self.site / f"{module}.py").write_text(self.code(name) if code is None else code)
        info = self.site / f"{(distribution or module).replace('-', '_')}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution or module}\nVersion: 1.5\n")
        points = f"[toolkeel]\n{name} = {module}{entry}\n"
        if needs:
            points += "[toolkeel.needs]\n" + "".join(
                f"{name}.{index} = {need}\n" for index, need in enumerate(needs.split())
            )
        (info / "entry_points.txt").write_text(points)
        self.names.append(name)
        return module

    def folder(
        self, name: str, files: Mapping[str, str] | None = None, *, parent: str = "state", **toolkeel: Any
    ) -> Path:
        """Lay down a manifest folder with one plugin."""
        folder = (self.state if parent == "state" else self.workspace) / "extensions" / name
        (folder / "pkg").mkdir(parents=True)
        manifest = {"name": name, "version": "0.3", "description": "A word.", "toolkeel": {"entry": "main", **toolkeel}}
        (folder / "plugin.json").write_text(json.dumps(manifest))
        for path, text in (files or {"main.py": self.code(name)}).items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        self.names.append(name)
        return folder

    @asynccontextmanager
    async def kernel(self, enable: Mapping[str, str] | None = None, **settings: Any) -> Any:
        """Open a kernel that discovers; of what else is installed here nothing is loaded."""
        kernel = {"enable": dict(enable or {}), "only": self.names, "register_time_limit": 5, **settings}
        config = Config.of({"kernel": kernel}, state_folder=self.state)
        async with Kernel.open(config, workspaces=[self.workspace]) as opened:
            yield opened

    async def infos(self, enable: Mapping[str, str] | None = None, **settings: Any) -> dict[str, PluginInfo]:
        async with self.kernel(enable, **settings) as kernel:
            return {info.name: info for info in kernel.plugins.list() if info.name in self.names}

    async def digest(self, name: str) -> str:
        return (await self.infos())[name].digest


async def said(kernel: Kernel, name: str) -> str:
    """What a tool says through all stages."""
    async with kernel.session() as session:
        offer = await session.offer(session.request(principal=Principal("ann")))
        [answer] = await offer.call([ToolCall(name)])
        return answer.text


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    place = Place(tmp_path)
    monkeypatch.syspath_prepend(str(place.site))
    before, finders = set(sys.modules), list(sys.meta_path)
    yield place
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if name.startswith(("package_", "toolkeel_extension_")):
            del sys.modules[name]


# Installed packages ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K4")
async def test_a_package_with_an_entry_point_is_found_with_its_distribution_and_runs(place: Place) -> None:
    place.package("lookout", distribution="acme-lookout")
    async with place.kernel() as kernel:
        info = next(info for info in kernel.plugins.list() if info.name == "lookout")
        assert (info.state, info.kind, info.source, info.version) == ("active", "package", "acme-lookout 1.5", "1.5")
        assert info.hooks == ("register_tools",)
        assert await said(kernel, "lookout") == "ahoy"


@pytest.mark.requirement("K4")
async def test_an_entry_point_may_name_a_class_that_is_built_with_its_context(place: Place) -> None:
    code = """
from toolkeel import PluginContext, hookimpl, tool
class Lookout:
    def __init__(self, context: PluginContext) -> None:
        self.context = context
    @hookimpl
    def register_tools(self):
        @tool(effect="read", inline=True)
        def whoami() -> str:
            "Say it."
            return f"{self.context.name} in {self.context.state_folder.name}"
        return whoami
"""
    place.package("lookout", code, entry=":Lookout")
    async with place.kernel() as kernel:
        assert await said(kernel, "whoami") == "lookout in lookout"


@pytest.mark.requirement("K4")
async def test_what_is_disabled_or_not_among_the_only_ones_is_found_and_not_imported(place: Place) -> None:
    place.package("one")
    place.package("two")
    async with place.kernel(disable=["one"], only=["one"]) as kernel:
        infos = {info.name: info for info in kernel.plugins.list()}
    assert (infos["one"].state, infos["two"].state) == ("disabled", "disabled")
    assert "kernel.disable" in infos["one"].reason
    assert "kernel.only" in infos["two"].reason
    assert "toolkeel plugins enable one" in infos["one"].remedy
    assert not place.ran("one")
    assert not place.ran("two")


@pytest.mark.requirement("K5")
async def test_of_two_packages_with_one_plugin_name_the_second_is_quarantined_and_both_are_named(place: Place) -> None:
    place.package("twin", distribution="acme-first")
    place.package("twin", distribution="acme-second")
    async with place.kernel() as kernel:
        twins = [info for info in kernel.plugins.list() if info.name == "twin"]
        assert sorted(info.state for info in twins) == ["active", "quarantined"]
        double = next(info for info in twins if info.state == "quarantined")
        assert double.stage == "found"
        for word in ("acme-first 1.5", "acme-second 1.5"):
            assert word in f"{double.reason} {double.remedy}"
        assert await said(kernel, "twin") == "ahoy"


@pytest.mark.requirement("K5")
async def test_a_package_without_readable_metadata_harms_nobody(place: Place) -> None:
    place.package("good")
    module = place.package("bare")
    (place.site / f"{module}-1.5.dist-info" / "METADATA").unlink()
    infos = await place.infos()
    assert infos["good"].state == "active"
    assert infos["bare"].state in ("active", "quarantined")


BROKEN = [
    ("raise RuntimeError('no compass')", "", "RuntimeError: no compass"),
    ("def broken(:", "", "SyntaxError"),
    ("raise SystemExit(3)", "", "SystemExit: 3"),
    ("open('/nowhere/at/all')", "", "FileNotFoundError"),
    ("raise MemoryError", "", "MemoryError"),
    ("raise BaseException('own')", "", "BaseException: own"),
    ("raise BaseExceptionGroup('many', [SystemExit(1), ValueError('x')])", "", "SystemExit: 1"),
    ("raise GeneratorExit", "", "GeneratorExit"),
    ("raise StopIteration", "", "StopIteration"),
    ("import surely_not_installed", "", "surely_not_installed"),
    ("from json import surely_not_there", "", "surely_not_there"),
    ("x = 1", ":Missing", "Missing"),
    ("import sys; sys.setrecursionlimit(sys.getrecursionlimit()); f = lambda: f(); f()", "", "RecursionError"),
]


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(("code", "entry", "says"), BROKEN, ids=lambda value: value[:30])
async def test_a_package_that_fails_at_import_is_quarantined_alone(
    place: Place, code: str, entry: str, says: str
) -> None:
    place.package("broken", code, entry=entry)
    place.package("good")
    async with place.kernel() as kernel:
        infos = {info.name: info for info in kernel.plugins.list()}
        assert (infos["broken"].state, infos["broken"].stage) == ("quarantined", "import")
        assert says in infos["broken"].reason
        assert infos["broken"].remedy
        assert await said(kernel, "good") == "ahoy"


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    ("code", "entry", "says"),
    [
        ("thing = 5", ":thing", ""),
        ("thing = None", ":thing", ""),
        (
            "class Plugin:\n    def __init__(self, context): raise OSError('no harbour')",
            ":Plugin",
            "OSError: no harbour",
        ),
        ("class Plugin:\n    def __init__(self, context, more): pass", ":Plugin", "TypeError"),
        ("PRIORITY = 'first'", "", "PRIORITY must be an integer"),
        ("PRIORITY = True", "", "PRIORITY must be an integer"),
        ("Settings = dict", "", "Settings is not a pydantic model"),
    ],
    ids=range(7),
)
async def test_what_cannot_be_a_plugin_is_quarantined_or_has_no_hooks(
    place: Place, code: str, entry: str, says: str
) -> None:
    place.package("odd", code, entry=entry)
    place.package("good")
    infos = await place.infos()
    assert infos["good"].state == "active"
    if says:
        assert infos["odd"].state == "quarantined"
        assert says in infos["odd"].reason
    else:
        assert infos["odd"].hooks == ()


@pytest.mark.requirement("K5")
async def test_an_import_that_hangs_is_quarantined_and_stays_so_when_it_comes_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, returned = threading.Event(), threading.Event()
    monkeypatch.setattr(toolkeel.discovery, "test_gate", (gate, returned), raising=False)
    place.package(
        "slow",
        "import toolkeel.discovery\ngate, returned = toolkeel.discovery.test_gate\ngate.wait(60)\n"
        "from toolkeel import hookimpl\n"
        "@hookimpl\ndef register_tools():\n    return ()\n"
        "class Settings: pass\nreturned.set()\n",
    )
    place.package("good")
    try:
        async with place.kernel(register_time_limit=0.3) as kernel:
            first = next(info for info in kernel.plugins.list() if info.name == "slow")
            assert (first.state, first.stage) == ("quarantined", "import")
            assert "0.3 s" in first.reason
            assert await said(kernel, "good") == "ahoy"
            gate.set()
            assert await trio.to_thread.run_sync(returned.wait, 20)
            for _ in range(50):
                await trio.sleep(0.002)
                assert next(info for info in kernel.plugins.list() if info.name == "slow") == first
    finally:
        gate.set()


@pytest.mark.requirement("K5")
@pytest.mark.parametrize("code", ["raise RuntimeError('no compass')", "Settings = dict"])
async def test_strict_raises_instead_of_a_quarantine(place: Place, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setenv("TOOLKEEL_STRICT", "1")
    place.package("broken", code)
    with pytest.raises(PluginError) as caught:
        async with place.kernel():
            pass
    assert "'broken'" in caught.value.where
    assert caught.value.__cause__ is not None


# Needs -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K5")
@pytest.mark.parametrize(
    ("need", "says", "remedy"),
    [
        ("api:2", "needs hook API 2, this kernel has 1", "Upgrade toolkeel"),
        ("api:0", "needs hook API 0, this kernel has 1", "Upgrade the plugin"),
        ("module:surely_not_installed", "needs the Python module 'surely_not_installed'", "Install"),
        ("module:surely_not.installed", "needs the Python module 'surely_not.installed'", "Install"),
        ("plugin:nowhere", "needs the plugin 'nowhere'", "nowhere"),
        ("wishes:peace", "cannot be read", "api:N"),
    ],
)
@pytest.mark.parametrize("kind", ["package", "folder"])
async def test_a_need_that_is_not_met_is_seen_without_running_any_of_it(
    place: Place, kind: str, need: str, says: str, remedy: str
) -> None:
    enable: dict[str, str] = {}
    if kind == "package":
        place.package("needy", needs=need)
    else:
        if need.startswith("api:"):
            place.folder("needy", api=int(need[4:]))
        else:
            place.folder("needy", needs=[need])
        enable = {"needy": await place.digest("needy")}
    place.package("good")
    infos = await place.infos(enable)
    assert (infos["needy"].state, infos["needy"].stage) == ("quarantined", "needs")
    assert says in infos["needy"].reason
    assert remedy in infos["needy"].remedy
    assert infos["good"].state == "active"
    assert not place.ran("needy")


@pytest.mark.requirement("K5")
async def test_needs_that_are_met_are_no_hindrance(place: Place) -> None:
    place.package("needy", needs="api:1 module:json module:email.mime plugin:good")
    place.package("good")
    infos = await place.infos()
    assert infos["needy"].state == infos["good"].state == "active"


@pytest.mark.requirement("K5")
async def test_looking_for_a_needed_module_does_not_import_it(place: Place) -> None:
    (place.site / "imports_itself").mkdir()
    (place.site / "imports_itself" / "__init__.py").write_text(
        f"open({str(place.marks / 'imports_itself')!r}, 'w').close()"
    )
    (place.site / "imports_itself" / "inner.py").write_text("")
    place.package("needy", needs="module:imports_itself")
    place.package("deeper", needs="module:imports_itself.inner")
    await place.infos()
    assert not place.ran("imports_itself")


@pytest.mark.requirement("K5")
async def test_a_plugin_whose_needed_plugin_broke_is_quarantined_after_it(place: Place) -> None:
    place.package("base", "raise RuntimeError('no compass')")
    place.package("middle", needs="plugin:base")
    place.package("upper", needs="plugin:middle")
    infos = await place.infos()
    assert infos["base"].stage == "import"
    for name, needed in (("middle", "base"), ("upper", "middle")):
        assert (infos[name].state, infos[name].stage) == ("quarantined", "needs")
        assert repr(needed) in infos[name].reason


# Manifest folders --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K4")
@pytest.mark.parametrize("parent", ["state", "workspace"])
async def test_a_manifest_folder_is_listed_and_never_run_until_an_operator_enables_its_content(
    place: Place, parent: str
) -> None:
    folder = place.folder("word", parent=parent)
    info = (await place.infos())["word"]
    assert (info.state, info.kind, info.source) == ("listed", "folder", str(folder))
    assert (info.version, info.description) == ("0.3", "A word.")
    assert info.digest.startswith("sha256:")
    assert len(info.digest) == 7 + 64
    assert f"toolkeel plugins enable word --hash {info.digest}" in info.remedy
    for wrong in ("", "sha256:", "sha256:" + "0" * 64, info.digest.upper(), "*"):
        assert (await place.infos({"word": wrong}))["word"].state == "listed"
    assert (await place.infos({"other": info.digest}))["word"].state == "listed"
    assert not place.ran("word")

    async with place.kernel({"word": info.digest}) as kernel:
        assert await said(kernel, "word") == "ahoy"
    assert place.ran("word")


@pytest.mark.requirement("K4")
@pytest.mark.parametrize("change", ["code", "manifest", "new file", "removed file", "renamed file", "empty file"])
async def test_changed_content_goes_back_to_listed(place: Place, change: str) -> None:
    folder = place.folder("word", {"main.py": place.code("word"), "pkg/data.txt": "a"})
    digest = await place.digest("word")
    match change:
        case "code":
            (folder / "main.py").write_text(place.code("word") + "\n")
        case "manifest":
            (folder / "plugin.json").write_text((folder / "plugin.json").read_text() + " ")
        case "new file":
            (folder / "pkg" / "more.py").write_text("x = 1")
        case "removed file":
            (folder / "pkg" / "data.txt").unlink()
        case "renamed file":
            (folder / "pkg" / "data.txt").rename(folder / "pkg" / "date.txt")
        case _:
            (folder / "pkg" / "data.txt").write_text("")
    info = (await place.infos({"word": digest}))["word"]
    assert info.state == "listed"
    assert "changed since it was enabled" in info.reason
    assert info.digest != digest
    assert info.digest in info.remedy
    assert not place.ran("word")


@pytest.mark.requirement("K4")
async def test_what_was_hashed_is_what_runs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files change between the listing and the import: the bytes that the operator approved are run."""
    folder = place.folder("word", {"main.py": place.code("word") + "\nfrom . import helper\n", "helper.py": "x = 1"})
    digest = await place.digest("word")
    read = toolkeel.discovery.content_hash

    def swap(files: Mapping[str, bytes]) -> str:
        found = read(files)
        (folder / "main.py").write_text("raise RuntimeError('swapped')")
        (folder / "helper.py").write_text("raise RuntimeError('swapped')")
        return found

    monkeypatch.setattr(toolkeel.discovery, "content_hash", swap)
    async with place.kernel({"word": digest}) as kernel:
        assert await said(kernel, "word") == "ahoy"


@pytest.mark.requirement("K4")
async def test_compiled_files_are_neither_hashed_nor_run(place: Place) -> None:
    folder = place.folder("word")
    digest = await place.digest("word")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "main.cpython-311.pyc").write_bytes(b"evil")
    assert await place.digest("word") == digest
    async with place.kernel({"word": digest}) as kernel:
        assert await said(kernel, "word") == "ahoy"
    assert sorted(path.name for path in folder.iterdir()) == ["__pycache__", "main.py", "pkg", "plugin.json"]


@pytest.mark.requirement("K4")
async def test_modules_of_a_folder_import_each_other_by_relative_imports(place: Place) -> None:
    place.folder(
        "word",
        {
            "pkg/__init__.py": "from .inner import WORD",
            "pkg/inner.py": "from ..helper import half\nWORD = half * 2",
            "helper.py": "half = 'bon'",
            "main.py": """
from pathlib import Path
from toolkeel import hookimpl, tool
from .pkg import WORD
class Plugin:
    @hookimpl
    def register_tools(self):
        @tool(effect="read", inline=True)
        def word() -> str:
            "Say it."
            return f"{WORD} {Path(__file__).name} {__name__.startswith('toolkeel_extension_word')}"
        return word
""",
        },
        entry="main:Plugin",
    )
    async with place.kernel({"word": await place.digest("word")}) as kernel:
        assert await said(kernel, "word") == "bonbon main.py True"


@pytest.mark.requirement("K4")
async def test_modules_of_one_folder_do_not_reach_anothers_or_shadow_installed_ones(place: Place) -> None:
    place.folder("one", {"main.py": "import helper_of_two"})
    place.folder("two", {"main.py": "import json\nassert json.dumps\n", "helper_of_two.py": "", "json.py": "raise 1"})
    infos = await place.infos()
    infos = await place.infos({name: info.digest for name, info in infos.items()})
    assert infos["one"].state == "quarantined"
    assert "helper_of_two" in infos["one"].reason
    assert infos["two"].state == "active"


@pytest.mark.requirement("K4")
@pytest.mark.parametrize("link", ["file", "folder", "dangling", "plugin.json"])
async def test_a_folder_that_holds_a_link_is_listed_with_the_reason(place: Place, tmp_path: Path, link: str) -> None:
    folder = place.folder("word")
    digest = await place.digest("word")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside.py").write_text("")
    if link == "plugin.json":
        (tmp_path / "plugin.json").write_text((folder / "plugin.json").read_text())
        (folder / "plugin.json").unlink()
        (folder / "plugin.json").symlink_to(tmp_path / "plugin.json")
    else:
        target = {"file": "outside.py", "folder": "outside", "dangling": "nowhere"}[link]
        (folder / "pkg" / "link").symlink_to(tmp_path / target)
    info = (await place.infos({"word": digest}))["word"]
    assert info.state == "listed"
    assert "holds a link" in info.reason
    assert not place.ran("word")


@pytest.mark.requirement("K4")
async def test_a_link_to_a_folder_is_no_manifest_folder(place: Place, tmp_path: Path) -> None:
    folder = place.folder("word")
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    infos = await place.infos()
    assert "word" not in infos or infos["word"].state == "listed"
    assert not place.ran("word")


@pytest.mark.requirement("K4", "K5")
@pytest.mark.parametrize("odd", ["pipe", "bytes name", "huge", "many", "deep"])
async def test_a_folder_with_odd_content_is_listed_with_the_reason_and_the_others_work(
    place: Place, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.folder("odd")
    match odd:
        case "pipe":
            os.mkfifo(folder / "pipe")
        case "bytes name":
            os.close(os.open(os.fsencode(folder) + b"/\xff\xfe.txt", os.O_CREAT))
        case "huge":
            with (folder / "huge").open("wb") as file:
                file.truncate(65_000_000)
        case "many":
            monkeypatch.setattr(toolkeel.discovery, "_FILE_LIMIT", 50)  # 5,000 files take seconds to make
            for number in range(51):
                (folder / "pkg" / str(number)).touch()
        case _:
            deep = folder
            for _ in range(30):
                deep = deep / ("d" * 60)
            os.makedirs(deep)
    place.folder("good")
    place.package("package")
    infos = await place.infos()
    assert infos["package"].state == "active"
    assert infos["good"].state == infos["odd"].state == "listed"
    assert infos["odd"].reason
    assert (await place.infos({"good": infos["good"].digest}))["good"].state == "active"


@pytest.mark.requirement("K4")
async def test_foreign_folders_bundles_and_broken_manifests_are_listed_with_the_reason(place: Place) -> None:
    extensions = place.state / "extensions"
    for name, file, text in (
        ("claw", "openclaw.plugin.json", '{"id": "claw", "name": "Claw", "version": "3"}'),
        ("pack", "plugin.json", '{"name": "pack", "skills": "skills/"}'),
        ("torn", "plugin.json", '{"name": "torn"'),
        ("wrong", "plugin.json", '{"name": "wrong", "toolkeel": {"entry": "../main"}}'),
        ("none", "package.json", "{}"),
    ):
        (extensions / name).mkdir()
        (extensions / name / file).write_text(text)
        (extensions / name / "main.py").write_text(place.code(name))
        place.names.append(name)
    (extensions / "file.txt").write_text("no folder")
    infos = await place.infos()
    assert {name: info.state for name, info in infos.items()} == dict.fromkeys(
        ("claw", "pack", "torn", "wrong"), "listed"
    )
    assert "OpenClaw" in infos["claw"].reason
    assert infos["claw"].version == "3"
    assert "bundle" in infos["pack"].reason
    assert "not valid JSON" in infos["torn"].reason
    assert "toolkeel.entry" in infos["wrong"].reason
    assert all(info.remedy for info in infos.values())
    assert list(place.marks.iterdir()) == []


@pytest.mark.requirement("K4")
async def test_what_is_only_listed_cannot_be_enabled_or_reloaded_into_running(place: Place) -> None:
    place.folder("word")
    async with place.kernel() as kernel:
        with pytest.raises(PluginError, match="toolkeel plugins enable word --hash"):
            await kernel.plugins.enable("word")
        try:
            await kernel.plugins.reload("word")
        except PluginError as error:
            refused = str(error)
        else:
            refused = ""
        info = next(info for info in kernel.plugins.list() if info.name == "word")
    assert "has not enabled it" in refused or "has not enabled it" in info.reason
    assert info.state == "listed"
    assert not place.ran("word")


@pytest.mark.requirement("K5")
async def test_a_folder_does_not_take_the_name_of_an_installed_package(place: Place) -> None:
    place.package("word")
    place.folder("word", {"main.py": place.code("word", "evil")})
    async with place.kernel() as kernel:
        digest = next(info.digest for info in kernel.plugins.list() if info.kind == "folder" and info.name == "word")
    async with place.kernel({"word": digest}) as kernel:
        assert await said(kernel, "word") == "ahoy"
        assert sorted(info.state for info in kernel.plugins.list() if info.name == "word") == ["active", "quarantined"]


@pytest.mark.requirement("K4")
async def test_of_two_folders_with_one_id_the_one_that_was_enabled_runs(place: Place) -> None:
    """An unapproved copy, say in a checked-out workspace, does not keep the approved one from running."""
    place.folder("word", {"main.py": place.code("word", "approved")}, parent="workspace")
    digest = await place.digest("word")
    place.folder("word", {"main.py": place.code("word", "other")})
    async with place.kernel({"word": digest}) as kernel:
        assert await said(kernel, "word") == "approved"


# Reloading ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K7")
async def test_a_reload_imports_a_package_anew(place: Place) -> None:
    module = place.package("word")
    async with place.kernel() as kernel:
        assert await said(kernel, "word") == "ahoy"
        (place.site / f"{module}.py").write_text(place.code("word", "a longer word"))
        assert (await kernel.plugins.reload("word")).state == "active"
        assert await said(kernel, "word") == "a longer word"


@pytest.mark.requirement("K7")
async def test_a_reload_that_fails_is_a_quarantine_and_a_second_one_mends_it(place: Place) -> None:
    module = place.package("word")
    async with place.kernel() as kernel:
        (place.site / f"{module}.py").write_text("raise RuntimeError('no compass')")
        info = await kernel.plugins.reload("word")
        assert (info.state, info.stage) == ("quarantined", "import")
        assert "there is no tool 'word'" in await said(kernel, "word")
        (place.site / f"{module}.py").write_text(place.code("word", "mended at last"))
        assert (await kernel.plugins.reload("word")).state == "active"
        assert await said(kernel, "word") == "mended at last"


@pytest.mark.requirement("K4", "K7")
async def test_a_reload_of_a_folder_whose_content_changed_lists_it_and_runs_nothing(place: Place) -> None:
    folder = place.folder("word")
    async with place.kernel({"word": await place.digest("word")}) as kernel:
        (folder / "main.py").write_text(place.code("word", "changed"))
        info = await kernel.plugins.reload("word")
        assert info.state == "listed"
        assert "changed since it was enabled" in info.reason
        assert "there is no tool 'word'" in await said(kernel, "word")


@pytest.mark.requirement("K4", "K7")
async def test_a_reload_of_a_folder_that_did_not_change_runs_it_again(place: Place) -> None:
    place.folder("word")
    async with place.kernel({"word": await place.digest("word")}) as kernel:
        (place.marks / "word").unlink()
        assert (await kernel.plugins.reload("word")).state == "active"
        assert place.ran("word")
        assert await said(kernel, "word") == "ahoy"


# Plugins given in code ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"__name__": "toolkeel_weather.plugin"}, "weather"),
        ({"__name__": "acme.lookout"}, "lookout"),
        ({"__name__": "acme.plugin", "NAME": "harbour"}, "harbour"),
    ],
)
async def test_a_plugin_given_in_code_is_named_after_its_module(attributes: dict[str, Any], name: str) -> None:
    module = ModuleType("x")
    for key, value in attributes.items():
        setattr(module, key, value)
    async with kernel_with(module) as kit:
        [info] = kit.kernel.plugins.list()
    assert (info.name, info.kind, info.state) == (name, "given", "active")


async def test_a_kernel_that_does_not_discover_loads_what_it_is_given_alone(
    place: Place, make_plugin: Callable[..., ModuleType]
) -> None:
    place.package("word")
    place.folder("other")
    config = Config.of({}, state_folder=place.state)
    async with Kernel.open(config, plugins=[make_plugin(name="mine")], discover=False) as kernel:
        assert [info.name for info in kernel.plugins.list()] == ["mine"]
    assert not place.ran("word")


class Loud:
    """A class that is given in code and leaves its hooks to its instances."""

    def __init__(self) -> None:
        self.sessions: list[str] = []

    @hookimpl
    def register_tools(self, scope: Any) -> None:
        self.sessions.append(scope.session)


async def test_a_class_given_in_code_is_built_once_per_kernel() -> None:
    async with kernel_with(Loud) as kit:
        plugin = kit.kernel.plugins.get("loud")
        assert plugin is not None
        assert isinstance(plugin.implementer, Loud)
        assert plugin.implementer.sessions == ["test"]
