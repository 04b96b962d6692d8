"""Being known to be alive, and judging whether others are, by leases that each holds for itself.

The bucket of the leases is kept in memory, and expires what isn't renewed. So a replica without a
lease may be dead; may be paused, or cut off, and come back; or the broker has forgotten all of
them. Whoever is about to act because another one is gone has to tell the last case from the others:
its own lease must have been held without a break for longer than the others need to say again that
they live.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from vigil.bus.bus import BusError
from vigil.bus.lease import RENEW_S, TTL_S, Lease, Leases
from vigil.clock import Clock, until_next
from vigil.errors import LeaseLost, OutcomeUnknown, Unavailable

log = structlog.get_logger("vigil.presence")

AGAIN_S: Final = 0.25
JUDGE_AFTER_S: Final = 3 * RENEW_S
"""How long a lease is held before its holder may say of others that they are gone."""


class Presence:
    """The lease of one replica, for as long as it lives."""

    def __init__(self, leases: Leases, service: str, instance: str, clock: Clock) -> None:
        self._leases = leases
        self._service = service
        self._key = f"{service}.{instance}"
        self._clock = clock
        self._lease: Lease | None = None
        self._renewed_at = self._held_since = float("-inf")
        self._turn = asyncio.Lock()

    @property
    def is_sure(self) -> bool:
        """Whether others still see that we live: what we claim now is not taken for a dead one's.

        After a pause of the process this is False until the lease was taken anew.
        """
        return self._lease is not None and self._clock.monotonic() < self._renewed_at + TTL_S

    async def begin(self) -> None:
        """Take the lease, however long that takes."""
        while not self.is_sure:
            await self._beat()
            if not self.is_sure:
                await asyncio.sleep(AGAIN_S)

    async def run(self) -> None:
        """Keep it, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(until_next(RENEW_S, loop.time()) if self.is_sure else AGAIN_S)
            await self._beat()

    async def end(self) -> None:
        """Give it back, if it is ours."""
        async with self._turn:
            lease, self._lease = self._lease, None
            if lease is not None:
                try:
                    await lease.release()
                except (Unavailable, BusError) as error:  # then it expires
                    log.info("not released", action="presence.release", error=str(error))

    async def is_gone(self, instance: str) -> bool:
        """Return whether another replica is gone; a paused one may still come back.

        Raises:
            Unavailable: nobody can tell now.
        """
        try:
            if await self._leases.is_live(f"{self._service}.{instance}"):
                return False
        except BusError as error:
            raise Unavailable(f"the leases can't be read: {error}") from error
        # Ours was there before and is there after that look: then nothing was forgotten.
        since = self._held_since
        await self._beat()
        if not self.is_sure or since != self._held_since:
            raise Unavailable("our own lease was lost")
        if self._clock.monotonic() < since + JUDGE_AFTER_S:
            raise Unavailable("others may not have had the time to say that they live")
        return True

    async def _beat(self) -> None:
        """Renew the lease, or take it."""
        async with self._turn:
            now = self._clock.monotonic()
            try:
                if self._lease is not None:
                    await self._lease.renew()
                else:
                    self._lease = await self._leases.acquire(self._key)
                    self._held_since = now
            except (LeaseLost, OutcomeUnknown, BusError) as error:
                self._lease = None
                log.info("lease lost", action="presence.lost", key=self._key, error=str(error))
            except Unavailable as error:
                # Not sent: it's still ours, unless it has run out meanwhile.
                if now >= self._renewed_at + TTL_S:
                    self._lease = None
                log.info("lease not renewed", action="presence.renew", error=str(error))
            else:
                self._renewed_at = now
