"""`config`, `doctor` and the editing of the settings file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkeel.errors import SettingsError
from toolkeel_cli import settings_file

Toolkeel = Any


def test_config_names_file_and_line_variable_and_option(toolkeel: Toolkeel) -> None:
    path = toolkeel.settings("kernel:\n  workers: 4\n")
    found = toolkeel("config", "--json", "--set", "kernel.time_limit=7", env={"TOOLKEEL_KERNEL__WAITING": "9"}).json
    assert found["kernel.workers"] == {"value": 4, "layer": "user", "source": str(path), "line": 2}
    assert found["kernel.waiting"]["source"] == "TOOLKEEL_KERNEL__WAITING"
    assert found["kernel.time_limit"]["layer"] == "command line"
    assert found["kernel.tool_limit"]["layer"] == "defaults"


def test_config_shows_a_workspaces_narrowing(toolkeel: Toolkeel) -> None:
    place = toolkeel.folder / ".toolkeel" / "config.yaml"
    place.parent.mkdir()
    place.write_text("kernel:\n  workers: 2\n")
    shown = toolkeel("config", "kernel.workers").out
    assert shown.splitlines()[1].split() == ["kernel.workers", "2", "workspace", f"({place.resolve()}:2)"]
    place.write_text("kernel:\n  workers: 200\n")
    assert "may only lower this" in toolkeel("config", code=3).err


def test_config_shows_a_part_or_only_what_was_set(toolkeel: Toolkeel) -> None:
    toolkeel.settings("kernel:\n  workers: 4\n")
    assert list(toolkeel("config", "--json", "--changed").json) == ["kernel.workers"]
    assert set(toolkeel("config", "plugins.files", "--json").json) > {"plugins.files.read_bytes"}


@pytest.mark.parametrize(("typed", "meant"), [("kernle", "kernel"), ("kernel.worker", "kernel.workers")])
def test_config_of_a_misspelt_path_names_the_nearest(toolkeel: Toolkeel, typed: str, meant: str) -> None:
    assert f"there is no setting {typed!r}. Did you mean {meant!r}?" in toolkeel("config", typed).err


def test_config_tells_defaults_from_what_is_not_there(toolkeel: Toolkeel) -> None:
    assert "as the defaults say" in toolkeel("config", "kernel", "--changed").err


def test_config_hides_what_looks_like_a_secret(toolkeel: Toolkeel) -> None:
    code = (
        "from pydantic import BaseModel\n"
        "class Settings(BaseModel):\n    api_token: str = ''\n    password: str = ''\n    name: str = ''\n"
    )
    toolkeel.settings("plugins:\n  remote:\n    api_token: hunter2\n    name: ann\n")
    toolkeel.extension("remote", code)
    ended = toolkeel("config", "plugins.remote", "--json")
    assert "hunter2" not in ended.out
    assert ended.json["plugins.remote.name"]["value"] == "ann"
    assert ended.json["plugins.remote.password"]["value"] == ""


def test_doctor_finds_a_sound_installation_sound(toolkeel: Toolkeel) -> None:
    checks = {check["name"]: check for check in toolkeel("doctor", "--json").json["checks"]}
    assert {name: check["outcome"] for name, check in checks.items() if check["outcome"] == "trouble"} == {}
    assert {"python", "packages", "settings", "state", "workspaces", "openat2", "spiller", "tools"} <= set(checks)
    assert "outputs" in checks["spiller"]["found"]


def test_doctor_tells_trouble_with_its_remedy_and_exits_with_1(toolkeel: Toolkeel) -> None:
    toolkeel.extension("broken", "import nowhere_at_all\n")
    ended = toolkeel("doctor", code=1)
    assert "quarantined at import" in ended.out
    assert "-> Install the package that has 'nowhere_at_all'" in ended.out
    toolkeel.settings("kernel: [\n")
    assert "is not valid YAML" in toolkeel("doctor", code=1).out
    toolkeel.settings("spiller: nobody\n")
    assert "there is no plugin 'nobody'" in toolkeel("doctor", code=1).out


def test_doctor_warns_of_what_is_missing_and_of_doubled_names(toolkeel: Toolkeel) -> None:
    code = (
        "from toolkeel import hookimpl, tool\n"
        "@tool(effect='read', inline=True)\ndef calc() -> str:\n    'Another.'\n    return ''\n"
        "@hookimpl\ndef register_tools():\n    return calc\n"
    )
    toolkeel.extension("rival", code)
    checks = toolkeel("doctor", "--json", "--disable", "outputs").json["checks"]
    warnings = {check["name"]: check["found"] for check in checks if check["outcome"] == "warning"}
    assert "large results are cut" in warnings["spiller"]
    assert "'basics' and 'rival'" in warnings["kernel"]


def test_doctor_warns_of_a_settings_file_that_others_may_write(toolkeel: Toolkeel) -> None:
    toolkeel.settings("kernel: {}\n").chmod(0o666)
    assert "can be written by others" in toolkeel("doctor").out


def test_doctor_warns_of_a_workspace_that_reaches_the_settings(toolkeel: Toolkeel) -> None:
    assert "a model that writes files can change the settings" in toolkeel("doctor", "-w", toolkeel.home).out


# Editing -----------------------------------------------------------------------------------------------------------

FILE = """\
# The settings of this machine
kernel:  # the kernel
  workers: 4 # few
  disable:
    - web  # broken until 2.0
    - "foo"
  enable: {weather: "sha256:1"}

