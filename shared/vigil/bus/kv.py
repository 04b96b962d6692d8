"""Key-value buckets: small shared state with compare-and-set, read from the leader.

The layout is the standard one of NATS (ADR-8), so the usual tools can look into a bucket.
nats-py's own class reads from any replica and hides which write lost; policy state needs both.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import structlog

from ..background.end import end_tasks
from ..errors import Unavailable, WrongLastSequence
from .bus import Bus, Follower

log = structlog.get_logger("vigil.kv")

_OPERATION: Final = "KV-Operation"
RACES_MAX: Final = 20
"""Writes of others that may come between a read and a write."""


class KeyEntry:
    """A value and its revision."""

    __slots__ = ("revision", "value")

    def __init__(self, value: bytes, revision: int) -> None:
        self.value = value
        self.revision = revision


class KeyValue:
    """One bucket. Keys are made of checked parts and hashes, joined by dots."""

    def __init__(self, bus: Bus, name: str) -> None:
        self._bus = bus
        self._stream = f"KV_{name}"
        self._prefix = f"$KV.{name}."

    async def get(self, key: str) -> KeyEntry | None:
        """Return the entry, or None if there is none or it was deleted."""
        message = await self._bus.get_last(self._stream, self._prefix + key)
        if message is None or _OPERATION in message.headers:
            return None
        return KeyEntry(message.data, message.seq)

    async def last(self, key: str) -> tuple[bytes | None, int]:
        """Return the value, None if there is none, and what a write of it must expect."""
        message = await self._bus.get_last(self._stream, self._prefix + key)
        if message is None:
            return None, 0
        return None if _OPERATION in message.headers else message.data, message.seq

    async def put(
        self, key: str, value: bytes, *, expect: int | None = None, timeout: float = 5.0
    ) -> int:
        """Write; with `expect`, only if that is the revision. Returns the new revision.

        `timeout` is in seconds, until the outcome counts as unknown.

        Raises:
            WrongLastSequence: another write came first.
            OutcomeUnknown: read back before repeating.
        """
        ack = await self._bus.publish(self._prefix + key, value, expect=expect, timeout=timeout)
        return ack.seq

    async def revise(self, key: str, revised: Callable[[bytes | None], bytes]) -> bytes:
        """Store what a value becomes, whatever comes between; return what is there then.

        Args:
            revised: what it becomes of what it is; the same: nothing is stored.

        Raises:
            Unavailable: no answer from the broker, or others were always faster.
        """
        for _ in range(RACES_MAX):
            before, revision = await self.last(key)
            value = revised(before)
            if value == before:
                return value
            with contextlib.suppress(WrongLastSequence):
                await self.put(key, value, expect=revision)
                return value
        raise Unavailable(f"{key}: lost {RACES_MAX} races in a row")

    async def create(self, key: str, value: bytes) -> int:
        """Write if there is no entry, or a deleted one. Returns the revision.

        Raises:
            WrongLastSequence: there is one.
            OutcomeUnknown: read back before repeating.
        """
        message = await self._bus.get_last(self._stream, self._prefix + key)
        expect = message.seq if message is not None and _OPERATION in message.headers else 0
        return await self.put(key, value, expect=expect)

    async def delete(self, key: str, *, expect: int | None = None) -> None:
        """Delete; with `expect`, only if that is the revision. Raises: WrongLastSequence."""
        headers = {_OPERATION: "DEL"}
        await self._bus.publish(self._prefix + key, b"", headers, expect=expect)

    async def watch(self, on_change: Callable[[str, bytes | None], None]) -> Watch:
        """Call `on_change(key, value or None)` for every entry now, and for each change.

        Returns once what is stored now has been reported.
        """
        follower = await self._bus.follow(self._stream, [f"{self._prefix}>"], 0)
        seen = asyncio.Event()
        if follower.waiting == 0:
            seen.set()

        async def run() -> None:
            async for message in follower:
                value = None if _OPERATION in message.headers else message.data
                try:
                    on_change(message.subject.removeprefix(self._prefix), value)
                except Exception as error:
                    log.error("entry not usable", action="kv.watch", error=repr(error))
                if message.pending == 0:
                    seen.set()

        task = asyncio.create_task(run(), name=f"watch-{self._stream}")
        await seen.wait()
        return Watch(task, follower)


class Watch:
    """A running watch; close it."""

    def __init__(self, task: asyncio.Task[None], follower: Follower) -> None:
        self._task = task
        self._follower = follower

    async def close(self) -> None:
        await end_tasks(self._task)
        await self._follower.close()
