"""Reads people's lists of contacts again and again, on one replica, and stores what changed.

By a lease, so that a server is asked once. What is stored is the same whoever reads it.
"""

from __future__ import annotations

import asyncio
from typing import Final, NoReturn

import msgspec
import structlog

from vigil.bus.lease import Lease, Leases
from vigil.contacts import kept
from vigil.contacts.record import ContactList
from vigil.contacts.section import ContactSource
from vigil.contacts.source import ContactReader, ContactsUnread
from vigil.contacts.state import FACT, OPEN, ListState
from vigil.contracts import Instant
from vigil.errors import VigilError
from vigil.observe.failures import count_failing

from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

LEASE: Final = "channel.contacts"
"""The gateway may hold leases of that form; a channel's has a hash in this place."""
AGAIN_S: Final = 5.0
"""After a list couldn't be stored."""


class ContactRefresher:
    """Refreshes all lists of an instance, while it has the lease."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        context = edge.context
        self._sources = context.settings.config.contacts
        self._leases = Leases(
            context.bus, context.instance, replicas=context.settings.config.nats.replicas
        )
        self._is_over = False
        """Whether nothing is left to refresh: there is no list, and none is stored any more."""

    async def run(self) -> NoReturn:
        """Refresh until cancelled; where nothing is left to, without the lease."""

        async def work(lease: Lease) -> None:
            try:
                await lease.held(self._refresh_all(), name="gateway-contacts")
            finally:
                self._edge.context.facts.pop(FACT, None)
                self._edge.context.warnings.pop(FACT, None)
            if self._is_over:
                await asyncio.Event().wait()

        def failed(error: Exception) -> None:
            log.warning("contacts again", action="contacts.again", error=repr(error))

        await self._leases.whenever_free(LEASE, work, failed)

    async def _refresh_all(self) -> None:
        wanted = {(one.user, name) for name, one in self._sources.items()}
        await kept.remove_others(self._edge.bus, wanted)
        if not wanted:
            self._is_over = True
            return
        self._edge.context.facts[FACT] = {}
        async with asyncio.TaskGroup() as group:
            for name, source in self._sources.items():
                group.create_task(self._refresh(name, source), name=f"contacts-{name}")
            await asyncio.Event().wait()

    async def _refresh(self, name: str, source: ContactSource) -> NoReturn:
        context = self._edge.context
        ports = tuple(self._edge.bus.broker_ports)
        reader = ContactReader(name, source, context.settings.home, context.clock, ports)
        now = ListState(state="new")
        while True:
            wait_s = source.refresh_s
            try:
                if not self._edge.switches.is_erasing(source.user):
                    found = await reader.read()
                    await self._store(found)
                    now = _state_of(found, source, context.clock.now())
            except ContactsUnread as error:
                now = msgspec.structs.replace(now, state="failing", problem=str(error))
                log.info("contacts unread", action="contacts.unread", source=name, error=str(error))
            except VigilError as error:
                wait_s = AGAIN_S
                log.info("contacts unstored", action="contacts.unstored", error=repr(error))
            self._show(name, now)
            await asyncio.sleep(wait_s)

    async def _store(self, found: ContactList) -> None:
        if await kept.store(self._edge.bus, found):
            log.info(
                "contacts changed",
                action="contacts.changed",
                source=found.source,
                people=len(found.contacts),
            )

    def _show(self, name: str, state: ListState) -> None:
        context = self._edge.context
        shown = context.facts.setdefault(FACT, {})
        shown[name] = msgspec.to_builtins(state)
        count_failing(context, FACT, "lists of contacts", self._sources)


def _state_of(found: ContactList, source: ContactSource, at: Instant) -> ListState:
    is_unsafe = found.is_open and source.is_theirs
    return ListState(
        state="read",
        read_at=at,
        problem=OPEN if is_unsafe else "",
        people=len(found.contacts),
        left_out=found.left_out,
    )
