"""Sessions that start sessions, in the pure core (SPEC C-1, S-12, X-3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from services.cortex import core
from services.cortex.core import Draft
from services.cortex.core.conclusion import CUT_OFF
from services.cortex.core.context.history import chunk_of
from services.cortex.model import ModelAnswer, ModelError
from tests.cortex.driver import answer, call
from tests.cortex.family import ROOT, Family, Member
from tests.cortex.test_core_approvals import TOOLS
from tests.support.examples import up_to
from vigil.contracts import (
    BoardChange,
    CancelCall,
    ChildStatus,
    Control,
    ControlPayload,
    External,
    ExternalPayload,
    SendMessage,
    SlotRun,
    SpawnSession,
    TaskBlock,
    TellParent,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
)

Script = dict[str, list[ModelAnswer | Exception]]


def uses(name: str, *prompts: str) -> list[ToolUseBlock]:
    argument = "prompt" if name == "branch" else "task"
    return [
        ToolUseBlock(id=f"{name}-{i}", name=name, input={argument: prompt})
        for i, prompt in enumerate(prompts)
    ]


def scripted(**script: Any) -> Callable[[str, Draft], ModelAnswer | Exception]:
    """Answer by kind of session, one after the other; after that, "Done."."""
    left: Script = {kind: list(answers) for kind, answers in script.items()}

    def think(key: str, draft: Draft) -> ModelAnswer | Exception:
        kind = draft.policy.profile.prompt.partition(".")[0]
        return left[kind].pop(0) if left.get(kind) else answer("Done.")

    return think


def texts(family: Family) -> list[str]:
    return [effect.payload.text for effect in family.effects(SendMessage)]


def codes(turns: list[Turn]) -> list[str]:
    return [note.code for turn in turns for note in turn.notes]


def results(member: Member) -> list[ToolResultBlock]:
    rows = [row for turn in member.turns for row in turn.rows]
    return [b for row in rows for b in row.blocks if isinstance(b, ToolResultBlock)]


def tasks(member: Member) -> list[TaskBlock]:
    rows = [row for turn in member.turns for row in turn.rows]
    return [b for row in rows for b in row.blocks if isinstance(b, TaskBlock)]


def ends(family: Family) -> list[TellParent]:
    told = family.effects(TellParent)
    return [effect for effect in told if effect.payload.state in ("done", "failed")]


# ---------------------------------------------------------------- the two ways to wait


def test_a_branch_is_waited_for_and_its_conclusion_is_a_result() -> None:
    family = Family(
        scripted(channel=[answer(*uses("branch", "why?"))], branch=[answer("Because.")])
    )
    family.say()
    assert family.root.state.loop is not None
    family.arrive()
    (branch,) = family.of_kind("branch")
    assert branch.turns[0].rows[0].source == "task"
    assert [(r.content, r.is_error) for r in results(family.root)] == [("Because.", False)]
    assert texts(family) == ["Done."]
    assert family.root.state.tasks == {}
    assert family.root.timers == {}


def test_a_worker_of_a_conversation_is_not_waited_for_and_is_told_like_a_reminder() -> None:
    """Its result opens a loop that is exempt from cap and cooldown, and counts against 12 an
    hour."""
    think = scripted(
        channel=[answer(*uses("spawn_worker", "find it")), answer("On it."), answer("Found: 4.")],
        worker=[answer("It is 4.")],
    )
    family = Family(think)
    family.say()
    assert texts(family) == ["On it."]
    assert family.root.state.loop is None
    family.arrive()
    (block,) = tasks(family.root)
    assert (block.content, block.is_error, block.title) == ("It is 4.", False, "find it")
    assert texts(family) == ["On it.", "Found: 4."]
    said = family.effects(SendMessage)[-1].payload
    assert said.is_autonomous
    assert not said.is_voidable
    assert len(family.root.state.counters.ordered_ms) == 1
    assert family.root.state.tasks == {}


def test_a_worker_of_a_branch_is_waited_for() -> None:
    think = scripted(
        channel=[answer(*uses("branch", "why?"))],
        branch=[answer(*uses("spawn_worker", "look")), answer("Because of 4.")],
        worker=[answer("4.")],
    )
    family = Family(think)
    family.say()
    family.arrive()
    (branch,) = family.of_kind("branch")
    assert [r.content for r in results(branch)] == ["4."]
    assert [r.content for r in results(family.root)] == ["Because of 4."]
    (worker,) = family.of_kind("worker")
    assert worker.state.start is not None
    assert worker.state.start.depth == 2


def test_nothing_that_a_child_says_goes_to_the_person() -> None:
    think = scripted(
        channel=[answer(*uses("branch", "why?"))],
        branch=[answer(call("send_message", text="psst")), answer("Because.")],
    )
    family = Family(think)
    family.say()
    family.arrive()
    assert texts(family) == ["Done."]


# ---------------------------------------------------------------- how a child ends


@pytest.mark.parametrize(
    ("last", "state", "content"),
    [
        (answer("Because."), "done", "Because."),
        (answer("  "), "done", "It had nothing to say."),
        (ValueError("the key is refused"), "failed", "the key is refused"),
        (answer(stop="refusal"), "failed", "the model declined to answer"),
        (answer("half", stop="max_tokens"), "done", f"half\n\n{CUT_OFF}"),
    ],
)
def test_however_a_child_ends_its_parent_is_told_once(
    last: ModelAnswer | Exception, state: str, content: str
) -> None:
    family = Family(scripted(channel=[answer(*uses("branch", "why?"))], branch=[last]))
    family.say()
    family.arrive()
    (end,) = ends(family)
    assert (end.payload.state, end.payload.content) == (state, content)
    (result,) = results(family.root)
    assert (result.content, result.is_error) == (content, state == "failed")
    assert family.root.state.loop is None


def test_a_child_that_takes_too_many_steps_fails_with_what_it_said_last() -> None:
    think = scripted(
        channel=[answer(*uses("branch", "why?"))],
        branch=[answer("Looking.", call("nonsense")) for _ in range(10)],
    )
    family = Family(think)
    family.say()
    family.arrive()
    (end,) = ends(family)
    assert end.payload.state == "failed"
    assert end.payload.content == "It took more steps than it may.\n\nLooking."


def test_a_child_that_is_given_up_still_tells_its_parent() -> None:
    """The poison path: the step that killed its process `attempts_max` times."""
    family = Family(scripted(channel=[answer(*uses("branch", "why?"))]))
    family.say()
    key, start = family.pending.pop(0)
    branch = family.member(key)
    moment = core.Moment(now=family.now)
    opened = core.fold(str(key), branch.state, 100, start, moment, branch.policy)
    family.commit(branch, opened)
    family.commit(branch, core.give_up(str(key), branch.state, moment, branch.policy))
    family.arrive()
    assert [end.payload.state for end in ends(family)] == ["failed"]
    assert [r.is_error for r in results(family.root)] == [True]
    assert texts(family) == ["Done."]


@pytest.mark.parametrize("is_due", [True, False])
def test_a_run_that_is_given_up_says_that_nothing_in_it_failed(is_due: bool) -> None:
    """J-5: of a cycle that was begun again and again, since services were restarted."""
    family = Family(scripted(channel=[answer(*uses("branch", "why?"))]))
    family.say()
    key, event = family.pending.pop(0)
    assert isinstance(event, Control)
    assert event.payload.start is not None
    slot = SlotRun(row="1f" * 16, name="look", due_at=family.now, timeout_s=120)
    start = replace(event.payload.start, slot=slot if is_due else None)
    branch, moment = family.member(key), core.Moment(now=family.now)
    event = replace(event, payload=replace(event.payload, start=start))
    opened = core.fold(str(key), branch.state, 100, event, moment, branch.policy)
    family.commit(branch, opened)
    given_up = core.give_up(str(key), branch.state, moment, branch.policy)
    (told,) = (one.payload for one in given_up.effects if isinstance(one, TellParent))
    assert (told.state, told.is_interrupted) == ("failed", is_due)


def test_a_start_that_is_given_up_is_told_too() -> None:
    family = Family(scripted(channel=[answer(*uses("branch", "why?"))]))
    family.say()
    key, start = family.pending.pop(0)
    branch, moment = family.member(key), core.Moment(now=family.now)
    cause = core.cause_of(100, start)
    poisoned = core.poison(str(key), branch.state, cause, "given up", moment, branch.policy, start)
    family.commit(branch, poisoned)
    family.arrive()
    assert [r.content for r in results(family.root)] == ["It could not be started."]


# ---------------------------------------------------------------- limits


def test_width_is_what_is_under_way() -> None:
    prompts = [f"part {i}" for i in range(7)]
    think = scripted(channel=[answer(*uses("spawn_worker", *prompts))])
    family = Family(think)
    family.say()
    assert len(family.effects(SpawnSession)) == 5
    refused = [r.content for r in results(family.root) if r.is_error]
    assert refused == ["5 are under way already; wait for their results, or do it yourself."] * 2
    family.arrive()
    assert family.root.state.tasks == {}


def test_depth_is_counted_down_the_tree() -> None:
    think = scripted(
        channel=[answer(*uses("branch", "why?"))],
        branch=[answer(*uses("spawn_worker", "look"))],
    )
    family = Family(think, depth_max=1)
    family.say()
    family.arrive()
    assert family.of_kind("worker") == []
    (branch,) = family.of_kind("branch")
    assert [r.content for r in results(branch)] == ["This is 1 deep already; do it yourself."]


def test_an_allowance_is_taken_from_what_the_parent_has_left() -> None:
    """Three branches may start three workers each; of seven sessions the last one may start
    none."""
    think = scripted(
        channel=[answer(*uses("branch", "a", "b", "c"))],
        branch=[answer(*uses("spawn_worker", "1", "2", "3")) for _ in range(3)],
    )
    family = Family(think, fan_out_max=7)
    family.say()
    family.arrive()
    allowances = [e.payload.allowance for e in family.effects(SpawnSession)]
    assert allowances[:2] == [3, 2]
    assert len(family.children) <= 7


def test_a_result_that_starts_more_goes_on_with_what_is_left() -> None:
    """A chain of workers, each started by the result of the one before, is bounded, too."""

    def think(key: str, draft: Draft) -> ModelAnswer:
        if draft.policy.profile.is_conversation and draft.loop.calls % 2 == 0:
            return answer(*uses("spawn_worker", "and again"))
        return answer("Done.")

    family = Family(think, fan_out_max=6)
    family.say()
    family.settle()
    assert len(family.children) == 6
    assert len({e.payload.root_id for e in family.effects(SpawnSession)}) == 1


# ---------------------------------------------------------------- words and deadlines


def test_a_status_is_told_at_most_every_30_s() -> None:
    think = scripted(
        channel=[answer(*uses("spawn_worker", "long"))],
        worker=[answer(f"Step {i}.", call("nonsense")) for i in range(9)],
    )
    family = Family()

    def slowly(key: str, draft: Draft) -> ModelAnswer | Exception:
        if "_worker" in key:
            family.wait(11)
            draft.moment = core.Moment(now=family.now)
        return think(key, draft)

    family.brain = slowly
    family.say()
    family.arrive()
    told = [e.payload for e in family.effects(TellParent) if e.payload.state == "running"]
    assert [p.content for p in told] == ["step 3: Step 2.", "step 6: Step 5.", "step 9: Step 8."]


def test_a_word_puts_the_deadline_off_and_the_timer_is_set_anew_when_it_fires() -> None:
    family = Family(scripted(channel=[answer(*uses("spawn_worker", "long"))]))
    family.say()
    ((call_id, task),) = family.root.state.tasks.items()
    family.wait(100)
    status = ChildStatus(call_id=call_id, state="running", text="at it")
    family.control(ROOT, op="status", status=status)
    assert len(family.root.timers) == 1
    family.wait(250)
    assert "child_alive" in codes(family.root.turns)
    assert call_id in family.root.state.tasks
    family.wait(60)
    assert "child_lost" in codes(family.root.turns)
    (block,) = tasks(family.root)
    assert block.is_error
    assert task.tool == block.tool
    (cancel,) = family.effects(CancelCall)
    assert cancel.payload.child == task.child


def test_a_child_that_waits_for_a_person_may_take_as_long_as_they_do() -> None:
    family = Family(scripted(channel=[answer(*uses("spawn_worker", "long")), answer("On it.")]))
    family.say()
    (call_id,) = family.root.state.tasks
    asking = ChildStatus(call_id=call_id, state="asking", text="May I?")
    family.control(ROOT, op="status", status=asking)
    assert texts(family) == ["On it.", "May I?"]
    family.wait(80_000)
    assert call_id in family.root.state.tasks
    running = ChildStatus(call_id=call_id, state="running", text="going on")
    family.control(ROOT, op="status", status=running)
    family.wait(301)
    assert "child_lost" in codes(family.root.turns)


def test_who_started_what_waits_for_the_budget_waits_as_long() -> None:
    """L-21: it is told until when, and gives nothing up before."""
    until = datetime(2026, 11, 20, 19, tzinfo=UTC)
    full = ModelError("no room", is_retryable=False, budget_at=until)
    family = Family(scripted(channel=[answer(*uses("spawn_worker", "long"))], worker=[full]))
    family.say()
    family.arrive()
    (worker,) = family.of_kind("worker")
    assert codes(worker.turns) == ["budget_exhausted", "budget_waits"]
    (task,) = family.root.state.tasks.values()
    assert task.due_at == until + timedelta(seconds=300)
    family.wait(36_000)
    family.arrive()
    assert "child_lost" not in codes(family.root.turns)
    assert worker.turns[-1].outcome == "answered"
    assert [told.payload.state for told in family.effects(TellParent)] == ["running", "done"]


def test_a_branch_fails_where_the_budget_has_no_room() -> None:
    """A conversation waits for it, which then waits itself."""

    def think(key: str, draft: Draft) -> ModelAnswer | Exception:
        if draft.policy.profile.name == "branch":
            return ModelError("no room", is_retryable=False, budget_at=family.now)
        return answer("On it.") if draft.loop.calls else answer(*uses("branch", "think"))

    family = Family(think)
    family.say()
    family.arrive()
    (result,) = results(family.root)
    assert result.is_error
    assert "no room" in result.content


def test_what_waits_too_long_for_the_budget_fails() -> None:
    def think(key: str, draft: Draft) -> ModelAnswer | Exception:
        until = family.now + timedelta(days=1)
        return ModelError("no room", is_retryable=False, budget_at=until)

    family = Family(think)
    family.say()
    for _ in range(8):
        family.wait(86_400)
    assert [turn.outcome for turn in family.root.turns] == ["waiting"] * 7 + ["failed"]
    assert texts(family) == [
        "I can't answer yet: no room. I will as soon as there is room.",
        "I could not answer: no room",
    ]
    assert codes(family.root.turns).count("budget_exhausted") == 2


def test_a_branch_has_its_time_and_no_more() -> None:
    """C-1: a conversation waits for it, however often it tells that it is at work."""
    family = Family(scripted(channel=[answer(*uses("branch", "why?")), answer("No idea.")]))
    family.say()
    ((call_id, task),) = family.root.state.tasks.items()
    family.wait(40)
    status = ChildStatus(call_id=call_id, state="running", text="at it")
    family.control(ROOT, op="status", status=status)
    family.wait(19)
    assert texts(family) == []
    family.wait(2)
    assert "child_lost" in codes(family.root.turns)
    assert texts(family) == ["No idea."]
    (cancel,) = family.effects(CancelCall)
    assert cancel.payload.child == task.child


def test_nobody_is_asked_while_a_conversation_waits() -> None:
    """X-2: a request to a person can't hold up what they would rather say."""
    family = Family(
        scripted(
            channel=[answer(*uses("branch", "why?"))],
            branch=[answer(call("box__wipe", command="all"), *uses("spawn_worker", "look"))],
            worker=[answer(call("ask_user", question="Which?"))],
        )
    )
    family.moment_of = {"tools": TOOLS}
    family.say()
    family.arrive()
    refused = [r.content for m in family.children for r in results(m) if r.is_error]
    assert len(refused) == 2
    assert all("a conversation waits for you" in text for text in refused)
    assert family.effects(BoardChange) == []
    assert texts(family) == ["Done."]
    assert family.root.state.loop is None


