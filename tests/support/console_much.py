"""Very much of everything for one person, written as the services write it, for pages to be small.

No cortex is there: it would answer ten thousand messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from tests.support import approvals
from tests.support.gateway import Gate
from tests.support.remembering import save
from vigil.bus.bus import Bus
from vigil.contracts import Said, SlotEntry, UserMessage, UserMessagePayload, encode
from vigil.contracts.board.slot import Ledger
from vigil.subjects import Scope, SessionKey
from vigil.timetable.log import SlotLog

KEY: Final = SessionKey("ann", "vigil", "long")
LINE: Final = "<b>" + "&\u202e" * 120_000
"""As long as a record may be, of what takes most room on a page."""
PLAIN: Final = "The basil at the kitchen window needs water. " * 3
AT_ONCE: Final = 200
APPROVALS: Final = 40
TASKS: Final = 120
LONG: Final = 60
"""Messages that take as much room as one may, the newest of the long session."""


class Much(msgspec.Struct, frozen=True, kw_only=True):
    """How much."""

    sessions: int = 10_000
    records: int = 100_000
    """Of one session."""
    memories: int = 1_000
    slots: int = 2_000
    is_hostile: bool = True
    """Whether texts are as long as they may be, of what takes most room on a page."""


async def fill(gate: Gate, api: Any, much: Much) -> str:
    """Store it; return the id of a row of the timetable.

    Args:
        api: asks the gateway as the person.
    """
    bus, line = gate.admin, LINE if much.is_hostile else PLAIN
    many = (SessionKey(KEY.user, KEY.agent, f"t{n}") for n in range(much.sessions))
    await _all(bus.publish(key.in_user, _message(key, 0, "hi")) for key in many)
    await _all(
        bus.publish(KEY.out_said(f"{n:032x}"), _said(n, f"record {n} <b>"))
        for n in range(much.records)
    )
    for number in range(LONG):
        await bus.publish(KEY.out_said(f"f{number:031x}"), _said(number, line[:200_000]))
    await bus.publish(KEY.in_user, _message(KEY, 1, line[:240_000]))
    await _all(
        (
            save(api, f"{n}: {line[:4000]}".replace("\u202e", "e"), source="notes")
            for n in range(much.memories)
        ),
        at_once=8,  # each is made a vector of
    )
    for number in range(APPROVALS):
        asked = approvals.request(
            KEY, f"{number:032x}", reason=line[:3000], input={"text": line[: number * 200]}
        )
        await approvals.list_on_board(gate, asked, 1)
    for number in range(TASKS):
        await api.post("/api/tasks", json={"title": f"{number} {line[:150]}"})
    return await _slots(bus, api, much.slots, line)


async def _slots(bus: Bus, api: Any, count: int, line: str) -> str:
    row = {"name": "News", "prompt": "Read them", "cron": "0 9 * * *"}
    row_id: str = (await api.post("/api/cron", json=row)).json()["id"]
    log, whose, start = SlotLog(bus), Scope(KEY.agent, KEY.user), datetime.now(UTC)
    last = await log.last(whose, row_id)
    for number in range(count):
        due_at = start - timedelta(hours=9_000 - number)
        entry = SlotEntry(
            row=row_id,
            due_at=due_at,
            at=due_at,
            state="failed",
            reason=line[:2000],
            ledger=Ledger(through=due_at),
        )
        last = await log.append(whose, last, entry)
    return row_id


def below(row: str, newest: int) -> list[str]:
    """Return the paths of pages that have much to show, besides those of the navigation.

    Args:
        newest: sequence of the newest record of the long session.
    """
    talk = f"/conversations/{KEY}"
    found = [talk, f"{talk}?after=0", f"{talk}/timeline", f"{talk}/records/{newest}"]
    found += [f"{talk}/timeline?after={newest // 2}", f"/prompts?session={KEY}"]
    found += [f"/timetable/{row}", "/memories?q=record", "/memories/graph"]
    return [*found, "/cost?days=400&by_day=1&by_cause=1", f"/inbox/{APPROVALS - 1:032x}"]


async def _all(waiting: Iterable[Awaitable[Any]], at_once: int = AT_ONCE) -> None:
    """Do many things, some at once."""
    batch = []
    for one in waiting:
        batch.append(one)
        if len(batch) == at_once:
            await asyncio.gather(*batch)
            batch = []
    await asyncio.gather(*batch)


def _message(key: SessionKey, number: int, text: str) -> bytes:
    return encode(
        UserMessage(
            id=f"m{number}",
            session_key=str(key),
            created_at=datetime.now(UTC),
            payload=UserMessagePayload(text=text),
        )
    )


def _said(number: int, text: str) -> bytes:
    return encode(
        Said(
            id=f"{number:032x}",
            session_key=str(KEY),
            text=text,
            at=datetime.now(UTC),
            caused_by="m",
            turn_seq=1,
        )
    )
