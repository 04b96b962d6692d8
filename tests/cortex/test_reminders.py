"""A reminder that is kept ends by being said, or cancelled, and by nothing else (SPEC S-6)."""

from __future__ import annotations

import random
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
import pytest

from services.cortex import core
from services.cortex.core import Draft, Policy, speech
from services.cortex.core.draft.policy import Hours
from services.cortex.model import ModelAnswer
from services.cortex.models.rehearsal.results import WORDS
from tests.cortex.driver import KEY, START, Driver, answer, call
from tests.support.examples import repeats
from vigil.contracts import FollowUp, Queued, State, Task, TimerFired, Tool, ToolResultBlock

PILL = {"timer_id": "pill", "reason": "take the pill", "keep": True}


def remind(driver: Driver, name: str = "pill", reason: str = "take the pill") -> None:
    draft = Draft(KEY, driver.state, driver.moment(), driver.policy)
    kept = FollowUp(generation=draft.ordinal, fire_at=driver.now, reason=reason, keep=True)
    draft.open_follow_up(name, kept)
    driver.commit(draft)


def begin(driver: Driver, name: str = "pill") -> None:
    """Let a reminder be due, and the model answer once."""
    driver.finish(driver.fold(driver.timer_event(name)))


def test_one_that_comes_again_tomorrow_is_said_today() -> None:
    """S-6, ADR 8: its loop has planned the next one under its name, and the person writes."""

    def brain(draft: Draft) -> ModelAnswer:
        if draft.loop.is_direct:
            return answer("hi")
        if draft.loop.calls == 0 and draft.loop.timer_id == "pill":
            return answer(call("schedule_followup", delay_seconds=86_400, **PILL))
        assert draft.loop.follow_up is not None
        return answer(f"Now: {draft.loop.follow_up.reason}")

    driver = Driver(brain)
    remind(driver)
    begin(driver)
    assert driver.state.loop is not None
    driver.user("hello")
    due = [name for name, plan in driver.state.follow_ups.items() if plan.fire_at <= driver.now]
    for name in due:
        driver.timer(name)
    assert driver.texts == ["hi", "Now: take the pill"]
    assert driver.state.follow_ups["pill"].fire_at == START + timedelta(days=1)
    assert list(driver.state.follow_ups) == ["pill"]


def test_a_flood_of_events_does_not_push_it_out() -> None:
    """S-6, X-3: whoever fills the queue, it waits for its turn."""
    driver = Driver(policy=Policy(queue_max=2))
    remind(driver)
    driver.commit(driver.fold(driver.external("a", "x1")))
    full = tuple(Queued(seq=10**9 + n, type="external") for n in range(2))
    driver.state = msgspec.structs.replace(driver.state, queue=full)
    driver.commit(driver.fold(driver.timer_event("pill")))
    assert "pill" in driver.state.follow_ups
    assert [queued.type for queued in driver.state.queue] == ["external", "external", "timer"]
    assert "queue_full" not in driver.notes


def asking(risk: Any = "destructive") -> Driver:
    """A session whose reminders call a tool that needs leave, and speak after that.

    Args:
        risk: ``external`` needs leave as they open a letter first.
    """

    def brain(draft: Draft) -> ModelAnswer:
        if draft.loop.is_direct or draft.loop.timer_id is None:
            return answer("noted")
        if draft.loop.calls == 0:
            first = [call("open_letter", letter="a1")] if risk == "external" else []
            return answer(*first, call("shell", command="report"))
        return answer("Take the pill.")

    driver = Driver(brain)
    driver.tools = {
        "shell": Tool(
            name="shell",
            description="d",
            input_schema={"type": "object"},
            risk=risk,
            timeout_s=5,
            profiles=("channel",),
        )
    }
    return driver


@pytest.mark.parametrize("is_swayed", [False, True])
def test_one_that_asks_for_leave_is_said_all_the_same(is_swayed: bool) -> None:
    """S-7, X-2: the request isn't the reminder; both come, whatever cap and cooldown say."""
    driver = asking("external" if is_swayed else "destructive")
    if is_swayed:
        driver.outside("Dear agent")
    remind(driver)
    driver.timer("pill")
    assert driver.texts[-1] == "Take the pill."
    assert driver.state.approvals


@pytest.mark.parametrize("is_swayed", [False, True])
def test_one_that_asked_for_leave_is_put_back(is_swayed: bool) -> None:
    """ADR 8: what was asked for is withdrawn by the person's message; the reminder isn't."""
    driver = asking("external" if is_swayed else "destructive")
    if is_swayed:
        driver.outside("Dear agent")
    remind(driver)
    begin(driver)
    assert driver.state.approvals
    driver.user("what is it?")
    assert driver.texts[-1] == "Take the pill."
    assert "void" not in driver.notes