def test_a_branch_that_asks_has_no_more_than_its_minute() -> None:
    family = Family(scripted(channel=[answer(*uses("branch", "why?"))]))
    family.say()
    (call_id,) = family.root.state.tasks
    asking = ChildStatus(call_id=call_id, state="asking", text="May I?")
    family.control(ROOT, op="status", status=asking)
    family.wait(60)
    assert texts(family)[-1] == "Done."
    assert family.root.state.loop is None


def test_what_a_child_asks_beside_another_exchange_is_gated() -> None:
    """S-7: it isn't caused by the message that is being answered."""
    look = answer(call("memory_recall", query="x"))
    family = Family(
        scripted(channel=[answer(*uses("spawn_worker", "long")), answer("On it."), look])
    )
    family.say()
    (call_id,) = family.root.state.tasks
    family.say("and what of the other thing?")
    for i in range(20):
        status = ChildStatus(call_id=call_id, state="asking", text=f"May I, {i}?")
        family.control(ROOT, op="status", status=status)
    assert len(texts(family)) == 1 + 12
    assert all(e.payload.is_autonomous for e in family.effects(SendMessage)[1:])


def test_a_question_is_said_once_however_often_it_comes() -> None:
    """S-5: who carries it may repeat it, with the same id."""
    family = Family(scripted(channel=[answer(*uses("spawn_worker", "x")), answer("On it.")]))
    family.say()
    (call_id,) = family.root.state.tasks
    status = ChildStatus(call_id=call_id, state="asking", text="May I?")
    payload = ControlPayload(op="status", status=status)
    event = Control(id="status-1", session_key=str(ROOT), created_at=family.now, payload=payload)
    for _ in range(2):
        family.put(ROOT, event)
    assert texts(family) == ["On it.", "May I?"]


