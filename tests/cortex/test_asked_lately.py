"""What the person was asked for lately, as sessions that come and go know it (FLOW F-12)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from services.cortex.core import Moment, Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.pending import requests
from services.cortex.core.work.routing import may_ask
from services.cortex.session.words import knowing_asked
from tests.cortex.driver import call
from tests.support import approvals
from tests.support.stack import Stack
from vigil.contracts import QUESTION, BoardEntry, State, Tool, encode
from vigil.subjects import SessionKey

NOW: Final = datetime.now(UTC)
CYCLE: Final = SessionKey.parse("ann:vigil:_autonomy-1f")
TOOLS: Final = {
    one.name: one
    for one in (
        Tool(name="web__look", description="", input_schema={}, risk="read", is_open=True),
        Tool(name="read_file", description="", input_schema={}, risk="read"),
        Tool(name="shell", description="", input_schema={}, risk="external"),
    )
}
ASKED: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("shell", {"command": "date"}), ("web__look", {"url": "https://a.example/"}),
    ("research", {"task": "See https://a.example/"}), (QUESTION, {"question": "Which one?"}),
    ("schedule_followup", {"reason": "x", "delay_seconds": 60}),
)  # fmt: skip


async def test_nobody_is_asked_for_the_same_whatever_tool_it_is(bare: Stack) -> None:
    """Each way in which a call may ask: readers, looks at an address and reminders were asked for
    anew by each cycle. Of what nobody was asked for nothing is known."""
    bus = await bare.bus("admin")
    for number, (tool, given) in enumerate(ASKED):
        at = NOW - timedelta(hours=1)
        request = approvals.request(
            CYCLE, f"{number:032x}", tool=tool, input=given, asked_at=at, state="expired"
        )
        entry = BoardEntry(entity=request, turn_seq=1, at=at)
        await bus.publish(CYCLE.board("approval", request.id), encode(entry))
    moment, policy = Moment(now=NOW, tools=TOOLS), Policy(profile=profile_of("autonomy"))
    calls = [call(name, **given) for name, given in ASKED]
    known = await knowing_asked(bus, CYCLE, moment, State(), policy, calls)
    assert set(known.asked) == {requests.digest_of(name, given=given) for name, given in ASKED}
    others = [call(name, **given, more=1) for name, given in ASKED]
    assert (await knowing_asked(bus, CYCLE, moment, State(), policy, others)).asked == ()


@pytest.mark.parametrize(
    ("name", "may"),
    [(name, True) for name, _ in ASKED] + [("read_file", False), ("memory_recall", False),
     ("open_letter", False), ("spawn_worker", False), ("goal_list", False)],
)  # fmt: skip
def test_what_may_ask(name: str, *, may: bool) -> None:
    assert may_ask(TOOLS.get(name), name) is may