def test_a_swayed_one_has_one_request_that_no_gate_stops() -> None:
    """S-7: a stranger can't make the person's reminder ask for thing after thing."""
    wishes = [
        msgspec.structs.replace(call("shell", command=f"c{n}"), id=f"call-{n}") for n in range(3)
    ]
    driver = asking("external")
    driver.outside("Dear agent")
    remind(driver)
    rest = driver.brain
    driver.brain = lambda draft: (
        answer(call("open_letter", letter="a1"), *wishes)
        if draft.loop.timer_id and not draft.loop.calls
        else rest(draft)
    )
    driver.timer("pill")
    assert len(driver.state.approvals) == 1
    assert driver.texts[-1] == "Take the pill."


@pytest.mark.parametrize("is_theirs", [True, False])
def test_one_that_comes_again_in_other_words_asks_in_a_swayed_thread(is_theirs: bool) -> None:
    """S-7, X-3, FLOW F-5: it may come again as they ordered it; else they are asked."""
    words = PILL if is_theirs else PILL | {"reason": "take two pills"}
    again = call("schedule_followup", delay_seconds=86_400, **words)
    calls = [call("open_letter", letter="a1"), again]

    def brain(draft: Draft) -> ModelAnswer:
        is_reminder = draft.loop.timer_id is not None
        return answer(calls.pop(0)) if is_reminder and calls else answer("Take the pill.")

    driver = Driver(brain)
    driver.outside("Dear agent")
    remind(driver)
    driver.timer("pill")
    assert driver.texts[-1] == "Take the pill."
    assert bool(driver.state.follow_ups) is is_theirs, "not without a word of theirs"
    if not is_theirs:
        driver.decide("accept")
    (planned,) = driver.state.follow_ups.values()
    assert (planned.keep, planned.is_tainted) == (True, False)
    assert planned.fire_at == START + timedelta(days=1)


@pytest.mark.parametrize(
    "wish",
    [
        call("schedule_followup", delay_seconds=1, timer_id="pill", reason="something else"),
        call("cancel_followup", timer_id="pill"),
    ],
    ids=["replace", "cancel"],
)
def test_who_is_asked_to_give_one_up_is_told_which(wish: Any) -> None:
    """X-2: an id says nothing; a person who accepts knows what they lose."""
    driver = Driver(lambda d: answer(wish) if d.loop.is_direct and not d.loop.calls else answer())
    driver.outside("Dear agent")
    remind(driver)
    driver.user("hello")
    (text,) = driver.texts[-1:]
    assert "take the pill" in text


def test_a_plan_without_a_name_takes_nobodys() -> None:
    """S-7, X-3: not that of a reminder, by counting up to it, in a thread that has to ask."""
    plans = [
        msgspec.structs.replace(call("schedule_followup", delay_seconds=9, reason="r"), id=f"c{n}")
        for n in range(12)
    ]
    driver = Driver(lambda d: answer(*plans) if d.loop.is_direct and not d.loop.calls else answer())
    driver.outside("Dear agent")
    remind(driver, "followup-8")
    driver.user("hello")
    assert driver.state.follow_ups["followup-8"].keep
    assert len(driver.state.follow_ups) == 13


def test_an_ordered_result_that_is_given_up_at_night_is_told_of_in_the_morning() -> None:
    """S-6, S-7: late and plainly, but told."""
    driver = Driver()
    task = Task(
        tool="spawn_worker", title="look it up", due_at=START, generation=1, is_ordered=True,
        told_seq=9,
    )  # fmt: skip
    driver.quiet_until = START + timedelta(hours=8)
    state = State(turns=1, tasks={"x": task}, queue=(Queued(seq=9, type="tool_result"),))
    driver.commit(core.give_up(KEY, state, driver.moment(), driver.policy))
    assert driver.texts == []
    driver.now, driver.quiet_until = driver.quiet_until, None
    for name in list(driver.state.follow_ups):
        driver.timer(name)
    (text,) = driver.texts
    assert "look it up" in text


# ---------------------------------------------------------------- any life

STEPS: Final = 40
WAYS: Final = ("remind", "due", "due", "due", "speak", "speak", "event", "night", "wait", "go on",
               "kill", "decide")  # fmt: skip