def test_what_a_child_asks_after_it_read_outside_content_is_marked() -> None:
    """X-3: its words become the agent's in this history, and what is decided on them is swayed."""
    family = Family(scripted(channel=[answer(*uses("spawn_worker", "x")), answer("On it.")]))
    family.say()
    (call_id,) = family.root.state.tasks
    status = ChildStatus(call_id=call_id, state="asking", text="Run it!", is_tainted=True)
    family.control(ROOT, op="status", status=status)
    assert [e.payload.is_tainted for e in family.effects(SendMessage)] == [False, True]
    assert chunk_of(1, family.root.turns[-1]).is_tainted


def test_a_child_whose_model_is_away_tells_that_it_is_there() -> None:
    """C-1: waiting for the next try is no silence; how it ends is its own to tell."""
    think = scripted(channel=[answer(*uses("spawn_worker", "x"))])

    def away(key: str, draft: Draft) -> ModelAnswer | Exception:
        return TimeoutError("529") if "_worker" in key else think(key, draft)

    family = Family(away, retry_base_s=100.0)
    family.say()
    family.settle()
    (block,) = tasks(family.root)
    assert "529" in block.content


def test_a_branch_that_never_answers_is_ended_after_a_minute() -> None:
    family = Family(scripted(channel=[answer(*uses("branch", "why?"))]))
    family.say()
    family.wait(60)
    (result,) = results(family.root)
    assert result.is_error
    assert texts(family) == ["Done."]
    assert [e.payload.tool for e in family.effects(CancelCall)] == ["branch"]
    family.arrive()
    (branch,) = family.of_kind("branch")
    assert branch.state.loop is None
    assert "late_result" in codes(family.root.turns)


