"""Looks of the mind, without a broker: when they are, what they take, what they may decide."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core import Draft, Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.mind import decisions, look
from services.cortex.core.mind.deeds import GATE
from services.cortex.model import ModelError
from tests.cortex.driver import START, Driver, answer
from tests.cortex.shown import look_at_board
from tests.cortex.test_core_readers import offered
from tests.support.examples import up_to
from tests.support.goal_records import goal_of
from vigil.contracts import (
    BoardChange,
    ExternalBlock,
    SlotRun,
    TaskBlock,
    TellParent,
    TellPerson,
    Tick,
    TickPayload,
    Turn,
    encode,
)
from vigil.contracts.board import BoardAction, BoardGoal, BoardTask
from vigil.errors import InvalidInput
from vigil.goals.lifecycle import ReadGoal
from vigil.signals.sources import project
from vigil.subjects import SessionKey

TICK_S: Final = 30
YEAR_0: Final = "0000-01-01T00:00:00Z"
NOTHING: Final = {"type": "no_action", "because": "all is well", "confidence": 1.0}


def mind(*answers: Any, **of: Any) -> Driver:
    """A mind whose model answers so, and then that nothing is to be done."""
    policy = Policy(profile=profile_of("mind"), has_mind=True, authority="suggest", **of)
    driver = Driver(None, policy)
    driver.key = "ann:vigil:_mind"
    left = list(answers)

    def brain(_: Any) -> Any:
        said = left.pop(0) if left else [NOTHING]
        return answer(said if isinstance(said, str) else json.dumps({"decisions": said}))

    driver.brain = brain
    return driver


def decision(kind: str, confidence: float = 0.95, **of: Any) -> dict[str, Any]:
    return {"type": kind, "because": "it helps", "confidence": confidence, **of}


def tick(driver: Driver, **of: Any) -> list[Turn]:
    """Let the timetable say that goals are due."""
    run = SlotRun(row="1" * 32, name="mind", due_at=driver.now, timeout_s=600, **of)
    payload = TickPayload(slot=driver.now, run=run)
    return driver.feed(Tick(payload=payload, **driver._envelope()))


def looks(driver: Driver) -> list[Turn]:
    return [turn for turn in driver.turns if any(n.code == "look_begun" for n in turn.notes)]


def actions(driver: Driver) -> list[tuple[str, str]]:
    """Each action as it was last noted, by its tool and outcome."""
    found: dict[str, BoardAction] = {}
    for turn in driver.turns:
        for effect in turn.effects:
            entity = effect.payload.entity if isinstance(effect, BoardChange) else None
            if isinstance(entity, BoardAction):
                found[entity.id] = entity
    return [(one.type, one.outcome) for one in found.values()]


def changed(driver: Driver) -> list[Any]:
    """All that it wanted kept on the board."""
    effects = [effect for turn in driver.turns for effect in turn.effects]
    return [one.payload.entity for one in effects if isinstance(one, BoardChange)]


def due(**of: Any) -> ReadGoal:
    """A goal of Ann's that nobody looked at yet, unless said."""
    goal = goal_of(**{"created_at": START, "moved_at": START, **of})
    return ReadGoal(goal=goal, revision=7)


# ---------------------------------------------------------------- when, and what


@given(
    st.lists(
        st.tuples(st.integers(0, 90), st.sampled_from(["trusted", "outside", "told", "tick"])),
        max_size=30,
    )
)
@up_to(200)
def test_each_thing_is_taken_once_looks_are_apart_and_none_mixes(steps: Any) -> None:
    """G-1: at most one look in `mind.tick_seconds`; X-3: what is from outside has looks alone."""
    driver = mind(mind_tick_s=TICK_S)
    driver.goals = ()
    count = 0
    for wait_s, kind in steps:
        driver.gathered() if driver.state.gathering and wait_s > TICK_S else None
        driver.wait(wait_s)
        if kind == "tick":
            tick(driver)
            continue
        count += 1
        if kind == "told":
            driver.told(f"n{count}")
        else:
            driver.outside(f"n{count}", is_trusted=kind == "trusted")
    driver.gathered()
    begun = looks(driver)
    times = [turn.created_at for turn in begun]
    assert all(b - a >= timedelta(seconds=TICK_S) for a, b in itertools.pairwise(times))
    shown = [
        block.event.content if isinstance(block, ExternalBlock) else block.content
        for turn in begun
        for row in turn.rows
        for block in row.blocks
        if isinstance(block, ExternalBlock | TaskBlock)
    ]
    assert sorted(shown) == sorted(f"n{number}" for number in range(1, count + 1))
    for turn in begun:
        kinds = {
            block.event.is_trusted
            for row in turn.rows
            for block in row.blocks
            if isinstance(block, ExternalBlock)
        }
        assert len(kinds) <= 1
    assert driver.state.queue == ()
    assert driver.replayed() == driver.turns