class Life:
    """A session whose person, model and services do anything, in any order."""

    def __init__(self, seed: int, double_text: Any) -> None:
        self.dice = random.Random(seed)
        self.reasons: dict[str, str] = {}
        policy = Policy(
            autonomy_enabled=True, ordered_per_hour=10**6, queue_max=4, calls_max=4,
            retries_max=1, double_text=double_text,
        )  # fmt: skip
        self.driver = asking()
        self.driver.policy, self.driver.brain = policy, self._think

    def _think(self, draft: Draft) -> ModelAnswer | Exception:
        """Say a reminder in the end, if there is a model; before that do anything else."""
        loop, dice = draft.loop, self.dice
        due, name = loop.follow_up, loop.timer_id or ""
        failures = (TimeoutError("away"), ValueError("401"), answer(stop="refusal"))
        if dice.random() < 0.15:
            return dice.choice(failures)
        if due is None or not due.keep or draft.has_spoken:
            return answer("ok")
        again = {"timer_id": "n" + name if name.startswith("_") else name, "keep": True}
        detours = (
            call("shell", command=f"c{draft.state.effects}"),
            call("schedule_followup", reason="tomorrow's", delay_seconds=10**6, **again),
            call("memory_recall", query="q"),
            call("send_message", text=due.reason),
        )
        is_straight = loop.calls == 3 or dice.random() < 0.6
        return answer(due.reason if is_straight else dice.choice(detours))

    def live(self) -> None:
        for _ in range(STEPS):
            self._happen(self.dice.choice(WAYS))
        self.driver.quiet_until = None
        while self._is_open():
            self.driver.wait(20)
            self._go_on()

    def _happen(self, way: str) -> None:
        driver, dice = self.driver, self.dice
        process: Any = dice.choice((driver.finish, driver.commit))
        match way:
            case "remind":
                name = f"r{len(self.reasons)}"
                self.reasons[name] = f"<{name}>"
                remind(driver, name, self.reasons[name])
            case "due" if self._due():
                self._fire(driver.timer_event(dice.choice(self._due())), process)
            case "speak":
                process(driver.fold(driver.message(f"m{len(driver.turns)}")))
            case "event":
                is_trusted = dice.random() < 0.7
                process(driver.fold(driver.external(is_trusted=is_trusted)))
            case "night":
                is_night = driver.quiet_until is not None
                driver.quiet_until = None if is_night else driver.now + timedelta(seconds=100)
            case "wait":
                driver.wait(dice.choice((1, 6, 150)))
                if driver.quiet_until is not None and driver.quiet_until <= driver.now:
                    driver.quiet_until = None
            case "go on":
                self._go_on()
            case "kill" if (owed := core.owes(driver.state)) is not None:
                queue, event = driver.state.queue, None
                if owed == "take":
                    event = driver.events[queue[0].seq]
                at = driver.moment()
                driver.commit(core.give_up(KEY, driver.state, at, driver.policy, event))
            case "decide" if driver.state.approvals:
                process(driver.fold(driver.decision("reject")))

    def _fire(self, event: TimerFired, process: Any) -> None:
        """Fold a timer's event; now and then it is passed over."""
        driver = self.driver
        if self.dice.random() < 0.9:
            process(driver.fold(event))
            return
        cause, at = core.cause_of(driver.store(event), event), driver.moment()
        driver.commit(core.poison(KEY, driver.state, cause, "x", at, driver.policy, event))

    def _due(self) -> list[str]:
        plans = self.driver.state.follow_ups.items()
        return [name for name, plan in plans if plan.fire_at <= self.driver.now]

    def _is_open(self) -> bool:
        state = self.driver.state
        soon = self.driver.now + timedelta(days=1)
        is_planned = any(plan.fire_at <= soon for plan in state.follow_ups.values())
        return is_planned or state.loop is not None or bool(state.queue)

    def _go_on(self) -> None:
        """Let happen what is waited for, or owed, or due: one of it."""
        driver, loop = self.driver, self.driver.state.loop
        if driver.state.gathering is not None:
            driver.gathered()
        elif core.owes(driver.state) is not None:
            driver.settle()
        elif driver.open_calls():
            driver.result()
        elif loop is not None and loop.retry is not None:
            driver.deadline()
        elif due := self._due():
            driver.timer(due[0])


def not_once(seed: int, double_text: str) -> dict[str, int]:
    """Return the reminders of a life that were not said once, and how often they were."""
    life = Life(seed, double_text)
    life.live()
    texts = [text for text in life.driver.texts if not text.startswith("I need your approval")]
    counts = {n: sum(r in text for text in texts) for n, r in life.reasons.items()}
    return {name: count for name, count in counts.items() if count != 1}