# ---------------------------------------------------------------- cancelling


def test_a_cancel_reaches_the_children_of_the_children() -> None:
    think = scripted(
        channel=[answer(*uses("branch", "why?"))],
        branch=[answer(*uses("spawn_worker", "look"))],
        worker=[answer(call("memory_recall", query="x"))],
    )
    family = Family(think)
    family.say()
    while family.pending:
        family.deliver()
    assert [m.state.loop is not None for m in family.members.values()] == [True, True, True]
    family.control(ROOT, op="stop")
    family.arrive()
    assert [m.state.loop for m in family.members.values()] == [None, None, None]
    assert [m.state.tasks for m in family.members.values()] == [{}, {}, {}]
    assert all(m.timers == {} for m in family.members.values())


def test_a_cancel_that_comes_first_makes_the_start_nothing() -> None:
    family = Family(scripted(channel=[answer(*uses("branch", "why?"))]))
    family.say()
    key, start = family.pending.pop(0)
    family.control(key, op="cancel")
    family.put(key, start)
    member = family.member(key)
    assert member.state.loop is None
    assert "not_begun" in codes(member.turns)
    family.arrive()
    assert [r.content for r in results(family.root)] == ["It was cancelled before it began."]


def test_a_repeated_start_begins_nothing() -> None:
    family = Family(scripted(channel=[answer(*uses("branch", "why?"))]))
    family.say()
    key, start = family.pending[0]
    family.arrive()
    turns = len(family.member(key).turns)
    family.put(key, start)
    assert codes(family.member(key).turns[turns:]) == ["repeat"]
    assert len(ends(family)) == 1


