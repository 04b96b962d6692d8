"""What a page asks the broker for: each list once, and of a conversation only what may be new."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from tests.support.console import signed_in
from tests.support.gateway import Gate
from vigil.bus.bus import Bus
from vigil.contracts import SlotEntry
from vigil.subjects import Scope, SessionKey
from vigil.timetable.known_slots import KEPT_S, KNOWN_MAX, KnownSlots
from vigil.timetable.log import Placed, SlotLog

ROW: Final = {"name": "Weekly", "prompt": "Look", "interval_s": 3600}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what is asked of the broker, by subject and filter."""
    counts: Counter[str] = Counter()
    follow, subjects, get = Bus.follow, Bus.subjects, Bus._get

    async def followed(self: Bus, stream: str, filters: Any, *rest: Any, **more: Any) -> Any:
        counts[f"follow {stream} {' '.join(filters)}"] += 1
        return await follow(self, stream, filters, *rest, **more)

    async def listed(self: Bus, stream: str, wanted: str) -> dict[str, int]:
        counts["subjects"] += 1
        return await subjects(self, stream, wanted)

    async def got(self: Bus, stream: str, request: dict[str, Any]) -> Any:
        counts[f"get {stream}"] += 1
        return await get(self, stream, request)

    monkeypatch.setattr(Bus, "_get", got)
    monkeypatch.setattr(Bus, "follow", followed)
    monkeypatch.setattr(Bus, "subjects", listed)
    return counts


async def test_a_look_at_today_reads_each_list_once(gate: Gate, asked: Counter[str]) -> None:
    """Rows, which four of its parts need, stood in four readings of the board; tasks in two."""
    ann = await signed_in(gate, "ann")
    api = await gate.person("ann")
    assert (await api.post("/api/cron", json=ROW)).status_code == 201
    assert (await api.post("/api/tasks", json={"title": "Buy seeds"})).status_code == 201
    await ann.page()
    asked.clear()
    assert "Weekly" in (await ann.page()).text
    boards = {one: count for one, count in asked.items() if one.startswith("follow BOARD")}
    assert {one for one in boards if ".row." in one or ".task." in one}
    assert set(boards.values()) == {1}, boards
    # What is changed by a form is shown by the page that the form leads to.
    assert "Buy basil" not in (await ann.page()).text
    await api.post("/api/cron", json=ROW | {"name": "Buy basil"})
    assert "Buy basil" in (await ann.page()).text


async def test_a_conversation_is_read_again_once_somebody_writes(
    gate: Gate, asked: Counter[str]
) -> None:
    api = await gate.person("ann")
    for thread in "abc":
        path = f"/api/sessions/ann:vigil:{thread}/messages"
        await api.post(path, json={"text": f"About {thread}"})

    async def listed() -> dict[str, tuple[str, int]]:
        asked.clear()
        found = (await api.get("/api/sessions", params={"order": "newest"})).json()["sessions"]
        return {
            one["session_key"].rpartition(":")[2]: (one["title"], one["messages"]) for one in found
        }

    first = await listed()
    # One each, and twice at first: in which of theirs nobody wrote.
    assert (first["a"], asked["subjects"]) == (("About a", 1), 5)
    assert (await listed(), asked["subjects"]) == (first, 0)
    await gate.say("ann:vigil:b", "Well", effect_id="e1")
    await api.post("/api/sessions/ann:vigil:a/messages", json={"text": "More"})
    assert (await listed())["a"] == ("About a", 2)
    assert asked["subjects"] == 1

    # Of one in which nobody wrote since, only what was said last is asked; of one that is gone and
    # was known, that it is.
    for thread in "ac":
        await gate.say(f"ann:vigil:{thread}", "Well", effect_id=f"e{thread}")
    before = await listed()
    assert [one for one in asked.items() if "SESSIONS" in one[0] and one[0].startswith("get")] == [
        ("get SESSIONS", 3)
    ]
    gone = SessionKey("ann", "vigil", "a")
    stream, (subjects,) = await gate.admin.locate(gone.stream, [gone.everything])
    await gate.admin.api(f"STREAM.PURGE.{stream}", {"filter": subjects})
    assert await listed() == {key: one for key, one in before.items() if key != "a"}


async def test_an_entry_of_the_ledger_is_asked_once(gate: Gate, asked: Counter[str]) -> None:
    """Each is a question to the broker that waits for the one before, and a page shows twenty."""
    api = await gate.person("ann")
    row = (await api.post("/api/cron", json=ROW)).json()["id"]
    whose, log, start = Scope("vigil", "ann"), SlotLog(gate.admin), datetime.now(UTC)
    last = await log.last(whose, row)

    async def add(number: int) -> Placed:
        at = start + timedelta(seconds=number)
        entry = SlotEntry(row=row, due_at=at, at=at, state="failed", reason=f"{number}")
        return await log.append(whose, last, entry)

    for number in range(9):
        last = await add(number)
    asked.clear()

    async def shown() -> list[str]:
        asked.clear()
        return [one["reason"] for one in (await api.get("/api/slots")).json()["slots"]]

    whole = [*map(str, reversed(range(9)))]
    assert (await shown(), asked["get SLOTS"]) == (whole, 9)
    assert (await shown(), asked["get SLOTS"]) == (whole, 1)
    last = await add(9)
    assert (await shown(), asked["get SLOTS"]) == (["9", *whole], 2)


def test_what_was_read_of_the_ledger_is_forgotten_after_a_while() -> None:
    """It may be gone from the log meanwhile, and there is only so much room."""
    now = 5.0
    known, entry = (
        KnownSlots(lambda: now),
        SlotEntry(row="a" * 32, due_at=datetime.now(UTC), at=datetime.now(UTC), state="failed"),
    )
    for seq in range(KNOWN_MAX + 1):
        known.keep("slots.a", seq, entry)
    assert known.find("slots.a", 0) is None
    assert known.find("slots.a", 1) is entry
    assert known.find("slots.b", 1) is None
    now += KEPT_S
    assert known.find("slots.a", 1) is None
