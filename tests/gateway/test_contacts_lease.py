"""Who refreshes lists of contacts holds the lease for it while there is something to refresh."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final

import pytest

from services.gateway.contacts.refresher import LEASE, ContactRefresher
from tests.support.pauses import pauses
from tests.support.stack import Stack
from vigil.background.end import end_tasks
from vigil.bus import lease
from vigil.bus.lease import Leases
from vigil.contacts import kept
from vigil.contacts.record import ContactList

WAIT_S: Final = 20.0


async def test_where_no_list_is_left_the_lease_is_given_back(
    bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored of a list that is configured no more is removed, once; then nothing wakes."""
    monkeypatch.setattr(lease, "STANDBY_S", 0.01)
    bus = await bare.bus("gateway")
    await kept.store(bus, ContactList(user="ann", source="gone", at=datetime.now(UTC)))
    config = SimpleNamespace(contacts={}, nats=SimpleNamespace(replicas=1))
    context: Any = SimpleNamespace(
        bus=bus, instance="one", facts={}, warnings={}, settings=SimpleNamespace(config=config)
    )
    edge: Any = SimpleNamespace(bus=bus, context=context)
    other = Leases(bus, "two")
    running = asyncio.create_task(ContactRefresher(edge).run())
    try:
        async with asyncio.timeout(WAIT_S):
            pause_s = pauses()
            while await kept.all_lists(bus):
                await asyncio.sleep(next(pause_s))
            while (taken := await other.acquire(LEASE)) is None:
                await asyncio.sleep(next(pause_s))
        await taken.release()
        assert context.facts == {}
    finally:
        await end_tasks(running)