def test_a_conversation_can_neither_be_started_nor_cancelled() -> None:
    family = Family()
    family.say()
    family.control(ROOT, op="start")
    family.control(ROOT, op="cancel")
    assert codes(family.root.turns).count("not_served") == 2


# ---------------------------------------------------------------- results and the person


def test_a_result_waits_for_the_open_loop_and_then_has_one_of_its_own() -> None:
    think = scripted(
        channel=[
            answer(*uses("spawn_worker", "find")),
            answer("On it."),
            answer(*uses("branch", "why?")),
            answer("So."),
            answer("Found."),
        ]
    )
    family = Family(think)
    family.say()
    family.say("and why?")
    family.deliver(0)  # the worker's start
    family.deliver(len(family.pending) - 1)  # its result, while the branch is waited for
    assert len(family.root.state.queue) == 1
    family.arrive()
    assert texts(family) == ["On it.", "So.", "Found."]


@pytest.mark.parametrize("is_queued", [False, True])
def test_an_ordered_result_whose_step_kills_is_told_plainly(is_queued: bool) -> None:
    """X-5: its loop is given up, or its queued event; the person waits for it."""
    family = Family(scripted(channel=[answer(*uses("spawn_worker", "find")), answer("On it.")]))
    family.say()
    family.deliver(0)  # the worker's start
    root, moment = family.root, core.Moment(now=family.now)
    event = family.pending[-1][1]
    if is_queued:
        begun = core.fold(str(ROOT), root.state, 900, family.message("and?"), moment, root.policy)
        family.commit(root, begun)
    family.commit(root, core.fold(str(ROOT), root.state, 901, event, moment, root.policy))
    if is_queued:
        family.commit(root, core.give_up(str(ROOT), root.state, moment, root.policy))
    family.commit(root, core.give_up(str(ROOT), root.state, moment, root.policy, event))
    assert texts(family)[-1].startswith("This is over, but I can't put it into words.")
    assert not root.state.tasks
    assert not root.state.queue


