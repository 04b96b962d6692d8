"""What a page asks the broker for: each list once, and of a conversation only what may be new."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest

from tests.support.console import signed_in
from tests.support.gateway import Gate
from vigil.bus.bus import Bus

ROW: Final = {"name": "Weekly", "prompt": "Look", "interval_s": 3600}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what is asked of the broker, by subject and filter."""
    counts: Counter[str] = Counter()
    follow, subjects = Bus.follow, Bus.subjects

    async def followed(self: Bus, stream: str, filters: Any, *rest: Any, **more: Any) -> Any:
        counts[f"follow {stream} {' '.join(filters)}"] += 1
        return await follow(self, stream, filters, *rest, **more)

    async def listed(self: Bus, stream: str, wanted: str) -> dict[str, int]:
        counts["subjects"] += 1
        return await subjects(self, stream, wanted)

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
    assert (first["a"], asked["subjects"]) == (("About a", 1), 3)
    assert (await listed(), asked["subjects"]) == (first, 0)
    await gate.say("ann:vigil:b", "Well", effect_id="e1")
    await api.post("/api/sessions/ann:vigil:a/messages", json={"text": "More"})
    assert (await listed())["a"] == ("About a", 2)
    assert asked["subjects"] == 1
