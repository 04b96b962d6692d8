"""Notifications of facts that a hook told: a line at home with the next digest, without a model
(FLOW F-10).

Of rows the executor tells, as it ends their runs. An event of a hook ends nothing: so the board is
followed here. What is newest when a term begins is told then, by a name of its own, so that nothing
is told twice; of what came and went while no scheduler was there nothing is.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Final

import structlog

from vigil.board.entries import STREAM
from vigil.board.kept import FACTS, KeptBoard, Revision
from vigil.contracts import ToldEvent, ToldPayload, encode
from vigil.contracts.board import SourceFacts
from vigil.errors import WrongLastSequence
from vigil.facts.hooked import hooks_for
from vigil.facts.shown import FULL_TOLD, NamedSource, described, news_of
from vigil.observe import trace
from vigil.runtime import Context
from vigil.settings.homes import homes_of
from vigil.subjects import ANYBODY, Scope, SessionKey, board_of, token_of
from vigil.teams import TEAM
from vigil.zones.database import zone_named

from ..promotion import PauseSwitch

log = structlog.get_logger("vigil.scheduler")

WHAT: Final = "fact"
TOLD_WITHIN: Final = timedelta(days=1)
"""Nobody is notified any more of what is older."""


class HookNotifier:
    """Notifies of them, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config
        self._pause = pause
        self._board = KeptBoard(context.bus, FACTS)

    async def run(self) -> None:
        """Follow what is told, until cancelled. Raises: Unavailable, BusError."""
        follower = await self._bus.follow(STREAM, [board_of(ANYBODY, FACTS.name)], 0)
        try:
            async for message in follower:
                found = self._board.read(message)
                if found is not None and not self._pause.is_erasing(found.entity.owner):
                    await self._notify(found)
        finally:
            await follower.close()

    async def _notify(self, found: Revision[SourceFacts]) -> None:
        source, now = found.entity, self._clock.now()
        whose = Scope(source.agent, source.owner)
        hooks = hooks_for(self._config.hooks, whose)
        hook = next((one for one in hooks if one.id == source.id), None)
        if hook is None or source.newest is None or now - found.at > TOLD_WITHIN:
            return
        if source.is_full:
            text = FULL_TOLD.format(name=hook.called)
            await self._put(whose, hook, text, token_of("facts full", source.id, source.day))
        zone = zone_named(self._pause.zone_of(source.owner))
        named = [one for one in news_of(source) if one.name in hook.shapes]
        said = "; ".join(filter(None, (described(one, zone, now) for one in named)))
        if said:
            name = token_of("facts", source.id, source.newest.cause)
            await self._put(whose, hook, f"{said} ({hook.called})", name)

    async def _put(self, whose: Scope, hook: NamedSource, text: str, name: str) -> None:
        key = SessionKey(whose.owner, whose.agent, WHAT)
        payload = ToldPayload(
            origin=str(key),
            text=f"{whose.agent}: {text}" if whose.owner == TEAM else text,
            what=WHAT,
            title=hook.called,
            urgency="low",
        )
        for home in homes_of(self._config, key):
            event = ToldEvent(
                id=f"told-{name}",
                session_key=str(home),
                created_at=self._clock.now(),
                payload=payload,
            )
            with contextlib.suppress(WrongLastSequence):  # told before
                subject = home.in_event(f"told.{name}")
                await self._bus.publish(subject, encode(event), trace.new_headers(), expect=0)
