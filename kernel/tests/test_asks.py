"""Calls that wait for a person: who is asked, what waits meanwhile, what an answer may change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from toolkeel import Allow, Answered, Ask, Call, Reason, Refuse, Scope, hookimpl, tool
from toolkeel.testing import kernel_with

MakePlugin = Callable[..., ModuleType]
ASK_LIMIT = 90.0
SETTINGS = {"kernel": {"ask_time_limit": ASK_LIMIT}}
"""Longer than the 60 s that a call may run, shorter than a test may take."""


def path_key(arguments: Mapping[str, Any], scope: Scope) -> list[tuple[str, ...]]:
    return [("file", arguments["path"])]


class Office:
    """A write tool whose risky calls need a person, and the person."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.questions: list[list[str]] = []
        self.judged: list[tuple[str, str]] = []
        self.answers: dict[str, Any] = {}
        self.gates: dict[str, trio.Event] = {}

        @tool(writes=path_key)
        async def write(path: str, who: str = "") -> str:
            """Write a file."""
            self.ran.append(who or path)
            gate = self.gates.get(f"run {who or path}")
            if gate is not None:
                await gate.wait()
            return path

        self.write = write

    def name(self, call: Call) -> str:
        return call.arguments.get("who") or call.arguments["path"]

    def gate(self, name: str) -> trio.Event:
        return self.gates.setdefault(name, trio.Event())

    @property
    def decider(self) -> ModuleType:
        """Ask about every call whose path or name says so."""

        async def authorize_tool_call(call: Call) -> Ask | None:
            self.judged.append((self.name(call), call.arguments["path"]))
            risky = "risky" in call.arguments["path"] or "risky" in self.name(call)
            return (
                Ask(f"write {call.arguments['path']}?", Reason("it is risky", "rules.risky", "rules"))
                if risky
                else None
            )

        return plugin("rules", authorize_tool_call)

    @property
    def person(self) -> ModuleType:
        """Answer as the test says, once its gate for the call is open, if it has one."""

        async def resolve_ask(call: Call, asks: Sequence[Ask]) -> Any:
            name = self.name(call)
            self.questions.append([ask.question for ask in asks])
            gate = self.gates.get(f"answer {name}")
            if gate is not None:
                await gate.wait()
            answer = self.answers.get(name, Answered(allowed=True, by="ann"))
            return answer(call) if callable(answer) else answer

        return plugin("approvals", resolve_ask)


def plugin(name: str, *hooks: Callable[..., Any], priority: int = 100) -> ModuleType:
    module = ModuleType(name)
    module.PRIORITY = priority  # type: ignore[attr-defined]
    for function in hooks:
        setattr(module, function.__name__, hookimpl(function))
    return module


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.mark.requirement("K10")
async def test_where_nobody_answers_asks_the_call_is_refused_at_once(make_plugin: MakePlugin, office: Office) -> None:
    async with kernel_with(make_plugin(office.write), office.decider) as kit:
        with trio.fail_after(5):
            alone = await kit.call("write", path="risky")
            answers = await kit.batch([("write", {"path": "risky"}), ("write", {"path": "fine"})])
    for answer in (alone, answers[0]):
        assert answer.status == "refused"
        assert answer.text.startswith("write was not run: write needs a person's approval, and nobody here can give it")
        assert (answer.record.refused_by, answer.record.setting) == ("rules", "rules.risky")
    assert answers[1].status == "completed"
    assert office.ran == ["fine"]


async def test_an_approved_call_runs_and_a_denied_one_is_refused_in_the_persons_words(
    make_plugin: MakePlugin, office: Office
) -> None:
    office.answers["risky-b"] = Answered(allowed=False, by="bob", reason="not on a Friday")
    async with kernel_with(make_plugin(office.write), office.decider, office.person) as kit:
        allowed = await kit.call("write", path="risky-a")
        denied = await kit.call("write", path="risky-b")
    assert (allowed.status, denied.status) == ("completed", "refused")
    assert "bob refused it: not on a Friday" in denied.text
    assert denied.record.refused_by == "approval"
    assert office.ran == ["risky-a"]


async def test_asks_are_one_question_after_every_decider_passed(make_plugin: MakePlugin, office: Office) -> None:
    async def authorize_tool_call(call: Call) -> Any:
        return Ask("really?", Reason("a second rule")) if call.arguments["path"] == "risky-a" else Refuse(Reason("no"))

    later = plugin("later", authorize_tool_call, priority=900)
    async with kernel_with(make_plugin(office.write), office.decider, later, office.person) as kit:
        await kit.call("write", path="risky-a")
        refused = await kit.call("write", path="risky-b")
    assert office.questions == [["write risky-a?", "really?"]], "nobody is asked about what is refused anyway"
    assert refused.status == "refused"