def test_a_tick_with_nothing_due_asks_nobody_and_a_repeat_is_one() -> None:
    driver = mind()
    (*_, last) = tick(driver)
    assert (last.outcome, last.usage) == ("silent", ())
    (told,) = [e for e in last.effects if isinstance(e, TellParent)]
    assert (told.payload.state, told.payload.slot is not None) == ("done", True)
    (repeat,) = tick(driver)
    assert [note.code for note in repeat.notes] == ["repeat"]


def test_goals_from_outside_have_looks_of_their_own() -> None:
    """X-3: those that may be trusted first, and neither takes the other's rights."""
    driver = mind()
    theirs = due(id="c" * 32, is_tainted=True)
    driver.goals = (due(), theirs)
    tick(driver)
    checked = [
        e.payload.entity for t in driver.turns for e in t.effects if isinstance(e, BoardChange)
    ]
    assert [one.id for one in checked if isinstance(one, BoardGoal)] == ["a" * 32]
    assert not driver.turns[-1].is_swayed
    driver.goals = (due(last_checked_at=START), theirs)
    driver.wait(TICK_S)
    tick(driver)
    assert driver.turns[-1].is_swayed
    assert changed(driver)[-1].id == "c" * 32


def test_a_paused_mind_looks_when_it_is_resumed() -> None:
    driver = mind([decision("respond", text="Red.")])
    driver.paused_until = START + timedelta(hours=1)
    driver.outside("red", is_trusted=True)
    assert looks(driver) == []
    driver.paused_until = None
    driver.gathered()
    assert len(looks(driver)) == 1


def test_results_of_its_own_calls_end_a_chain() -> None:
    """A model that calls a tool for each result would never stop."""
    again = [decision("tool_call", tool="memory_recall", input='{"query": "a"}')]
    driver = mind(*[again] * 9)
    driver.outside("go", is_trusted=True)
    for _ in range(9):
        for task in list(driver.state.tasks):
            driver.result(task)
        driver.gathered()
    assert len(looks(driver)) == 1 + look.CHAIN_MAX
    assert driver.state.tasks == {}


def test_what_no_answer_can_be_made_of_is_dropped_at_last_and_no_goal_is_marked() -> None:
    """G-1: a look that failed is never taken for "nothing to do"."""
    driver = mind(*["Nothing to do!"] * 9)
    driver.goals = (due(),)
    driver.outside("red", is_trusted=True)
    for _ in range(9):
        driver.gathered()
    assert len(looks(driver)) == look.TRIES_MAX
    assert driver.notes.count("look_failed") == look.TRIES_MAX
    assert driver.notes.count("look_refused") == 2 * look.TRIES_MAX
    assert not [e for turn in driver.turns for e in turn.effects if isinstance(e, BoardChange)]
    assert [id_ for turn in driver.turns for id_ in turn.ended] == ["e3"]


# ---------------------------------------------------------------- what it may do


@pytest.mark.parametrize("risk", ["read", "write", "external", "destructive"])
@pytest.mark.parametrize("step", [-0.01, 0.0])
def test_the_stricter_of_confidence_and_authority_wins(risk: Any, step: float) -> None:
    """G-4: 'suggest' may look and write; below the gate it's asked whatever it may."""
    sure = GATE[risk] + step
    driver = mind([decision("tool_call", sure, tool="ci__do", input="{}")])
    driver.tools = {"ci__do": offered("ci__do", risk)}
    driver.outside("go", is_trusted=True)
    runs = step == 0.0 and risk in ("read", "write")
    assert [one.payload.tool for one in driver.called] == ["ci__do"] * runs
    assert [one.tool for one in driver.state.approvals.values()] == ["ci__do"] * (not runs)
    assert actions(driver) == [("ci__do", "pending")]


def test_who_wants_to_be_asked_oftener_sets_how_sure_a_decision_has_to_be() -> None:
    """Seed 003: the gates of each class stay the least."""
    for least, runs in ((0.8, False), (0.6, True), (0.0, True)):
        driver = mind([decision("tool_call", 0.7, tool="ci__do", input="{}")])
        driver.policy = msgspec.structs.replace(driver.policy, mind_confidence_min=least)
        driver.tools = {"ci__do": offered("ci__do", "write")}
        driver.outside("go", is_trusted=True)
        assert [one.payload.tool for one in driver.called] == ["ci__do"] * runs, least


