"""Where the result of a run is told: a conversation, or a channel of its owner's home (J-2)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from services.executor.board.slots import FAILURES_MAX, homes_for, reaches_one, report_of
from services.executor.probes.watcher import FAILURES_TOLD, payload_of
from tests.support.filled import canaries_in, filled
from vigil.contracts import SlotRun, TellParent, TellParentPayload
from vigil.contracts.board import CycleLedger, LastSeen, Ledger, WatchedUrl
from vigil.errors import InvalidInput
from vigil.settings.config import Config
from vigil.settings.memory import MindSection
from vigil.settings.sections import Agent, Autonomy
from vigil.subjects import SessionKey
from vigil.timetable.probe import ProbeAnswer, ProbeQuestion
from vigil.watching.watched import what_of

KEY = SessionKey("ann", "vigil", "_cron-1f")
SLOT = SlotRun(row="1f" * 16, name="look", due_at=datetime(2026, 11, 23, tzinfo=UTC), timeout_s=120)
DONE = TellParent(
    id="e1",
    ordinal=1,
    payload=TellParentPayload(parent="", call_id="", state="done", content="It rains."),
)


@pytest.mark.parametrize(
    ("target", "thread", "channel"),
    [("", "main", ""), ("ann:vigil:news", "news", ""), ("sms", "main", "sms")],
)
def test_where_it_is_told(target: str, thread: str, channel: str) -> None:
    slot = replace(SLOT, target=target)
    assert homes_for(Config(), KEY, slot) == (SessionKey("ann", "vigil", thread),)
    told = report_of(KEY, DONE, slot, "", Ledger(), is_for_one=True)
    assert told is not None
    assert (told.text, told.channel) == ("It rains.", channel)


@pytest.mark.parametrize("target", ["bob:vigil:t1", "ann:vigil:_cron-2f", "a:b:c:d"])
def test_nobody_else_is_told(target: str) -> None:
    with pytest.raises(InvalidInput):
        homes_for(Config(), KEY, replace(SLOT, target=target))


def test_a_result_for_the_mind_is_its_own_if_it_is_on() -> None:
    """G-1: a watcher's result goes to the mind; while that is off, home."""
    config = Config(autonomy=Autonomy(enabled=True))
    slot = replace(SLOT, target="mind")
    assert homes_for(config, KEY, slot) == (SessionKey("ann", "vigil", "_mind"),)
    off = Config(autonomy=Autonomy(enabled=True), mind=MindSection(enabled=False))
    assert homes_for(off, KEY, slot) == (SessionKey("ann", "vigil", "main"),)


@pytest.mark.parametrize(
    ("thread", "called"),
    [
        ("_cron-1f", "The job 'look' failed"),
        ("_autonomy-1f", "A cycle of vigil's failed"),
        ("_mind", "A look of vigil's mind failed"),
        ("_bulletin-1f", ""),
        ("_maintenance-1f", ""),
    ],
)
def test_what_failed_is_called_by_its_kind(thread: str, called: str) -> None:
    """J-5: what serves until the next time is told to nobody; only a person's row is paused."""
    key = SessionKey("ann", "vigil", thread)
    ledger = Ledger(failures=9, cycles=None if thread == "_cron-1f" else CycleLedger())
    told = report_of(key, DONE, SLOT, "401", ledger, is_for_one=True)
    paused = " It failed 10 times, one after the other, so it's paused now."
    text = "" if told is None else told.text
    given_up = replace(DONE, payload=replace(DONE.payload, is_interrupted=True))
    of_restarts = report_of(key, given_up, SLOT, "It failed.", ledger, is_for_one=True)
    assert (of_restarts is not None) == (thread == "_cron-1f")  # a person's own row is told
    assert text == (f"{called}: 401.{paused * (thread == '_cron-1f')}" if called else "")


MEMBERS = ("ann:vigil:main", "ben:vigil:main")


@pytest.mark.parametrize("target", ["", "sms", "mind"])
@pytest.mark.parametrize("user", ["ann", "team"])
def test_no_member_is_told_at_home_what_another_called_a_row(user: str, target: str) -> None:
    """L-17: its result, its failures and a watcher's; a row of one's own is called by its name."""
    config = Config(
        agents={"desk": Agent(kind="team", members=("ann", "ben"))},
        mind=MindSection(enabled=False),
    )
    key = SessionKey(user, "desk", "_cron-1f")
    slot = filled(SlotRun, row="1f" * 16, target=target, choice=None)
    homes = tuple(map(str, homes_for(config, key, slot)))
    is_for_one = reaches_one(config, key, slot)
    assert (homes, is_for_one) == (
        (MEMBERS, False) if user == "team" else (("ann:desk:main",), True)
    )
    watch = WatchedUrl(url="https://ci.example.org/")
    seen = LastSeen(what=what_of(watch), failures=FAILURES_TOLD)
    failing = replace(seen, failures=FAILURES_TOLD - 1)
    asked = ProbeQuestion(session=str(key), slot=slot, watch=watch, seen=seen, after=1)
    failed = ProbeAnswer(seen=seen, problem="404")
    ledger = Ledger(failures=FAILURES_MAX - 1)
    told = [
        report_of(key, DONE, slot, "", Ledger(), is_for_one=is_for_one),
        report_of(key, DONE, slot, "401", ledger, is_for_one=is_for_one),
        payload_of(asked, ProbeAnswer(seen=seen), is_for_one=is_for_one),
        payload_of(replace(asked, seen=failing), failed, is_for_one=is_for_one),
    ]
    for one in told:
        assert one is not None
        assert bool(canaries_in(f"{one.text} {one.title}")) is is_for_one
        assert is_for_one or "1f1f1f1f" in one.text


def test_a_conversation_of_the_team_and_its_mind_are_told_the_name() -> None:
    """L-17: what members wrote for their team stays with it there."""
    config = Config(
        agents={"desk": Agent(kind="team", members=("ann", "ben"))}, autonomy=Autonomy(enabled=True)
    )
    key = SessionKey("team", "desk", "_cron-1f")
    assert reaches_one(config, key, replace(SLOT, target="team:desk:t1"))
    assert reaches_one(config, key, replace(SLOT, target="mind"))
