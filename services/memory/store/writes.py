"""Writing to MEMORIES: repeated until the broker has said whether it is stored.

Every record carries an id that the broker compares for two minutes, so a repeat after an answer
that never came stores nothing twice; a repeat that comes later is none in the fold. Nothing
counts as saved before the broker's answer.
"""

from __future__ import annotations

import asyncio
from typing import Final

from vigil.backoff import Backoff
from vigil.bus.bus import Ack, Bus
from vigil.contracts import MemoryRecord, encode
from vigil.observe import trace
from vigil.subjects import MEMORIES_ALL, Scope
from vigil.worker.patience import Patience

from ..config import Limits

STREAM: Final = "MEMORIES"
_PAUSE_S: Final = 0.05


class Log:
    """The log of one replica, and how far it was told it goes."""

    def __init__(self, bus: Bus, limits: Limits) -> None:
        self._bus = bus
        self._limits = limits
        self.told = 0
        """The last sequence that the broker told this replica of."""

    def begin_anew(self) -> None:
        """Forget how far it goes: the broker has another one, whose sequences are its own."""
        self.told = 0

    async def write(self, record: MemoryRecord, *, timeout_s: float = 0.0) -> Ack:
        """Store a record; a repeat of one with the same id stores nothing.

        Raises:
            OutcomeUnknown: no answer in time; it may be stored.
            Unavailable: the broker is away.
            BusError: it was refused.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (timeout_s or self._limits.write_timeout_s)
        subject = Scope(record.agent, record.owner).record(op_of(record))
        data = encode(record)
        headers = {trace.HEADER: trace.passed_on(trace.current.get())}

        async def publish() -> Ack:
            left_s = min(deadline - loop.time(), self._limits.write_try_s)
            return await self._bus.publish(
                subject, data, headers, msg_id=record.id, timeout=max(left_s, _PAUSE_S)
            )

        patience = Patience(
            "memory.write_again",
            Backoff(_PAUSE_S, _PAUSE_S),
            is_over=lambda: loop.time() + _PAUSE_S >= deadline,
            id=record.id,
        )
        ack = await patience.run(publish)
        self.told = max(self.told, ack.seq)
        return ack

    async def newest(self, scope: Scope | None = None) -> int:
        """Return the sequence of the newest record, of a scope or of all; 0: there is none.

        Raises:
            Unavailable: the broker does not answer.
        """
        subject = MEMORIES_ALL if scope is None else scope.everything
        found = await self._bus.get_last(STREAM, subject)
        return 0 if found is None else found.seq


def op_of(record: MemoryRecord) -> str:
    """Return the operation, which is the last token of the record's subject."""
    return str(record.__struct_config__.tag)
