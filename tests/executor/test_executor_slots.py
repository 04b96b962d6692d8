"""Where the result of a run is told: a conversation, or a channel of its owner's home (J-2)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from services.executor.board.slots import homes_for, report_of
from vigil.contracts import SlotRun, TellParent, TellParentPayload
from vigil.contracts.board import CycleLedger, Ledger
from vigil.errors import InvalidInput
from vigil.settings.config import Config
from vigil.settings.memory import MindSection
from vigil.settings.sections import Autonomy
from vigil.subjects import SessionKey

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
    told = report_of(KEY, DONE, slot, "", Ledger())
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
    told = report_of(key, DONE, SLOT, "401", ledger)
    paused = " It failed 10 times, one after the other, so it's paused now."
    text = "" if told is None else told.text
    assert text == (f"{called}: 401.{paused * (thread == '_cron-1f')}" if called else "")
