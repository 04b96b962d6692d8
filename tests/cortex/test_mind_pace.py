"""What a mind costs while nobody does anything, whatever its model answers and whatever the board
refuses (SPEC G-1): its session, the timetable's reckoning and a board, without a broker."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.mind import look
from services.scheduler.timetable.kinds import mind as minds
from tests.cortex.driver import START, Driver, answer
from tests.cortex.test_core_mind import TICK_S, decision, due, tick
from tests.cortex.test_core_readers import offered
from tests.support.examples import up_to
from vigil.contracts import BoardChange, TellParent, TellPerson
from vigil.contracts.board import BoardGoal
from vigil.goals import lifecycle
from vigil.goals.lifecycle import ReadGoal

TICK: Final = timedelta(seconds=TICK_S)
DAY: Final = timedelta(days=1)
GOALS_MAX: Final = 6
CALLS_OF_LOOK: Final = 2
"""An answer that can't be used is asked for once more."""
LOOKS_OF_TICK: Final = 1 + look.CHAIN_MAX
"""One, and those at what came of its own calls."""
FIRST: Final = 11
"""Looks at a goal until they are `LATER_MAX` apart: 30 s, doubled."""
A_DAY: Final = 4
"""From then on."""


class Idle:
    """Days on which nobody does anything."""

    def __init__(self, goals: list[BoardGoal], refused: list[bool], moves: list[Any]) -> None:
        policy = Policy(profile=profile_of("mind"), has_mind=True, authority="act")
        self.driver = Driver(None, policy)
        self.driver.key = "ann:vigil:_mind"
        self.driver.brain = self._answer
        self.driver.tools = {"ci__look": offered("ci__look", "read")}
        self.goals = {one.id: ReadGoal(goal=one, revision=1) for one in goals}
        self.calls = 0
        self.ticks = 0
        self._refused, self._moves = refused, moves
        self._changes = 0
        self._read = 0
        self._last_at: datetime | None = None
        self._failures = 0
        self._looks: defaultdict[str, list[datetime]] = defaultdict(list)

    def _answer(self, _: Any) -> Any:
        self.calls += 1
        move = self._moves[self.calls % len(self._moves)]
        return answer(move if isinstance(move, str) else json.dumps({"decisions": self._of(move)}))

    def _of(self, move: tuple[str, int, dict[str, Any]]) -> list[dict[str, Any]]:
        kind, number, of = move
        ids = list(self.goals)
        if kind in ("update_goal", "split_goal"):
            of = {**of, "goal": ids[number % len(ids)]}
        if (ahead_s := of.pop("ahead_s", None)) is not None:
            of["deadline_at"] = (self.driver.now + timedelta(seconds=ahead_s)).isoformat()
        return [decision(kind, 1.0, **of)]

    def live(self, until: datetime) -> None:
        while (at := self._next()) is not None and at <= until:
            self.driver.now = max(self.driver.now, at)
            for id_, one in self.goals.items():
                if lifecycle.is_over(one.goal, self.driver.now):
                    failed = lifecycle.moved(one.goal, "failed", self.driver.now)
                    self.goals[id_] = ReadGoal(goal=failed, revision=one.revision + 1)
            if self._tick_at() == at:
                self._tick()

    def _next(self) -> datetime | None:
        ends = [lifecycle.over_at(one.goal) for one in self.goals.values()]
        found = [at for at in (self._tick_at(), *ends) if at is not None]
        return min(found, default=None)

    def _tick_at(self) -> datetime | None:
        goals = [one.goal for one in self.goals.values()]
        now = self.driver.now
        return minds.next_look_at(goals, self._last_at, self._failures, TICK, now, self._looks)

    def _tick(self) -> None:
        goals = [one.goal for one in self.goals.values()]
        found = minds.due_of(goals, self._last_at, self.driver.now)
        self._last_at = self.driver.now
        if not found.ids:
            return
        self.ticks += 1
        for id_ in found.ids:
            self._looks[id_].append(self.driver.now)
        self._see()
        tick(self.driver)
        while self._stored() or self.driver.state.gathering is not None:
            self._see()
            self.driver.gathered()
        self._last_at = self.driver.now

    def _see(self) -> None:
        self.driver.goals = tuple(self.goals.values())

    def _stored(self) -> bool:
        """Do what the turns ask for; whether there was anything."""
        turns = self.driver.turns[self._read :]
        self._read = len(self.driver.turns)
        for effect in (effect for turn in turns for effect in turn.effects):
            if isinstance(effect, BoardChange):
                self._change(effect)
            elif isinstance(effect, TellParent) and effect.payload.slot is not None:
                is_failed = effect.payload.state == "failed"
                self._failures = self._failures + 1 if is_failed else 0
        for called in self.driver.called:
            if called.id in self.driver.state.tasks:
                self._see()
                self.driver.result(called.id)
        return bool(turns)

    def _change(self, effect: BoardChange) -> None:
        goal, payload = effect.payload.entity, effect.payload
        if not isinstance(goal, BoardGoal):
            return
        self._changes += 1
        made = payload.parts or (goal,)
        there = self.goals.get(made[0].id)
        active = sum(one.goal.status == "active" for one in self.goals.values())
        fits = payload.expect == (0 if there is None else there.revision) or bool(payload.parts)
        fits = fits and (there is not None or active + len(made) <= GOALS_MAX)
        fits = fits and not self._refused[self._changes % len(self._refused)]
        for one in made if fits else ():
            self.goals[one.id] = ReadGoal(goal=one, revision=payload.expect + 1)
        if not payload.is_silent and effect.id in self.driver.state.tasks:
            self._see()
            self.driver.result(effect.id, is_error=not fits)

    @property
    def told(self) -> list[str]:
        return [
            effect.payload.told.text
            for turn in self.driver.turns
            for effect in turn.effects
            if isinstance(effect, TellPerson)
        ]