async def test_every_decider_runs_again_after_the_answer(make_plugin: MakePlugin, office: Office) -> None:
    revoked = False

    async def authorize_tool_call(call: Call) -> Refuse | None:
        return Refuse(Reason("the right was taken back meanwhile")) if revoked else None

    def answer(call: Call) -> Answered:
        nonlocal revoked
        revoked = True
        return Answered(allowed=True, by="ann")

    office.answers["risky"] = answer
    policy = plugin("policy", authorize_tool_call)
    async with kernel_with(make_plugin(office.write), policy, office.decider, office.person) as kit:
        refused = await kit.call("write", path="risky")
    assert refused.status == "refused"
    assert "taken back" in refused.text
    assert office.ran == []


async def test_a_call_that_waits_for_a_person_holds_no_slot_and_holds_up_nobody_else(
    make_plugin: MakePlugin, office: Office
) -> None:
    gate = office.gate("answer risky")
    async with (
        kernel_with(
            make_plugin(office.write), office.decider, office.person, settings={"kernel": {"workers": 1}}
        ) as kit,
        trio.open_nursery() as nursery,
    ):
        calls = [("write", {"path": path}) for path in ("risky", "a", "b")]
        nursery.start_soon(kit.batch, calls)
        await wait_all_tasks_blocked()
        assert office.ran == ["a", "b"]
        assert kit.kernel.load["free"] == 1
        await kit.call("write", path="other")
        gate.set()
    assert office.ran == ["a", "b", "other", "risky"]


async def test_only_later_calls_with_overlapping_keys_wait_for_the_answer(
    make_plugin: MakePlugin, office: Office
) -> None:
    gate = office.gate("answer risky")
    batch = [
        ("write", {"path": "p", "who": "before"}),
        ("write", {"path": "p", "who": "risky"}),
        ("write", {"path": "p", "who": "after"}),
        ("write", {"path": "q", "who": "beside"}),
    ]
    async with (
        kernel_with(make_plugin(office.write), office.decider, office.person) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, batch)
        await wait_all_tasks_blocked()
        assert office.ran == ["before", "beside"] or office.ran == ["beside", "before"]
        gate.set()
    assert office.ran[2:] == ["risky", "after"]


@pytest.mark.parametrize("outcome", ["denied", "raises", "nobody"])
async def test_a_refused_ask_lets_later_calls_go(make_plugin: MakePlugin, office: Office, outcome: str) -> None:
    def raises(call: Call) -> Answered:
        raise ValueError("the mail server is down")

    office.answers["risky"] = {"denied": Answered(allowed=False, by="ann"), "raises": raises, "nobody": None}[outcome]
    batch = [("write", {"path": "p", "who": "risky"}), ("write", {"path": "p", "who": "after"})]
    async with kernel_with(make_plugin(office.write), office.decider, office.person) as kit:
        asked, after = await kit.batch(batch)
    assert (asked.status, after.status) == ("refused", "completed")
    assert office.ran == ["after"]
    if outcome == "raises":
        assert "the mail server is down" in asked.text


async def test_an_ask_expires(make_plugin: MakePlugin, office: Office, clock: MockClock) -> None:
    office.gate("answer risky")
    async with (
        kernel_with(make_plugin(office.write), office.decider, office.person, settings=SETTINGS) as kit,
        trio.open_nursery() as nursery,
    ):
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await kit.call("write", path="risky"))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        clock.jump(ASK_LIMIT - 10)
        await wait_all_tasks_blocked()
        assert not answers
        clock.jump(20)
    assert answers[0].status == "refused"
    assert "no answer within 90 s" in answers[0].text


async def test_waiting_for_a_person_is_no_running_time(
    make_plugin: MakePlugin, office: Office, clock: MockClock
) -> None:
    gate = office.gate("answer risky")
    async with (
        kernel_with(make_plugin(office.write), office.decider, office.person, settings=SETTINGS) as kit,
        trio.open_nursery() as nursery,
    ):
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await kit.call("write", path="risky"))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        clock.jump(ASK_LIMIT - 10)  # far beyond the 60 s of a call
        gate.set()
    assert answers[0].status == "completed"