spiller: outputs
"""


def test_an_edit_changes_its_own_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    settings_file.put(path, ("kernel", "enable", "greeter"), "sha256:2")
    settings_file.add(path, ("kernel", "disable"), "bar")
    settings_file.remove(path, ("kernel", "disable"), "foo")
    assert path.read_text() == FILE.replace(
        '{weather: "sha256:1"}', '{greeter: "sha256:2", weather: "sha256:1"}'
    ).replace('"foo"', '"bar"')
    settings_file.drop(path, ("kernel", "enable", "weather"))
    settings_file.remove(path, ("kernel", "disable"), "web")
    settings_file.remove(path, ("kernel", "disable"), "bar")
    assert "disable" not in path.read_text()
    assert "spiller: outputs\n" in path.read_text()


def test_an_edit_keeps_the_files_mode_and_follows_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "config.yaml"
    real.write_text(FILE)
    real.chmod(0o640)
    link.symlink_to(real)
    settings_file.put(link, ("kernel", "enable", "a"), "b")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert 'a: "b"' in real.read_text()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".config")] == []


@pytest.mark.parametrize("text", ["kernel: &k {enable: &e {a: b}}\nother: *k\n", "kernel:\n- a\n", "kernel: [\n"])
def test_a_file_that_cannot_be_edited_safely_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError):
        settings_file.put(path, ("kernel", "enable", "x"), "y")
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


names = st.from_regex(r"[A-Za-z0-9][\w.-]{0,6}", fullmatch=True).filter(str.isascii)
documents = st.fixed_dictionaries(
    {},
    optional={
        "kernel": st.fixed_dictionaries(
            {},
            optional={
                "workers": st.integers(1, 9),
                "disable": st.lists(names, max_size=3, unique=True),
                "enable": st.dictionaries(names, names.map("sha256:{}".format), max_size=3),
            },
        ),
        "spiller": st.just("outputs"),
    },
)


@settings(deadline=None)
@given(
    document=documents,
    flow=st.sampled_from([None, True, False]),
    indent=st.sampled_from([2, 4]),
    name=names,
)
def test_any_edit_says_what_was_there_and_the_change(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any], flow: bool | None, indent: int, name: str
) -> None:
    path = tmp_path_factory.mktemp("edit") / "config.yaml"
    path.write_text(yaml.safe_dump(document, default_flow_style=flow, indent=indent) if document else "")
    kernel: dict[str, Any] = dict(document.get("kernel", {}))
    settings_file.put(path, ("kernel", "enable", name), "sha256:new")
    kernel["enable"] = {**kernel.get("enable", {}), name: "sha256:new"}
    assert yaml.safe_load(path.read_text()) == {**document, "kernel": kernel}
    if name not in kernel.get("disable", []):
        settings_file.add(path, ("kernel", "disable"), name)
        kernel["disable"] = [*kernel.get("disable", []), name]
        assert yaml.safe_load(path.read_text()) == {**document, "kernel": kernel}
    for each in list(kernel["disable"]):
        settings_file.remove(path, ("kernel", "disable"), each)
        kernel["disable"] = [other for other in kernel["disable"] if other != each]
        assert yaml.safe_load(path.read_text()) == {**document, "kernel": filled(kernel)}
    settings_file.drop(path, ("kernel", "enable", name))
    del kernel["enable"][name]
    assert (yaml.safe_load(path.read_text()) or {}) == filled({**document, "kernel": filled(kernel)})


def filled(values: dict[str, Any]) -> dict[str, Any]:
    """Without what holds nothing."""
    return {key: value for key, value in values.items() if value not in ([], {})}