UPDATE: Final = st.fixed_dictionaries(
    {},
    optional={
        "check_interval_secs": st.sampled_from([60, 3600, 86_400]),
        "ahead_s": st.sampled_from([1, 3601, 90_000]),
        "status": st.sampled_from(["active", "paused", "failed", "archived"]),
        "strategy": st.just("once more"),
    },
)
MOVE: Final = st.one_of(
    st.just("Nothing to do!"),
    st.tuples(st.just("no_action"), st.just(0), st.just({})),
    st.tuples(st.just("update_goal"), st.integers(0, GOALS_MAX), UPDATE),
    st.tuples(
        st.just("create_goal"),
        st.just(0),
        st.fixed_dictionaries(
            {"description": st.just("more")},
            optional={
                "check_interval_secs": st.sampled_from([60, 3600]),
                "ahead_s": st.sampled_from([1, 3601]),
            },
        ),
    ),
    st.tuples(
        st.just("split_goal"),
        st.integers(0, GOALS_MAX),
        st.just({"parts": [{"description": "one"}, {"description": "two"}]}),
    ),
    st.tuples(st.just("tool_call"), st.just(0), st.just({"tool": "ci__look", "input": "{}"})),
)
MOVES: Final = st.lists(MOVE, min_size=1, max_size=6)


def goals(count: int, **of: Any) -> list[BoardGoal]:
    return [due(id=f"{number:032x}", **of).goal for number in range(1, count + 1)]


@given(st.integers(1, 3), MOVES, st.integers(1, 8))
@up_to(150)
def test_what_a_lasting_refusal_costs_is_bounded(count: int, moves: Any, days: int) -> None:
    """Of each goal 11 looks, then 4 a day, with what follows of their own calls: not one each 30
    seconds, which are 2,880 a day."""
    idle = Idle(goals(count), [True], moves)
    idle.live(START + days * DAY)
    assert idle.ticks <= count * (FIRST + A_DAY * days)
    assert idle.calls <= idle.ticks * LOOKS_OF_TICK * CALLS_OF_LOOK