async def test_the_next_one_is_asked_where_one_has_no_answer(make_plugin: MakePlugin, office: Office) -> None:
    order: list[str] = []

    def resolver(name: str, answer: Any) -> ModuleType:
        async def resolve_ask(call: Call) -> Any:
            order.append(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return plugin(name, resolve_ask)

    resolvers = [
        resolver("a", None),
        resolver("b", ValueError("broken")),
        resolver("c", "yes"),
        resolver("d", Answered(allowed=True, by="dora")),
        resolver("e", Answered(allowed=False, by="eve")),
    ]
    async with kernel_with(make_plugin(office.write), office.decider, *resolvers) as kit:
        answer = await kit.call("write", path="risky")
    assert order == ["a", "b", "c", "d"]
    assert answer.status == "completed"


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(True, id="true"),
        pytest.param("yes", id="text"),
        pytest.param(Allow(), id="a verdict"),
        pytest.param(Answered(allowed="no", by="ann"), id="allowed is text"),  # type: ignore[arg-type]
        pytest.param(Answered(allowed=1, by="ann"), id="allowed is a number"),  # type: ignore[arg-type]
        pytest.param(Answered(allowed=True, by="ann", arguments=[1]), id="arguments are a list"),  # type: ignore[arg-type]
        pytest.param(Answered(allowed=True, by="ann", arguments={"path": 5.5}), id="arguments do not fit"),
    ],
)
async def test_an_answer_that_is_no_clear_yes_runs_nothing(make_plugin: MakePlugin, office: Office, said: Any) -> None:
    office.answers["risky"] = said
    async with kernel_with(make_plugin(office.write), office.decider, office.person) as kit:
        alone = await kit.call("write", path="risky")
        answers = await kit.batch([("write", {"path": "risky"}), ("write", {"path": "fine"})])
    assert alone.failed
    assert answers[0].failed
    assert answers[1].status == "completed"
    assert office.ran == ["fine"]


async def test_a_resolver_that_swallows_its_time_out_allows_nothing(
    make_plugin: MakePlugin, office: Office, clock: MockClock
) -> None:
    async def resolve_ask(call: Call) -> Answered:
        clock.jump(ASK_LIMIT + 1)
        with contextlib.suppress(BaseException):
            await trio.sleep_forever()
        return Answered(allowed=True, by="nobody")

    async with kernel_with(
        make_plugin(office.write), office.decider, plugin("slow", resolve_ask), settings=SETTINGS
    ) as kit:
        answer = await kit.call("write", path="risky")
    assert (answer.status, office.ran) == ("refused", [])


# Edited arguments --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("K10")
async def test_edited_arguments_are_validated_and_judged_again_by_all(make_plugin: MakePlugin, office: Office) -> None:
    office.answers["risky"] = Answered(allowed=True, by="ann", arguments={"path": "safe"})
    async with kernel_with(make_plugin(office.write), office.decider, office.person) as kit:
        answer = await kit.call("write", path="risky")
    assert office.judged == [("risky", "risky"), ("safe", "safe")]
    assert office.ran == ["safe"]
    assert answer.record.arguments == {"path": "safe"}
    assert answer.record.writes == (("file", "safe"),)


async def test_an_edit_that_a_decider_refuses_is_not_run(make_plugin: MakePlugin, office: Office) -> None:
    async def authorize_tool_call(call: Call) -> Refuse | None:
        return Refuse(Reason("that is the vault")) if call.arguments["path"] == "vault" else None

    office.answers["risky"] = Answered(allowed=True, by="ann", arguments={"path": "vault"})
    policy = plugin("policy", authorize_tool_call)
    async with kernel_with(make_plugin(office.write), policy, office.decider, office.person) as kit:
        answer = await kit.call("write", path="risky")
    assert (answer.status, office.ran) == ("refused", [])
    assert "that is the vault" in answer.text


async def test_an_edit_that_is_risky_itself_is_asked_about_anew(make_plugin: MakePlugin, office: Office) -> None:
    office.answers["risky-1"] = Answered(allowed=True, by="ann", arguments={"path": "risky-2"})
    async with kernel_with(make_plugin(office.write), office.decider, office.person) as kit:
        answer = await kit.call("write", path="risky-1")
    assert office.questions == [["write risky-1?"], ["write risky-2?"]]
    assert answer.status == "completed"
    assert office.ran == ["risky-2"]


