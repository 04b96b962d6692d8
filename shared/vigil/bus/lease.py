"""Leases: who works on what, for as long as they keep saying so.

A lease only saves work. What makes the work correct is the compare-and-set at the commit: two
holders at once are possible (a process that slept through its lease), and harmless.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NoReturn

from ..background.end import end_tasks
from ..clock import until_next
from ..errors import LeaseLost, OutcomeUnknown, VigilError, WrongLastSequence
from ..topology import LEASE_RENEW_S, LEASE_TTL_S
from .buckets import create_bucket
from .bus import Bus, BusError
from .kv import KeyValue
from .replies import ERR_STREAM_NOT_FOUND

RENEW_S: Final = LEASE_RENEW_S
TTL_S: Final = LEASE_TTL_S
RENEW_TIMEOUT_S: Final = TTL_S - RENEW_S - 0.5
"""Without an answer until then, the lease may be somebody else's before we know."""
RELEASE_TIMEOUT_S: Final = 1.0
"""Nobody who ends waits longer for a broker that doesn't answer: the lease runs out by itself."""
BUCKET: Final = "LEASES"
STANDBY_S: Final = 1.0
"""How often it's looked whether a lease is free."""


class Lease:
    """A held lease. Renew every `RENEW_S`; when that fails, stop at once."""

    def __init__(self, bucket: KeyValue, key: str, holder: bytes, revision: int) -> None:
        self._bucket = bucket
        self._key = key
        self._holder = holder
        self._revision = revision

    async def renew(self) -> None:
        """Extend it by `TTL_S` seconds.

        Raises:
            LeaseLost: it ran out, somebody else has it, or nobody can tell.
        """
        try:
            self._revision = await self._bucket.put(self._key, self._holder, expect=self._revision)
        except (WrongLastSequence, OutcomeUnknown) as error:
            raise LeaseLost(self._key) from error

    async def held(
        self,
        work: Coroutine[Any, Any, None],
        *,
        name: str,
        on_renewed: Callable[[], None] = lambda: None,
    ) -> None:
        """Do a work until it ends or the lease is lost, and give the lease back then. What fails in
        the work is raised.

        Args:
            name: of the tasks that do it.
            on_renewed: called each time that it was extended.

        Raises:
            RuntimeError: the work cancelled itself. A cancellation that is raised is the caller's
                own: who catches errors to go on would end, and nobody would know.
        """
        both = {
            asyncio.create_task(work, name=name),
            asyncio.create_task(self._keep(on_renewed), name=f"{name}-lease"),
        }
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.cancelled():
                    raise RuntimeError(f"{task.get_name()} was cancelled from within")
                task.result()
        finally:
            await end_tasks(*both)
            await self.give_back()

    async def _keep(self, on_renewed: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(until_next(RENEW_S, loop.time()))
            try:
                async with asyncio.timeout(RENEW_TIMEOUT_S):
                    await self.renew()
            except (LeaseLost, TimeoutError):
                return
            on_renewed()

    async def give_back(self) -> None:
        """Release it if the broker answers within `RELEASE_TIMEOUT_S`."""
        with contextlib.suppress(VigilError, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT_S):
                await self.release()

    async def release(self) -> None:
        """Give it back, if it is still ours."""
        try:
            await self._bucket.delete(self._key, expect=self._revision)
        except (WrongLastSequence, OutcomeUnknown):
            return


class Leases:
    """The bucket LEASES, for one holder. Its entries expire by the bucket's own ttl."""

    def __init__(self, bus: Bus, holder: str, *, replicas: int = 1) -> None:
        self._bus = bus
        self._replicas = replicas
        self._bucket = KeyValue(bus, BUCKET)
        self._holder = holder.encode()

    async def acquire(self, key: str) -> Lease | None:
        """Take the lease, or return None if it is live elsewhere.

        Whoever is cancelled meanwhile leaves none behind, which others would wait for.

        Raises:
            OutcomeUnknown: nobody can tell; if it was taken, it expires by itself.
        """
        taking = asyncio.create_task(self._take(key), name=f"lease-{key}")
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            with contextlib.suppress(VigilError, TimeoutError):
                async with asyncio.timeout(RELEASE_TIMEOUT_S):
                    if (lease := await taking) is not None:
                        await lease.release()
            raise

    async def _take(self, key: str) -> Lease | None:
        try:
            revision = await self._create(key)
        except WrongLastSequence:
            return None
        return Lease(self._bucket, key, self._holder, revision)

    async def _create(self, key: str) -> int:
        try:
            return await self._bucket.create(key, self._holder)
        except BusError as error:
            if error.code != ERR_STREAM_NOT_FOUND:
                raise
        # It is kept in memory: a broker of its own that was restarted has lost it, and nobody
        # but the embedded broker's watch provisions again.
        await create_bucket(self._bus, BUCKET, replicas=self._replicas)
        return await self._bucket.create(key, self._holder)

    async def whenever_free(
        self,
        key: str,
        work: Callable[[Lease], Awaitable[None]],
        on_failure: Callable[[Exception], None],
    ) -> NoReturn:
        """Do a work each time that the lease is free, until cancelled.

        Args:
            work: it holds the lease (`Lease.held`).
            on_failure: told what ended it; whatever that is ends nothing else of the replica.
        """
        while True:
            try:
                lease = await self.acquire(key)
                if lease is not None:
                    await work(lease)
            except Exception as error:
                on_failure(error)
            await asyncio.sleep(STANDBY_S)

    async def is_live(self, key: str) -> bool:
        """Return whether somebody holds it now."""
        return await self._bucket.get(key) is not None
