"""What nobody watches waits for no person, at whatever depth (FLOW F-12, LOOPS L-9)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.home import REQUEST
from services.cortex.core.pending import requests
from services.cortex.model import ModelError
from tests.cortex.driver import Driver, answer, call
from tests.cortex.test_core_jobs import WIPE
from vigil.contracts import (
    BoardChange,
    Control,
    ControlPayload,
    SpawnSession,
    Start,
    TellParent,
    TellPerson,
    ToldPayload,
    ToolResultBlock,
    Turn,
    encode,
)
from vigil.signals.sources import project
from vigil.subjects import SessionKey

UNWATCHED: Final[dict[str, dict[str, Any]]] = {
    "a task's worker": {"task_id": "4f" * 16},
    "a cycle's worker": {"parent": "ann:vigil:_autonomy-1", "root": "_autonomy-1"},
    "a run's worker": {"parent": "ann:vigil:_cron-1", "root": "_cron-1"},
    "a job's worker": {"parent": "ann:vigil:_planner-1", "root": "_planner-1"},
    "a worker of a branch of a run": {"parent": "ann:vigil:_branch-2", "root": "_cron-1"},
    "a worker of a mind's worker": {"parent": "ann:vigil:_worker-2", "root": "_mind"},
}
WATCHED: Final[dict[str, dict[str, Any]]] = {
    "a conversation's worker": {"parent": "ann:vigil:t1", "root": "t1"},
    "a worker of one": {"parent": "ann:vigil:_worker-2", "root": "t1"},
    "of an older version": {"parent": "ann:vigil:t1"},
}
TASK: Final = "Book the dentist"


def started(
    kind: str, *steps: Any, is_ordered: bool = True, asked: tuple[str, ...] = (), **of: Any
) -> Driver:
    """Return a session of that kind that made these calls, then said "Done."."""
    driver = Driver(None, Policy(profile=profile_of(kind), calls_max=20, authority="suggest"))
    driver.key = f"ann:vigil:_{kind}-1f"
    left = [step if isinstance(step, Exception) else answer(step) for step in steps]
    driver.brain = lambda _: left.pop(0) if left else answer("Done.")
    driver.tools = {WIPE.name: WIPE}
    driver.asked_before = asked
    start = Start(prompt=TASK, call_id="c0", depth=1, is_ordered=is_ordered, **of)
    driver.feed(Control(payload=ControlPayload(op="start", start=start), **driver._envelope()))
    return driver


@pytest.mark.parametrize("of", [*UNWATCHED.values(), *WATCHED.values()])
def test_nobody_is_asked_for_the_same_again_by_what_comes_and_goes(of: dict[str, Any]) -> None:
    """Who waits for an answer asks; what comes each half hour asked before."""
    given = {"path": "/"}
    asked = (requests.digest_of(WIPE.name, given=given),)
    driver = started("worker", call(WIPE.name, **given), asked=asked, **of)
    is_unwatched = of in UNWATCHED.values()
    assert bool(driver.state.approvals) is not is_unwatched
    assert ("less than a day ago" in "".join(results(driver))) is is_unwatched
    other = started("worker", call(WIPE.name, path="/tmp"), asked=asked, **of)
    assert len(effects(other, BoardChange)) == 1, "of another call they are"


def effects(driver: Driver, kind: Any) -> list[Any]:
    return [e for turn in driver.turns for e in turn.effects if isinstance(e, kind)]


def told_home(driver: Driver) -> list[ToldPayload]:
    return [one.payload.told for one in effects(driver, TellPerson)]


def results(driver: Driver) -> list[str]:
    blocks = [b for turn in driver.turns for row in turn.rows for b in row.blocks]
    return [block.content for block in blocks if isinstance(block, ToolResultBlock)]


def states(driver: Driver) -> list[str]:
    return [one.payload.state for one in effects(driver, TellParent)]


@pytest.mark.parametrize("who", UNWATCHED)
def test_it_is_told_at_once_that_the_person_was_asked(who: str) -> None:
    """Leave, and an answer: it goes on, and the requests are open and at home."""
    driver = started(
        "worker", call(WIPE.name, all=True), call("ask_user", question="Which day?"),
        **UNWATCHED[who],
    )  # fmt: skip
    assert driver.state.loop is None
    assert states(driver) == ["done"]
    leave, question = driver.state.approvals.values()
    asked = [one for one in told_home(driver) if one.what == REQUEST]
    assert [f"accept {leave.name}" in asked[0].text, '{"all": true}' in asked[0].text] == [True] * 2
    assert [f"answer {question.name} TEXT" in asked[1].text, "Which day?" in asked[1].text] == [
        True, True,
    ]  # fmt: skip
    assert (leave.name in results(driver)[0], question.name in results(driver)[1]) == (True, True)


@pytest.mark.parametrize("who", WATCHED)
def test_below_a_conversation_it_waits_as_its_person_is_there(who: str) -> None:
    driver = started("worker", call("ask_user", question="Which day?"), **WATCHED[who])
    assert driver.state.loop is not None
    assert (states(driver), told_home(driver)) == (["asking"], [])


def test_a_branch_below_nobody_asks_at_home_and_holds_no_conversation_up() -> None:
    driver = started(
        "branch", call(WIPE.name, all=True), parent="ann:vigil:_cron-1", root="_cron-1"
    )
    assert (len(driver.state.approvals), states(driver)) == (1, ["done"])
    watched = started("branch", call(WIPE.name, all=True), parent="ann:vigil:t1", root="t1")
    assert "a conversation waits for you" in results(watched)[0]


@pytest.mark.parametrize(
    ("who", "outcome"), [("a task's worker", "waiting"), ("a cycle's worker", "failed")]
)
def test_who_has_no_room_in_the_budget_holds_up_no_cycle(who: str, outcome: str) -> None:
    """The cycle has its time and no more; a task is done tomorrow."""
    until = datetime(2026, 11, 21, tzinfo=UTC)
    stopped = ModelError("no room", is_retryable=False, budget_at=until)
    driver = started("worker", stopped, **UNWATCHED[who])
    assert driver.turns[-1].outcome == outcome
    assert states(driver) == (["failed"] if outcome == "failed" else [])


def test_what_it_asked_for_is_run_apart_once_it_is_accepted() -> None:
    driver = started("worker", call(WIPE.name, all=True), **UNWATCHED["a cycle's worker"])
    driver.decide("accept")
    (spawned,) = effects(driver, SpawnSession)
    assert (spawned.payload.kind, spawned.payload.root) == ("errand", "_autonomy-1")
    assert spawned.payload.call.input == {"all": True}
    assert driver.state.loop is None


def test_an_answer_has_the_task_taken_up_again_and_told_at_home() -> None:
    """A session of the same kind is given what it was at, what it asked, and the answer."""
    driver = started(
        "worker", call("ask_user", question="Which day?"), **UNWATCHED["a task's worker"]
    )
    driver.decide("accept")
    assert driver.notes[-1] == "verdict_refused"
    verdict = driver.decision("answer", text="Friday.")
    driver.feed(verdict)
    driver.feed(verdict)
    (spawned,) = effects(driver, SpawnSession)
    given = spawned.payload
    assert (given.kind, given.is_ordered, given.is_tainted) == ("worker", True, False)
    assert given.prompt.startswith(f"{TASK}\n\n")
    assert given.prompt.index("Which day?") < given.prompt.index("Friday.")
    again = started("worker", call=given.call)
    (over,) = told_home(again)
    assert over.what == "errand"
    assert over.text == 'ask_user {"question": "Which day?"}, which you answered: Done.'
    assert signals_of(again.turns) == ["worker.started", "worker.completed"]


def signals_of(turns: list[Turn]) -> list[str]:
    key = SessionKey("ann", "vigil", "_worker-1f")
    kept = [msgspec.structs.replace(turn, session_key=str(key)) for turn in turns]
    made = [
        s for n, turn in enumerate(kept, 1) for s in project("SYSTEM", n, key.turn, encode(turn))
    ]
    return [one.kind for one in made if one.kind.startswith("worker.")]


def test_a_question_that_may_be_from_outside_is_counted_at_home() -> None:
    """X-3: and what takes it up stays marked, whoever answers."""
    driver = started(
        "worker", call("ask_user", question="EVIL?"), is_tainted=True,
        **UNWATCHED["a cycle's worker"],
    )  # fmt: skip
    asked = told_home(driver)[0]
    assert ("EVIL" in asked.text, "a question of under 100 characters" in asked.text) == (
        False,
        True,
    )
    assert (asked.is_tainted, asked.is_ordered) == (False, False)
    driver.decide("answer", text="No.")
    (spawned,) = effects(driver, SpawnSession)
    assert (spawned.payload.is_tainted, spawned.payload.is_ordered) == (True, False)


def test_what_nobody_answered_is_a_line_of_the_digest() -> None:
    driver = started("worker", call("ask_user", question="Which?"), **UNWATCHED["a task's worker"])
    (approval,) = driver.state.approvals.values()
    driver.approval_deadline(approval)
    last = told_home(driver)[-1]
    assert (last.urgency, last.text) == (
        "low",
        f"Nobody answered in time what {approval.name} asked.",
    )


def test_a_reader_that_a_cycle_was_allowed_later_tells_the_home_and_not_the_cycle() -> None:
    """It has nobody to come back to: the cycle is over, and its slot was told."""
    given = {"task": "what is new at https://elsewhere.example/"}
    driver = started(
        "autonomy", call("research", **given), ValueError("401"),
        is_tainted=True, is_ordered=False, allowance=3,
    )  # fmt: skip
    assert (driver.state.loop, len(driver.state.approvals)) == (None, 1)
    driver.decide("accept")
    (spawned,) = effects(driver, SpawnSession)
    assert (spawned.payload.kind, spawned.payload.prompt) == ("reader", given["task"])
    assert spawned.payload.call.tool == "research"
    assert driver.state.tasks == {}
