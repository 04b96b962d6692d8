"""Loops of the core, and what their models are shown: the prompt's rows and what it tells of the
state, or the report of a look. For tests of what a clean loop may not see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from services.cortex import core
from services.cortex.core import Policy
from services.cortex.core.context.letters import opening_of
from services.cortex.core.context.window import Window
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.draft.profile import OwnersBoard, TemplateRow
from services.cortex.core.mind import report as situation
from services.cortex.core.pending import tasks
from services.cortex.model import Situation
from services.cortex.thought.prompts import Prompts, under_way
from tests.cortex.driver import START, Driver, answer, call
from vigil.contracts import (
    ChildStatus,
    Control,
    ControlPayload,
    Digest,
    ExternalPayload,
    FollowUp,
    Start,
    State,
    Task,
    TellPerson,
    Tick,
    TickPayload,
    ToldEvent,
    ToldPayload,
    ToolResultPayload,
    Unsaid,
)
from vigil.contracts.board import (
    BoardGoal,
)
from vigil.goals.lifecycle import ReadGoal

PROMPTS: Final = Prompts()


class Shown(NamedTuple):
    """What somebody is shown, and whether they count as swayed from then on, or what they are given
    as marked."""

    text: Any
    is_marked: bool


# ---------------------------------------------------------------- loops that are shown it


class Watched(Driver):
    """A session that notes what its model is shown, the state that its prompt tells of included."""

    def __init__(self, profile: str = "channel", *firsts: Any) -> None:
        left = list(firsts)

        def brain(draft: Any) -> Any:
            state = draft.state
            self.history.show_to(opening_of(draft.loop))
            rows = self.history.rows(draft.rows, Window(context_tokens=10**9))
            open_ = [one for one in state.tasks.values() if not one.is_tainted]
            parts = (PROMPTS.situation(self._situation(state)), open_, state.mind.goals)
            self.shown.append(Shown((*self.seen(draft, rows), parts), draft.sway.is_outside))
            return left.pop(0) if left else answer("ok")

        policy = Policy(
            profile=profile_of(profile), has_mind=True, autonomy_enabled=True, authority="act"
        )
        super().__init__(brain, policy)
        self.key = "ann:vigil:t1" if profile == "channel" else f"ann:vigil:_{profile}"
        self.shown: list[Shown] = []
        self.standing = OwnersBoard()

    def _situation(self, state: State) -> Situation:
        return Situation(
            now=self.now,
            timezone="UTC",
            user="ann",
            agent="vigil",
            follow_ups=state.follow_ups,
            autonomy_enabled=True,
            under_way=under_way(state.tasks.values()),
        )

    def seen(self, draft: Any, rows: Any) -> tuple[Any, ...]:
        return (rows,)

    def said(self) -> list[Shown]:
        """What it had said, and told to homes; each is marked by itself."""
        effects = [effect for turn in self.turns for effect in turn.effects]
        told = [one.payload.told for one in effects if isinstance(one, TellPerson)]
        return [
            *(Shown(send.payload.text, send.payload.is_tainted) for send in self.sends),
            *(Shown((one.text, one.title, one.what), one.is_tainted) for one in told),
        ]

    def change(self, apply: Callable[[Any], None]) -> None:
        """Have a turn do that, and nothing else."""
        draft = core.Draft(self.key, self.state, self.moment(), self.policy)
        apply(draft)
        self.commit(draft)

    def asked(self) -> list[Shown]:
        """Have the model asked, and return what it is shown, and what was said."""
        self.outside("hello", is_trusted=True)
        return [*self.shown, *self.said()]


class Mind(Watched):
    """A mind; its model is shown a report, and nothing else."""

    def __init__(self) -> None:
        super().__init__("mind")

    def seen(self, draft: Any, rows: Any) -> tuple[Any, ...]:
        taken = [row for row in rows if row.at >= draft.loop.begun_at]
        values = situation.values(self.standing, draft.state.mind.goals, taken, draft)
        told = TemplateRow(template="mind_report.md.j2", values=values, at=self.now)
        return (PROMPTS.rendered(told),)


def look_at_board(**board: Any) -> list[Shown]:
    mind = Mind()
    mind.standing = OwnersBoard(**board)
    mind.goals = tuple(ReadGoal(goal=one, revision=1) for one in board.get("goals", ()))
    mind.told("Something came in.")
    return mind.shown


def look_at_due(goal: BoardGoal) -> list[Shown]:
    """A look at nothing but a goal that is due."""
    mind = Mind()
    due = replace(goal, status="active", goal_kind="standing", deadline_at=None)
    mind.standing = OwnersBoard(goals=(due,))
    mind.goals = (ReadGoal(goal=due, revision=1),)
    mind.feed(Tick(payload=TickPayload(slot=mind.now), **mind._envelope()))
    return mind.shown


def told_to(mind: Watched, payload: ToldPayload) -> list[Shown]:
    mind.feed(ToldEvent(payload=payload, **mind._envelope()))
    return mind.shown if isinstance(mind, Mind) else mind.asked()


def outside(driver: Watched, payload: ExternalPayload) -> list[Shown]:
    event = driver.external()
    driver.feed(replace(event, payload=payload))
    return driver.shown if isinstance(driver, Mind) else driver.asked()


def listed(tool: str, **there: Any) -> list[Shown]:
    driver = Watched("channel", answer(call(tool)))
    for name, value in there.items():
        setattr(driver, name, value)
    driver.user("list them")
    return driver.shown


def result(payload: ToolResultPayload) -> list[Shown]:
    driver = Watched("channel", answer(call("memory_recall", query="x")))
    driver.user("recall")
    (open_call,) = driver.open_calls()
    event = driver.result_event(open_call)
    driver.feed(replace(event, payload=replace(payload, call_id=open_call)))
    return driver.asked()


def in_state(put: Callable[[Any], None]) -> list[Shown]:
    driver = Watched()
    driver.change(put)
    return driver.asked()


def fired(follow_up: FollowUp) -> list[Shown]:
    driver = Watched()
    driver.change(lambda draft: draft.open_follow_up("f", replace(follow_up, generation=1)))
    driver.wait(60)
    driver.timer("f")
    return driver.asked()


def digested(entry: Unsaid) -> list[Shown]:
    driver = Watched()
    digest = Digest(generation=1, due_at=START, entries={"x": entry})
    driver.change(lambda draft: draft.update(digest=digest))
    driver.digest()
    return [one for one in driver.asked() if not isinstance(one.text, tuple)]


def child_asks(status: ChildStatus) -> list[Shown]:
    driver = Watched()
    task = Task(tool="t", title="x", due_at=START, generation=1, kind="worker", child="ann:vigil:c")
    driver.change(lambda draft: tasks.open_task(draft, "c1", task))
    payload = ControlPayload(op="status", status=replace(status, call_id="c1", state="asking"))
    driver.feed(Control(payload=payload, **driver._envelope()))
    return driver.asked()


def begun(profile: str, start: Start) -> list[Shown]:
    driver = Watched(profile)
    driver.feed(Control(payload=ControlPayload(op="start", start=start), **driver._envelope()))
    return [*driver.shown, *driver.said()]


def of_row(block: Any) -> list[Shown]:
    return in_state(lambda draft: draft.row("user", "task", block))