def test_the_persons_message_puts_an_ordered_result_back() -> None:
    think = scripted(
        channel=[
            answer(*uses("spawn_worker", "find")),
            answer("On it."),
            answer(*uses("branch", "what now?")),
            answer("Hello."),
            answer("Found."),
        ]
    )
    family = Family(think)
    family.say()
    family.deliver(0)
    family.deliver(0)  # its result opens a loop, which waits for a branch
    family.say("hello")
    assert "put_back" in codes(family.root.turns)
    family.arrive()
    assert texts(family) == ["On it.", "Hello.", "Found."]
    assert family.root.state.tasks == {}


def test_a_result_that_nobody_ordered_is_void_once_the_person_has_spoken() -> None:
    """Like an event from outside: it stands in the history, and the next exchange knows of it."""
    think = scripted(
        channel=[answer(*uses("spawn_worker", "look into it")), answer("Noted.")],
        worker=[answer("Nothing.")],
    )
    family = Family(think)
    payload = ExternalPayload(source="hook:ci", content="red")
    family.put(
        ROOT, External(id="x1", session_key=str(ROOT), created_at=family.now, payload=payload)
    )
    (spawn,) = family.effects(SpawnSession)
    assert spawn.payload.is_tainted
    assert not spawn.payload.is_ordered
    family.deliver(0)
    family.deliver(0)
    (block,) = tasks(family.root)
    assert block.is_tainted
    assert "blocked_cooldown" in codes(family.root.turns)


def test_a_result_in_quiet_hours_is_held_and_taken_up_once() -> None:
    think = scripted(
        channel=[
            answer(*uses("spawn_worker", "a", "b")),
            answer("On it."),
            answer("Both are done."),
        ]
    )
    family = Family(think)
    family.say()
    family.moment_of = {"quiet_until": family.now.replace(hour=12)}
    family.arrive()
    assert texts(family) == ["On it."]
    assert len(tasks(family.root)) == 2
    assert list(family.root.state.follow_ups) == ["_outside-results"]
    family.moment_of = {}
    family.wait(4 * 3600)
    assert texts(family) == ["On it.", "Both are done."]


# ---------------------------------------------------------------- any interleaving


