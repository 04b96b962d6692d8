"""However much there is, a page is small and reads little: ten thousand sessions, long logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support import approvals
from tests.support.console import Reader, pages, signed_in
from tests.support.examples import repeats
from tests.support.gateway import Gate
from tests.support.remembering import running_memories, save
from vigil.bus.bus import Bus
from vigil.bus.reads import Reads
from vigil.contracts import Said, SlotEntry, UserMessage, UserMessagePayload, encode
from vigil.contracts.board.slot import Ledger
from vigil.subjects import Scope, SessionKey
from vigil.timetable.log import SlotLog

pytestmark = pytest.mark.asyncio(loop_scope="module")
ANN: Final = SessionKey("ann", "vigil", "long")
BYTES_MAX: Final = 200_000
READS_MAX: Final = 260
"""Questions to the broker that a page may take: two for each session of a list."""
LINE: Final = "<b>" + "&\u202e" * 120_000
"""A line as long as a record may be, of what takes most room on a page."""
AT_ONCE: Final = 200


class Count:
    """Questions to the broker."""

    def __init__(self) -> None:
        self.reads = 0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: Any) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_memories(home) as gate:
        yield gate


async def all_of(waiting: Iterable[Awaitable[Any]]) -> None:
    """Do many things, some at once."""
    batch = []
    for one in waiting:
        batch.append(one)
        if len(batch) == AT_ONCE:
            await asyncio.gather(*batch)
            batch = []
    await asyncio.gather(*batch)


def message(key: SessionKey, number: int, text: str) -> bytes:
    return encode(
        UserMessage(
            id=f"m{number}",
            session_key=str(key),
            created_at=datetime.now(UTC),
            payload=UserMessagePayload(text=text),
        )
    )


def said(number: int, text: str) -> bytes:
    return encode(
        Said(
            id=f"{number:032x}",
            session_key=str(ANN),
            text=text,
            at=datetime.now(UTC),
            caused_by="m",
            turn_seq=1,
        )
    )


async def fill(gate: Gate, reader_api: Any) -> str:
    """Store much of everything; return the id of a row of the timetable."""
    bus: Bus = gate.admin
    many = (SessionKey("ann", "vigil", f"t{n}") for n in range(repeats(10_000, fast=300)))
    await all_of(bus.publish(key.in_user, message(key, 0, "hi")) for key in many)
    await all_of(
        bus.publish(ANN.out_said(f"{n:032x}"), said(n, f"record {n} <b>"))
        for n in range(repeats(100_000, fast=2_000))
    )
    for number in range(60):  # what takes most room is the newest
        await bus.publish(ANN.out_said(f"f{number:031x}"), said(number, LINE[:200_000]))
    await bus.publish(ANN.in_user, message(ANN, 1, LINE[:240_000]))
    await all_of(
        save(reader_api, f"{n}: {LINE[:4000]}".replace("\u202e", "e"), source="notes")
        for n in range(repeats(1_000, fast=80))
    )
    row = {"name": "News", "prompt": "Read them", "cron": "0 9 * * *"}
    row_id: str = (await reader_api.post("/api/cron", json=row)).json()["id"]
    log, whose, start = SlotLog(bus), Scope("vigil", "ann"), datetime.now(UTC)
    last = await log.last(whose, row_id)
    for number in range(repeats(2_000, fast=150)):
        due_at = start - timedelta(hours=9_000 - number)
        entry = SlotEntry(row=row_id, due_at=due_at, at=due_at, state="failed",
                          reason=LINE[:2000], ledger=Ledger(through=due_at))  # fmt: skip
        last = await log.append(whose, last, entry)
    for number in range(40):
        asked = approvals.request(
            ANN, f"{number:032x}", reason=LINE[:3000], input={"text": LINE[: number * 200]}
        )
        await approvals.list_on_board(gate, asked, 1)
    for number in range(120):
        await reader_api.post("/api/tasks", json={"title": f"{number} {LINE[:150]}"})
    return row_id


async def test_pages_stay_small_and_read_little(gate: Gate, monkeypatch: Any) -> None:
    """Each under 200 kB, with few questions to the broker, also where the log is long."""
    ann = await signed_in(gate, "ann")
    row = await fill(gate, await gate.person("ann"))
    count, ask = Count(), Reads._ask_leader

    async def counted(self: Reads, *given: Any, **more: Any) -> Any:
        count.reads += 1
        return await ask(self, *given, **more)

    monkeypatch.setattr(Reads, "_ask_leader", counted)
    newest = (await gate.stored(str(ANN)))[-1].seq
    talk = f"/conversations/{ANN}"
    below = [talk, f"{talk}?after=0", f"{talk}/timeline", f"{talk}/records/{newest}"]
    below += [f"/prompts?session={ANN}", f"/timetable/{row}", "/memories?q=record"]
    below += ["/memories/graph", "/cost?days=400&by_day=1&by_cause=1", f"/inbox/{39:032x}"]
    large = []
    for path in (*pages(), *below):
        count.reads = 0
        size = await size_of(ann, path)
        if size >= BYTES_MAX or count.reads >= READS_MAX:
            large.append((path, size, count.reads))
    assert not large


async def size_of(reader: Reader, path: str) -> int:
    answer = await reader.client.get(f"/console{path}")
    assert answer.status_code == 200, (path, answer.text[:500])
    return len(answer.content)