async def test_an_edit_is_asked_about_anew_though_the_question_reads_the_same(
    make_plugin: MakePlugin, office: Office
) -> None:
    async def authorize_tool_call(call: Call) -> Ask:
        return Ask("may it write?", Reason("always ask"))

    office.answers["a"] = Answered(allowed=True, by="ann", arguments={"path": "b"})
    office.answers["b"] = Answered(allowed=False, by="ann")
    doubter = plugin("doubter", authorize_tool_call)
    async with kernel_with(make_plugin(office.write), doubter, office.person) as kit:
        answer = await kit.call("write", path="a")
    assert office.questions == [["may it write?"], ["may it write?"]]
    assert (answer.status, office.ran) == ("refused", [])


async def test_an_approver_that_sends_the_same_arguments_back_has_edited_nothing(
    make_plugin: MakePlugin, office: Office
) -> None:
    office.answers["risky"] = lambda call: Answered(allowed=True, by="ann", arguments=dict(call.arguments))
    async with kernel_with(make_plugin(office.write), office.decider, office.person) as kit:
        answer = await kit.call("write", path="risky")
    assert answer.status == "completed"
    assert office.questions == [["write risky?"]]


async def test_a_call_that_is_asked_about_again_and_again_is_refused(make_plugin: MakePlugin, office: Office) -> None:
    rounds = 0

    async def authorize_tool_call(call: Call) -> Ask:
        nonlocal rounds
        rounds += 1
        return Ask(f"are you sure, number {rounds}?", Reason("a doubter"))

    doubter = plugin("doubter", authorize_tool_call)
    async with kernel_with(make_plugin(office.write), doubter, office.person) as kit:
        with trio.fail_after(5):
            answer = await kit.call("write", path="a")
    assert (answer.status, office.ran) == ("refused", [])
    assert rounds < 10


async def test_an_edit_onto_the_path_of_a_later_call_goes_before_it(make_plugin: MakePlugin, office: Office) -> None:
    """Both wait for a person; the first one's edit makes them conflict; the second one is answered first."""
    office.answers["risky-1"] = Answered(allowed=True, by="ann", arguments={"path": "p", "who": "one"})
    running = office.gate("run one")
    later = office.gate("answer risky-2")
    batch = [("write", {"path": "a", "who": "risky-1"}), ("write", {"path": "p", "who": "risky-2"})]
    async with (
        kernel_with(make_plugin(office.write), office.decider, office.person) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, batch)
        await wait_all_tasks_blocked()
        assert office.ran == ["one"]
        later.set()
        await wait_all_tasks_blocked()
        assert office.ran == ["one"], "the second one waits though it was answered"
        running.set()
    assert office.ran == ["one", "risky-2"]


async def test_a_call_whose_predecessor_ends_while_it_waits_for_a_person_goes_on_waiting(
    make_plugin: MakePlugin, office: Office
) -> None:
    """An edit made it wait for an earlier call too; when that one ends it must not run unanswered."""
    office.answers["risky-1"] = Answered(allowed=True, by="ann", arguments={"path": "p", "who": "one"})
    office.answers["risky-2"] = Answered(allowed=False, by="ann")
    later = office.gate("answer risky-2")
    batch = [("write", {"path": "a", "who": "risky-1"}), ("write", {"path": "p", "who": "risky-2"})]
    async with (
        kernel_with(make_plugin(office.write), office.decider, office.person) as kit,
        trio.open_nursery() as nursery,
    ):
        answers: list[Any] = []

        async def run() -> None:
            answers.extend(await kit.batch(batch))

        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        assert office.ran == ["one"]
        later.set()
    assert office.ran == ["one"]
    assert [answer.status for answer in answers] == ["completed", "refused"]


async def test_an_edit_onto_the_path_of_a_call_that_runs_waits_for_it(make_plugin: MakePlugin, office: Office) -> None:
    office.answers["risky"] = Answered(allowed=True, by="ann", arguments={"path": "p", "who": "edited"})
    answer = office.gate("answer risky")
    running = office.gate("run later")
    batch = [("write", {"path": "a", "who": "risky"}), ("write", {"path": "p", "who": "later"})]
    async with (
        kernel_with(make_plugin(office.write), office.decider, office.person) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, batch)
        await wait_all_tasks_blocked()
        assert office.ran == ["later"]
        answer.set()
        await wait_all_tasks_blocked()
        assert office.ran == ["later"]
        running.set()
    assert office.ran == ["later", "edited"]


