"""When the leases of many open sessions are renewed (SPEC S-1)."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from services.cortex.session import engine
from tests.support.scripted_model import ScriptedModel
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.bus.lease import Lease

OF_A_PART = 3


@pytest.mark.usefixtures("halved_times")
async def test_leases_are_renewed_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 at one moment were late, and thousands of sessions closed: now a tenth of them at a
    time, and each once in a round."""
    ScriptedModel().install(monkeypatch)
    part, renewed = 0, defaultdict[str, list[int]](list)
    pause, renew = engine.pause, Lease.renew

    async def counted(seconds: float) -> None:
        nonlocal part
        part += 1
        await pause(seconds)

    async def noted(self: Lease) -> None:
        renewed[self._key].append(part)
        await renew(self)

    monkeypatch.setattr(engine, "pause", counted)
    monkeypatch.setattr(Lease, "renew", noted)
    open_for = {"sessions": {"idle_release_s": 120.0}}
    async with running_stack(tmp_path, services=("cortex",), **open_for) as stack:
        names = [f"user{number}:vigil:t" for number in range(OF_A_PART * engine.PARTS)]
        talks = [await Talk.open(stack, name) for name in names]
        await asyncio.gather(*[talk.ended(await talk.say("hello")) for talk in talks])
        keys = [talk.key.kv_key for talk in talks]
        async with asyncio.timeout(60):
            while not all(len(renewed[key]) >= 3 for key in keys):
                await asyncio.sleep(0.05)
    for key in keys:  # one that takes longer than a round is left out of the next
        assert {(one - renewed[key][0]) % engine.PARTS for one in renewed[key]} == {0}
    at_once = Counter(one for key in keys for one in renewed[key])
    assert max(at_once.values()) == OF_A_PART