@given(st.integers(0, 3), MOVES, st.lists(st.booleans(), min_size=1, max_size=5))
@up_to(150)
def test_what_any_model_costs_by_itself_is_bounded(count: int, moves: Any, refused: Any) -> None:
    """Whatever it makes, archives, splits or puts off: a person's goal begins two looks within its
    interval (it's due, or was missed), goals of the mind's own together one an hour."""
    days = 2
    idle = Idle(goals(max(count, 1)), refused, moves)
    idle.live(START + days * DAY)
    hours = 24 * days + 1
    assert idle.ticks <= hours * (2 * max(count, 1) + 1) + count * FIRST
    assert idle.calls <= idle.ticks * LOOKS_OF_TICK * CALLS_OF_LOOK


def test_the_person_is_told_once_of_a_goal_that_cant_be_taken_down() -> None:
    idle = Idle(goals(1), [True], [("no_action", 0, {})])
    idle.live(START + 3 * DAY)
    (told,) = idle.told
    assert "can't put down that I did" in told
    assert "Keep the inbox clean" in told
    assert idle.driver.notes.count("look_left") == idle.calls - 1
    assert idle.calls <= FIRST + 3 * A_DAY


def test_a_goal_that_is_taken_down_again_is_looked_at_by_its_interval() -> None:
    """The refusal ends: from then on each hour, and what is told next is told anew."""
    idle = Idle(goals(1), [True], [("no_action", 0, {})])
    idle.live(START + DAY)
    idle._refused = [False]
    idle.live(START + 2 * DAY)
    before = idle.calls
    idle.live(START + 3 * DAY)
    assert 23 <= idle.calls - before <= 24
    assert len(idle.told) == 1


@pytest.mark.parametrize(
    "hasty", [{"check_interval_secs": 60}, {"ahead_s": 60}], ids=["interval", "deadline"]
)
@pytest.mark.parametrize("kind", ["update_goal", "create_goal"])
def test_a_look_has_no_look_follow_within_the_hour(kind: str, hasty: Any) -> None:
    """What is paid for each minute is a person's to say; theirs stays as it is."""
    more = {"description": "more"} if kind == "create_goal" else {}
    idle = Idle(goals(1, check_interval_s=60), [False], [(kind, 0, {**more, **hasty})])
    idle.live(START + timedelta(minutes=2))
    is_theirs = kind == "update_goal" and "ahead_s" not in hasty
    made = [
        effect.payload.entity
        for turn in idle.driver.turns
        for effect in turn.effects
        if isinstance(effect, BoardChange)
    ]
    assert any(getattr(one, "outcome", "") == "failed" for one in made) is not is_theirs
    assert [one.goal.deadline_at for one in idle.goals.values()] == [None]
    assert idle.calls >= 2, "it counts as looked at, and is due each minute as before"


def test_a_goal_that_is_split_or_whose_facts_are_told_counts_as_looked_at() -> None:
    idle = Idle(goals(1), [False], [("split_goal", 0, {"parts": [{"description": "one"}]})])
    idle.live(START)
    whole = idle.goals[f"{1:032x}"].goal
    assert whole.last_checked_at == START


def test_a_person_who_changes_a_goal_has_it_looked_at_soon() -> None:
    """What looks before that left as it was counts no more."""
    goal = due(last_checked_at=START - DAY).goal
    looks = [START + TICK * number for number in range(12)]
    now = looks[-1]
    late = minds.next_look_at([goal], now, 0, TICK, now, {goal.id: looks})
    assert late == now + timedelta(hours=6)
    soon = minds.next_look_at([goal], now, 0, TICK, now, {})
    assert soon == now + TICK


def test_goals_of_the_minds_own_wait_for_one_another() -> None:
    own = [replace(one, session_key="ann:vigil:_mind") for one in goals(3)]
    at = minds.next_look_at(own, START, 0, TICK, START, {})
    assert at == START + timedelta(hours=1)
