"""What somebody asked to forget stays in no prompt (SPEC C-2).

A bulletin waits for no slot then: what is known is listed at once, and once more when memory has
certainly forgotten. A text that a session is making meanwhile is thrown away (`BulletinBasis`).
All else is the timetable's (`timetable.kinds.bulletin`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import structlog

from vigil.bus.bus import Message
from vigil.contracts import decode_signal
from vigil.errors import VigilError
from vigil.observe import trace
from vigil.runtime import Context
from vigil.subjects import ANYBODY, Scope, signals_of

from ..promotion import PauseSwitch
from ..warmth import WarmGate
from .store import BulletinStore

log = structlog.get_logger("vigil.scheduler")

STREAM: Final = "SIGNALS"
REASONS: Final = ("asked", "undone")
"""Of what is forgotten because a person wants it so; what decayed is nobody's secret."""
AGAIN: Final = timedelta(seconds=30)
"""Memory may be a moment behind its log, or away."""
POLL_S: Final = 5.0


class ForgottenBy(NamedTuple):
    """Whose bulletin is to be listed anew."""

    due_at: datetime
    at: datetime | None = None
    """By then memory has certainly forgotten what was asked for; None: nothing was."""


class ForgetfulKeeper:
    """Lists bulletins anew of which something was forgotten, for one term."""

    def __init__(self, context: Context, pause: PauseSwitch, gate: WarmGate) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._pause = pause
        self._gate = gate
        self._shown = context.settings.config.bulletin
        self._store = BulletinStore(context.bus)
        self._due: dict[Scope, ForgottenBy] = {}

    async def run(self) -> None:
        """Do so until cancelled. Raises: Unavailable, BusError."""
        await self._gate.opened.wait()
        where = signals_of(ANYBODY.owner, kind="memory.forgotten")
        follower = await self._bus.follow(STREAM, [where], 1)  # what no scheduler saw, too
        try:
            while True:
                message = await follower.next_within(POLL_S)
                if message is not None:
                    await self._take(message)
                await self._list_due()
        finally:
            await follower.close()

    async def _take(self, message: Message) -> None:
        """List what is known of a person, if their bulletin is older than what they forgot."""
        _, agent, owner, *_ = message.subject.split(".")
        whose = Scope(agent, owner)
        now, by = self._clock.now(), None
        try:
            signal = decode_signal(message.data)
            if signal.data.get("reason") not in REASONS:
                return
            by = signal.at + AGAIN
            there = await self._store.find(whose)
        except VigilError as error:
            log.info("not now", action="scheduler.bulletin", owner=owner, error=str(error))
            self._due[whose] = ForgottenBy(now, by)
            return
        if there is None:
            return
        if there.made_at <= by or there.shown_since is None or there.shown_since < by:
            await self._list(whose, by)
            self._due[whose] = ForgottenBy(now + AGAIN, by)

    async def _list_due(self) -> None:
        now = self._clock.now()
        for whose, forgotten in [one for one in self._due.items() if one[1].due_at <= now]:
            if await self._list(whose, forgotten.at):
                del self._due[whose]
            else:
                self._due[whose] = forgotten._replace(due_at=now + AGAIN)

    async def _list(self, whose: Scope, by: datetime | None) -> bool:
        """List what is known of a person; whether that could be done.

        Args:
            by: when memory has forgotten what was asked for, at the latest.
        """
        if self._pause.is_erasing(whose.owner):
            return True
        trace.current.set(trace.new())
        try:
            if await self._store.find(whose) is None:
                return True  # erased meanwhile
            now = self._clock.now()
            await self._store.bring_up(whose, now, self._shown, keeps_text=False, forgotten_at=by)
        except VigilError as error:
            log.info("not now", action="scheduler.bulletin", owner=whose.owner, error=str(error))
            return False
        return True