def test_an_unknown_tool_is_called_by_nobody() -> None:
    driver = mind(
        [
            decision("tool_call", tool="nonsense", input="{}"),
            decision("tool_call", tool="goal_create", input='{"description": "x"}'),
        ]
    )
    driver.outside("go", is_trusted=True)
    assert actions(driver) == [("unknown", "failed"), ("goal_create", "failed")]


def test_what_it_isnt_sure_of_is_asked_at_home() -> None:
    driver = mind([decision("create_task", 0.4, title="Tidy up")])
    driver.outside("go", is_trusted=True)
    (told,) = [e for t in driver.turns for e in t.effects if isinstance(e, TellPerson)]
    assert "I'm not sure enough (40%)" in told.payload.told.text
    assert (told.payload.told.urgency, told.payload.told.is_ordered) == ("low", False)
    assert actions(driver) == [("task_create", "unknown")]


def test_what_it_makes_for_a_goal_counts_as_that_goals() -> None:
    driver = mind([decision("create_task", title="Tidy up", goal="a" * 32)])
    driver.goals = (due(),)
    tick(driver)
    made = changed(driver)
    assert [one.goal for one in made if isinstance(one, BoardTask | BoardAction)] == ["a" * 32] * 2


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "the answer is empty"),
        ("Nothing to do!", "no JSON object"),
        ('{"decisions": []}', "a list of one decision at least"),
        ('{"decisions": {}}', "a list of one decision at least"),
        (json.dumps({"decisions": [NOTHING] * 500}), "are 500; 20 are the most"),
        (json.dumps({"decisions": [decision("levitate")]}), "levitate"),
        (json.dumps({"decisions": [decision("respond", 1.5, text="a")]}), "confidence"),
        (json.dumps({"decisions": [decision("respond", text="")]}), "text"),
        (json.dumps({"decisions": [decision("respond", text="a\0b")]}), "NUL"),
        (json.dumps({"decisions": [decision("tool_call", tool="a", input="[]")]}), "JSON object"),
        (
            json.dumps(
                {"decisions": [decision("update_goal", goal="a", deadline_at="0000-01-01")]}
            ),
            "deadline_at",
        ),
        (
            json.dumps({"decisions": [decision("split_goal", goal="a", parts=[])]}),
            "parts",
        ),
    ],
)
def test_an_answer_that_cant_be_used_is_refused_whole(given: str, reason: str) -> None:
    """X-6: with the field and the reason, for the model to read."""
    with pytest.raises(InvalidInput, match=reason):
        decisions.read(given)


def test_bad_dates_and_strangers_goals_are_failed_actions() -> None:
    late = {"goal": "a" * 32, "deadline_at": "9999-12-31T00:00:00Z"}
    driver = mind(
        [
            decision("update_goal", **late),
            decision("update_goal", goal="f" * 32, status="archived"),
            decision("split_goal", goal="f" * 32, parts=[{"description": "a"}]),
        ]
    )
    driver.goals = (due(),)
    tick(driver)
    assert actions(driver) == [("goal_split", "failed"), *[("goal_update", "failed")] * 2]


def test_signals_tell_of_looks() -> None:
    driver = mind([decision("respond", text="Red."), NOTHING], "no", "no")
    driver.outside("red", is_trusted=True)
    driver.outside("redder", is_trusted=True)
    driver.gathered()
    key = SessionKey.parse(driver.key)
    made = [
        signal
        for turn in driver.turns
        for signal in project("SYSTEM", 7, key.turn_for("x"), encode(turn))
    ]
    assert [one.kind for one in made][:2] == ["mind.decided", "mind.failed"]
    assert made[0].data == {"decisions": 2}


def test_a_look_waits_for_the_budget_and_loses_nothing() -> None:
    """C-9: it isn't tried before there is room, and counts as no failure."""
    driver = mind()
    driver._begin(driver.fold(driver.external("red", is_trusted=True)))
    room_at = START + timedelta(hours=1)
    draft = Draft(driver.key, driver.state, driver.moment(), driver.policy)
    look.fail(draft, ModelError("no room", is_retryable=False, budget_at=room_at))
    driver.commit(draft)
    assert (len(driver.state.queue), driver.state.mind.failures) == (1, 0)
    assert driver.state.gathering is not None
    assert driver.state.gathering.due_at == room_at
    driver.gathered()
    assert len(looks(driver)) == 2
    assert driver.now == room_at
    assert [id_ for turn in driver.turns for id_ in turn.ended] == ["e3"]


def test_a_look_is_shown_the_facts_that_are_known() -> None:
    """F-10: with what else it is told, and nobody is swayed by them."""
    look, *_ = look_at_board(facts=("ci: failing since 01:10 (watch ci, 40 min ago)",))
    assert "- ci: failing since 01:10 (watch ci, 40 min ago)" in str(look.text)
    assert not look.is_marked