async def test_an_edit_onto_the_path_of_a_call_that_is_being_judged_runs_neither_twice(
    make_plugin: MakePlugin, office: Office
) -> None:
    judging, judged = trio.Event(), trio.Event()

    async def authorize_tool_call(call: Call) -> None:
        if call.arguments.get("who") == "later":
            judging.set()
            await judged.wait()

    def edit(call: Call) -> Answered:
        return Answered(allowed=True, by="ann", arguments={"path": "p", "who": "edited"})

    office.answers["risky"] = edit
    answer = office.gate("answer risky")
    slow = plugin("slow", authorize_tool_call)
    batch = [("write", {"path": "a", "who": "risky"}), ("write", {"path": "p", "who": "later"})]
    async with (
        kernel_with(make_plugin(office.write), slow, office.decider, office.person) as kit,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(kit.batch, batch)
        await judging.wait()
        answer.set()
        await wait_all_tasks_blocked()
        judged.set()
    assert sorted(office.ran) == ["edited", "later"]


async def test_edits_that_would_wait_for_each_other_in_a_ring_all_run(make_plugin: MakePlugin, office: Office) -> None:
    """The first waits for the third, which was already being judged; the third is then edited onto the second."""
    judging, judged = trio.Event(), trio.Event()
    rounds: list[str] = []

    async def authorize_tool_call(call: Call) -> Ask | None:
        name = call.arguments["who"]
        rounds.append(name)
        if name == "three" and rounds.count("three") == 1:
            judging.set()
            await judged.wait()
            return Ask("three?", Reason("x"))
        return Ask("one?", Reason("x")) if name == "one" and rounds.count("one") == 1 else None

    office.answers["one"] = Answered(allowed=True, by="ann", arguments={"path": "z", "who": "one"})
    office.answers["three"] = Answered(allowed=True, by="ann", arguments={"path": "a", "who": "three"})
    first = office.gate("answer one")
    batch = [("write", {"path": path, "who": who}) for path, who in (("a", "one"), ("a", "two"), ("z", "three"))]
    async with (
        kernel_with(make_plugin(office.write), plugin("slow", authorize_tool_call), office.person) as kit,
        trio.open_nursery() as nursery,
    ):
        answers: list[Any] = []

        async def run() -> None:
            answers.extend(await kit.batch(batch))

        nursery.start_soon(run)
        await judging.wait()
        first.set()
        await wait_all_tasks_blocked()
        judged.set()
    assert [answer.status for answer in answers] == ["completed"] * 3
    assert sorted(office.ran) == ["one", "three", "two"]


# Ends --------------------------------------------------------------------------------------------------------------


async def test_cancelling_the_request_ends_the_waiting_for_a_person(
    make_plugin: MakePlugin, office: Office, observer: Any
) -> None:
    office.gate("answer risky")
    async with kernel_with(make_plugin(office.write), office.decider, office.person, observer) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kit.batch, [("write", {"path": "risky"}), ("write", {"path": "risky", "who": "next"})])
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert kit.kernel.load["free"] == 8
        assert kit.kernel.load["running"] == 0
    observer.check()
    assert [record.status for record in observer.ends] == ["cancelled", "cancelled"]
    assert office.ran == []


async def test_a_hundred_questions_answered_at_once_are_a_hundred_calls_on_eight_workers(
    make_plugin: MakePlugin, office: Office, observer: Any
) -> None:
    gate = trio.Event()
    for number in range(100):
        office.gates[f"answer risky-{number}"] = gate
    async with kernel_with(make_plugin(office.write), office.decider, office.person, observer) as kit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kit.batch, [("write", {"path": f"risky-{number}"}) for number in range(100)])
            await wait_all_tasks_blocked()
            assert kit.kernel.load["free"] == 8
            gate.set()
        assert kit.kernel.load["free"] == 8
    assert sorted(office.ran) == sorted(f"risky-{number}" for number in range(100))
    observer.check()


async def test_a_call_whose_plugin_stopped_while_a_person_thought_is_refused(
    make_plugin: MakePlugin, office: Office
) -> None:
    gate = office.gate("answer risky")
    async with (
        kernel_with(make_plugin(office.write), office.decider, office.person) as kit,
        trio.open_nursery() as nursery,
    ):
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await kit.call("write", path="risky"))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        await kit.kernel.plugins.disable("tools")
        gate.set()
    assert (answers[0].status, office.ran) == ("refused", [])
    assert "'tools' was stopped" in answers[0].text
