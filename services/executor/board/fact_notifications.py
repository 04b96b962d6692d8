"""Notifications of facts that changed: with the digest, and to the mind, in a line and without a
model (FLOW F-10).

A line is made of what its row named and of values out of closed sets, so it is told unmarked. Who
was just told the result isn't told its facts again: they stand on that.
"""

from __future__ import annotations

from typing import Final

from vigil.contracts import SlotRun, ToldPayload
from vigil.contracts.board import SourceFacts
from vigil.facts import shown
from vigil.minds import mind_of
from vigil.runtime import Context
from vigil.settings import own
from vigil.settings.switches import has_mind
from vigil.subjects import SessionKey, token_of
from vigil.zones.database import zone_named

from .. import work
from .receivers import homes_for, put

WHAT: Final = "fact"


class FactNotifier:
    """Notifies of facts that changed."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config

    async def notify(
        self,
        key: SessionKey,
        cause: str,
        slot: SlotRun,
        known: SourceFacts,
        *,
        is_told: bool,
    ) -> None:
        """Notify of what is another than before; may be repeated.

        Args:
            cause: what brought the facts, by its id.
            is_told: whether the run's result is told.

        Raises:
            InvalidInput: its target is somebody else's.
            Unavailable: try again later.
        """
        homes, mind = homes_for(self._config, key, slot), mind_of(key.scope)
        changed = shown.news_of(known)
        if known.is_full:
            payload = self._payload(key, slot, shown.FULL_TOLD.format(name=slot.name))
            await self._put(homes, token_of("facts full", slot.row, known.day), payload)
        if not changed:
            return
        configured = self._config.person_of(key.user)
        zone = zone_named((await own.standing(self._bus, key.user, configured)).timezone)
        said = (shown.described(one, zone, self._clock.now()) for one in changed)
        payload = self._payload(key, slot, f"{'; '.join(filter(None, said))} ({slot.name})")
        whom = () if is_told else homes
        if has_mind(self._config, key.agent) and mind not in whom and mind != key:
            whom += (mind,)
        await self._put(whom, f"{cause}-facts", payload)

    def _payload(self, key: SessionKey, slot: SlotRun, text: str) -> ToldPayload:
        return ToldPayload(
            origin=str(key),
            text=text,
            what=WHAT,
            title=slot.name,
            urgency="low",
            is_ordered=slot.is_ordered,
        )

    async def _put(self, whom: tuple[SessionKey, ...], name: str, payload: ToldPayload) -> None:
        for home in whom:
            await put(
                self._bus, work.notification_of(home, name, payload, now=self._clock.now()), name
            )
