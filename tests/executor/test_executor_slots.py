"""Where the result of a run is told: a conversation, or a channel of its owner's home (J-2)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from services.executor.board.slots import homes_for, report_of
from vigil.contracts import SlotRun, TellParent, TellParentPayload
from vigil.contracts.board import Ledger
from vigil.errors import InvalidInput
from vigil.settings.config import Config
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