WORDS = st.sampled_from(["Done.", "", "So."])
PLANS = st.one_of(
    st.builds(answer, WORDS),
    st.builds(
        lambda name, count: answer(*uses(name, *[f"p{i}" for i in range(count)])),
        st.sampled_from(["branch", "spawn_worker"]),
        st.integers(1, 4),
    ),
    st.builds(lambda: answer(*uses("branch", "a"), *uses("spawn_worker", "b"))),
    st.just(answer(call("memory_recall", query="x"))),
    st.sampled_from([TimeoutError("529"), ValueError("401"), answer(stop="refusal")]),
)
FAN_OUT = 7


class Kin(RuleBasedStateMachine):
    """Sessions that start sessions, whose messages come late, twice and in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.script: list[ModelAnswer | Exception] = []
        self.family = Family(self.think, fan_out_max=FAN_OUT, retries_max=1)

    def think(self, key: str, draft: Draft) -> ModelAnswer | Exception:
        return self.script.pop() if self.script else answer("Done.")

    @rule(script=st.lists(PLANS, max_size=6))
    def plan(self, script: list[ModelAnswer | Exception]) -> None:
        self.script = script

    @rule(script=st.lists(PLANS, min_size=1, max_size=6))
    def say(self, script: list[ModelAnswer | Exception]) -> None:
        self.script = script
        self.family.say()

    @rule()
    def first(self) -> None:
        if self.family.pending:
            self.family.deliver()

    @rule()
    def last(self) -> None:
        """The newest overtakes what was on its way before."""
        if self.family.pending:
            self.family.deliver(len(self.family.pending) - 1)

    @rule(index=st.integers(0, 20), twice=st.booleans())
    def deliver(self, index: int, twice: bool) -> None:
        if self.family.pending:
            self.family.deliver(index % len(self.family.pending), twice=twice)

    @rule(seconds=st.sampled_from([1.0, 29.0, 61.0, 301.0]))
    def wait(self, seconds: float) -> None:
        self.family.wait(seconds)

    @rule(index=st.integers(0, 20), op=st.sampled_from(["stop", "cancel"]))
    def end(self, index: int, op: str) -> None:
        members = list(self.family.members.values())
        if members:
            self.family.control(members[index % len(members)].key, op=op)

    @rule(state=st.sampled_from(["running", "asking"]))
    def word(self, state: Any) -> None:
        for member in list(self.family.members.values()):
            for call_id in member.state.tasks:
                status = ChildStatus(call_id=call_id, state=state, text="May I?")
                self.family.control(member.key, op="status", status=status)

    @rule(quiet=st.booleans())
    def night(self, quiet: bool) -> None:
        until = self.family.now.replace(hour=23)
        self.family.moment_of = {"quiet_until": until} if quiet else {}

    @invariant()
    def the_bounds_hold(self) -> None:
        spawned = Counter(e.payload.root_id for e in self.family.effects(SpawnSession))
        assert all(count <= FAN_OUT for count in spawned.values())
        assert all(e.payload.depth <= 3 for e in self.family.effects(SpawnSession))
        for member in self.family.members.values():
            under_way = [t for t in member.state.tasks.values() if not t.told_seq]
            assert len(under_way) <= member.policy.profile.children_max

    @invariant()
    def an_end_is_told_once(self) -> None:
        told = Counter(end.payload.call_id for end in ends(self.family))
        assert all(count == 1 for count in told.values())

    @invariant()
    def whoever_waits_has_a_deadline(self) -> None:
        for member in self.family.members.values():
            for task_id, task in member.state.tasks.items():
                has_timer = (f"_child-{task_id}", task.generation) in member.timers
                assert has_timer or task.told_seq

    def teardown(self) -> None:
        """No child without an end, and nobody left waiting for one."""
        self.script = []
        self.family.moment_of = {}
        self.family.settle()
        told = {end.payload.call_id for end in ends(self.family)}
        for member in self.family.members.values():
            assert member.state.loop is None
            assert member.state.tasks == {}
            assert member.state.queue == ()
            if member.state.start is not None:
                assert member.state.start.call_id in told


@pytest.mark.hypothesis
def test_no_child_is_without_an_end_and_no_bound_is_exceeded() -> None:
    """C-1, S-12: over any interleaving of starts, results, cancels, deadlines and repeats."""
    run_state_machine_as_test(Kin, settings=up_to(300, stateful_step_count=40))