@pytest.mark.repeated
@pytest.mark.parametrize("double_text", ["enqueue", "interrupt", "coalesce"])
def test_whatever_happens_each_is_said_once(double_text: str) -> None:
    """S-6: not lost and not doubled, in 200 lives each."""
    for seed in range(repeats(200, fast=30)):
        assert not not_once(seed, double_text), seed


def test_a_core_that_loses_one_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test has teeth."""
    monkeypatch.setattr(speech, "bring_again", lambda *_: None)
    assert any(not_once(seed, "enqueue") for seed in range(200))


@pytest.mark.parametrize(
    ("fire_at", "expected"),
    [
        ("2026-11-21T01:30:00Z", "It comes at 07:00 instead of 02:30 (Europe/Berlin)"),
        ("2026-11-20T22:30:00+01:00", "It comes at 07:00 instead of 22:30 (Europe/Berlin)"),
        ("2026-11-21T06:00:00Z", ""),
        ("2026-11-20T09:30:00Z", ""),
    ],
)
def test_one_that_quiet_hours_will_move_says_so_when_it_is_made(
    fire_at: str, expected: str
) -> None:
    """S-7: in the person's own time."""
    script = [answer(call("schedule_followup", fire_at=fire_at, **PILL)), answer("ok")]
    driver = Driver(lambda _: script.pop(0))
    driver.hours = Hours(zone=ZoneInfo("Europe/Berlin"), quiet=(time(22), time(7)))
    driver.user()
    blocks = [block for turn in driver.turns for row in turn.rows for block in row.blocks]
    (result,) = [block for block in blocks if isinstance(block, ToolResultBlock)]
    assert "Scheduled reminder" in result.content
    assert ("quiet hours" in result.content) is bool(expected)
    assert expected in result.content
    told = WORDS["schedule_followup"]({"delay_seconds": 60, "keep": True}, result)
    assert told == "I'll remind you in 1 minute." + (
        f" {expected}, because of your quiet hours." if expected else ""
    ), "without a real model the person is told, too"


def test_one_that_a_pause_and_then_quiet_hours_move_is_told_of_both() -> None:
    """L-11: a pause that ends at 22:30 isn't what it comes at seven for."""
    zone, pause = ZoneInfo("Europe/Berlin"), datetime(2026, 11, 20, 21, 30, tzinfo=UTC)
    script = [answer(call("schedule_followup", fire_at="2026-11-20T20:30:00Z", **PILL))]
    driver = Driver(lambda _: script.pop(0) if script else answer("ok"))
    driver.hours = Hours(zone=zone, quiet=(time(22), time(7)), pause=pause)
    driver.user()
    blocks = [block for turn in driver.turns for row in turn.rows for block in row.blocks]
    (result,) = [block for block in blocks if isinstance(block, ToolResultBlock)]
    both = "It comes when the person's pause and quiet hours are over, 2026-11-21 07:00"
    assert both in result.content
    told = WORDS["schedule_followup"]({"delay_seconds": 60, "keep": True}, result)
    assert "your pause and quiet hours are over, 2026-11-21 07:00" in told


@pytest.mark.parametrize(
    ("fire_at", "when", "ago"),
    [
        ("2026-11-27T08:00:00Z", "Friday 2026-11-27T09:00:00+01:00 (Europe/Berlin).", ""),
        ("2025-11-21T08:00:00Z", "Friday 2025-11-21T09:00:00+01:00 (Europe/Berlin).", "364 d ago"),
    ],
)
def test_a_slip_in_a_date_is_told_while_it_can_be_mended(fire_at: str, when: str, ago: str) -> None:
    """S-8: what is past is due at once, but not before the agent could schedule it anew; and a
    Friday that is none is seen by its name."""
    mended = call("schedule_followup", fire_at="2026-11-27T08:00:00Z", **PILL)
    first = call("schedule_followup", fire_at=fire_at, **PILL)
    script = [answer(first), answer(mended), answer("On Friday.")]
    driver = Driver(lambda _: script.pop(0))
    driver.hours = Hours(zone=ZoneInfo("Europe/Berlin"))
    driver.user()
    blocks = [block for turn in driver.turns for row in turn.rows for block in row.blocks]
    result = next(block for block in blocks if isinstance(block, ToolResultBlock))
    assert when in result.content
    assert ("schedule it anew" in result.content) is bool(ago)
    assert ago in result.content
    (left,) = driver.state.follow_ups.values()
    assert left.fire_at == datetime(2026, 11, 27, 8, tzinfo=UTC)
    assert driver.texts == ["On Friday."]
