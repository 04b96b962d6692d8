"""Entries of buckets, while somebody else writes the same one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import pytest
from msgspec.structs import replace

from tests.support.races import overtake
from tests.support.stack import Stack
from vigil.bus.kv import KeyValue
from vigil.contracts import HeldTool, decode_pins
from vigil.marks import agent_pause, thread_mark
from vigil.marks.agent_pause import AgentPauses
from vigil.subjects import Scope, SessionKey
from vigil.teams import TEAM
from vigil.trust import pins

NOW: Final = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
ANN: Final = Scope("vigil", "ann")


async def test_of_two_who_switch_an_agent_at_once_all_go_by_the_same(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-5: a replica that ran went by the later moment, one that began afterwards by the other."""
    bus, other = await bare.bus("admin"), await bare.bus("admin")
    put = partial(agent_pause.put, agent="vigil", owner=None, by="root")
    ran, began = AgentPauses(), AgentPauses()
    watch = await KeyValue(other, agent_pause.BUCKET).watch(ran.take)
    later = partial(put, other, is_on=False, at=NOW + timedelta(seconds=1))
    overtake(monkeypatch, bus, later)
    await put(bus, is_on=True, at=NOW)
    for pauses in (ran, began):
        await agent_pause.refresh(bus, pauses, ANN)
    assert (ran.of(ANN) is None) == (began.of(ANN) is None)
    assert ran.changed_at(ANN) == began.changed_at(ANN) > NOW + timedelta(seconds=1)
    await watch.close()


async def test_nobody_who_is_erased_is_named_by_what_went_on_meanwhile(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8: a deletion that goes on writes its mark anew, and a switch may be set once more."""
    bus, other = await bare.bus("admin"), await bare.bus("admin")
    key = SessionKey(TEAM, "vigil", "t1")
    mark = await thread_mark.begin(bus, key, by="ann", now=NOW)
    went_on = replace(mark, parts=(str(key.of_kind("worker", "w1")),))
    overtake(monkeypatch, bus, lambda: thread_mark.put(other, went_on))
    await thread_mark.forget(bus, "ann")
    assert await thread_mark.find(bus, key) == replace(went_on, by="somebody erased")

    put = partial(agent_pause.put, agent="vigil", owner=None, by="ann")
    await put(bus, is_on=True, at=NOW)
    overtake(monkeypatch, bus, lambda: put(other, is_on=False, at=NOW))
    await agent_pause.forget(bus, "ann")
    stored = await KeyValue(bus, agent_pause.BUCKET).get(agent_pause.key_of("vigil", None))
    assert stored is not None
    assert b"somebody erased" in stored.value
    assert b'"is_on":false' in stored.value


async def test_tools_that_two_approve_at_once_are_approved(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `vigil mcp approve` one of the two was refused, and had to say it again."""
    bus, other = await bare.bus("admin"), await bare.bus("admin")
    tools = [HeldTool(name=f"files__{name}", digest=name, pinned="") for name in ("read", "move")]
    for mine, theirs in (tools, reversed(tools)):
        overtake(monkeypatch, bus, partial(pins.approve, other, "files", [theirs], NOW))
        await pins.approve(bus, "files", [mine], NOW)
        stored = await KeyValue(bus, pins.BUCKET).get("files")
        assert stored is not None
        assert decode_pins(stored.value).tools.keys() == {one.name for one in tools}
        await KeyValue(bus, pins.BUCKET).delete("files")
