"""Skills and prompt sections that plugins contribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolkeel import PromptSection, Ranking, Request, Scope, Skill, hookimpl
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]


def knows(make_plugin: MakePlugin, plugin: str, *names: str, priority: int = 100) -> ModuleType:
    def register_skills() -> tuple[Skill, ...]:
        return tuple(Skill(name, f"How to {name}.", origin=plugin) for name in names)

    return make_plugin(name=plugin, priority=priority, hooks=[register_skills])


@pytest.mark.requirement("K3")
async def test_skills_come_by_name_and_a_later_plugins_replaces_one_of_the_same_name(make_plugin: MakePlugin) -> None:
    late = knows(make_plugin, "late", "knot", "anchor", priority=200)
    early = knows(make_plugin, "early", "sail", "knot")
    async with kernel_with(late, early) as kit:
        assert [(skill.name, skill.origin) for skill in await kit.session.skills()] == [
            ("anchor", "late"),
            ("knot", "late"),
            ("sail", "early"),
        ]


@pytest.mark.requirement("K3")
async def test_a_factory_of_skills_sees_the_scope_and_may_give_one_or_none(tmp_path: Path) -> None:
    class Plugin:
        @hookimpl
        def register_skills(self, scope: Scope) -> Skill | None:
            if not scope.workspaces:
                return None
            return Skill("local", "Know this place.", folder=scope.workspaces[0], tools=("file_read",), tags=("local",))

    async with kernel_with(Plugin, workspaces=[tmp_path]) as kit, kit.kernel.session(session="bare") as bare:
        [skill] = await kit.session.skills()
        assert skill.folder == tmp_path.resolve()
        assert await bare.skills() == ()


@pytest.mark.requirement("K3")
async def test_without_a_selector_all_skills_are_chosen(make_plugin: MakePlugin) -> None:
    async with kernel_with(knows(make_plugin, "one", "b", "a")) as kit:
        assert [skill.name for skill in await kit.session.select_skills(kit.offer.request)] == ["a", "b"]


@pytest.mark.requirement("K3")
async def test_a_selector_chooses_among_the_skills_with_what_the_rankers_said(make_plugin: MakePlugin) -> None:
    seen: list[Any] = []

    async def rank_skills(request: Request, skills: Sequence[Skill]) -> Ranking:
        return Ranking({skill.name: float(skill.name in request.message) for skill in skills})

    async def select_skills(request: Request, skills: Sequence[Skill], ranked: Sequence[Ranking]) -> list[str]:
        seen.append(ranked)
        best = sorted(ranked[0].scores, key=lambda name: -ranked[0].scores[name])
        return [*best[:1], "nowhere", *best[:1]]

    selector = make_plugin(name="rag", hooks=[rank_skills, select_skills])
    async with kernel_with(knows(make_plugin, "one", "knot", "sail"), selector, message="how to sail") as kit:
        assert [skill.name for skill in await kit.session.select_skills(kit.offer.request)] == ["sail"]
    assert seen[0][0].source == "rag"


@pytest.mark.requirement("K3", "K5")
@pytest.mark.parametrize(
    "answer", [lambda: 1 / 0, lambda: 5, lambda: "knot", lambda: [["x"], None, 5, "knot", "sail"]], ids=range(4)
)
async def test_a_selector_of_skills_that_fails_leaves_them_all(
    make_plugin: MakePlugin, answer: Callable[[], Any]
) -> None:
    async def select_skills() -> Any:
        return answer()

    selector = make_plugin(name="rag", hooks=[select_skills])
    async with kernel_with(knows(make_plugin, "one", "knot", "sail"), selector) as kit:
        assert [skill.name for skill in await kit.session.select_skills(kit.offer.request)] == ["knot", "sail"]


# Prompt sections ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K3")
async def test_prompt_sections_come_by_layer_priority_and_name(make_plugin: MakePlugin) -> None:
    async def prompt_sections(request: Request) -> list[PromptSection]:
        return [
            PromptSection("time", request.message, "message"),
            PromptSection("b", "", "system"),
            PromptSection("a", "", "system"),
        ]

    async def first() -> PromptSection:
        return PromptSection("core", "", "system", 1)

    async def session() -> PromptSection:
        return PromptSection("memory", "", "session", 1)

    first.__name__ = session.__name__ = "prompt_sections"
    plugins = [
        make_plugin(name="one", hooks=[prompt_sections]),
        make_plugin(name="two", hooks=[first]),
        make_plugin(name="three", hooks=[session]),
    ]
    async with kernel_with(*plugins, message="noon") as kit:
        sections = await kit.session.prompt_sections(kit.offer.request)
    assert [section.name for section in sections] == ["core", "a", "b", "memory", "time"]
    assert sections[-1].text == "noon"


def half() -> Any:
    yield PromptSection("half", "")
    raise OSError("torn")


@pytest.mark.requirement("K3", "K5")
@pytest.mark.parametrize(
    "answer",
    [
        lambda: 1 / 0,
        lambda: 5,
        lambda: ["text"],
        lambda: PromptSection("odd", "", "nowhere"),  # type: ignore[arg-type]
        lambda: PromptSection("odd", "", priority="high"),  # type: ignore[arg-type]
        half,
    ],
    ids=range(6),
)
async def test_a_wrong_prompt_section_is_recorded_and_the_others_count(
    make_plugin: MakePlugin, answer: Callable[[], Any]
) -> None:
    async def prompt_sections() -> Any:
        return answer()

    async def good() -> PromptSection:
        return PromptSection("good", "text")

    good.__name__ = "prompt_sections"
    bad = make_plugin(name="bad", hooks=[prompt_sections])
    async with kernel_with(bad, make_plugin(name="good", hooks=[good])) as kit:
        sections = await kit.session.prompt_sections(kit.offer.request)
        assert "good" in [section.name for section in sections]
        assert "odd" not in [section.name for section in sections]
        info = next(info for info in kit.kernel.plugins.list() if info.name == "bad")
        assert any("prompt_sections" in note for note in info.notes)
