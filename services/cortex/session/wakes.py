"""The wake that a session holds: the promise that somebody looks at its newest event."""

from __future__ import annotations

from collections.abc import Callable

from vigil import crash
from vigil.bus.bus import Bus, Message
from vigil.contracts import State
from vigil.subjects import SessionKey

from .. import core


class Wakes:
    """Holds the newest wake of one session until nothing is owed for it."""

    def __init__(
        self,
        bus: Bus,
        key: SessionKey,
        state: Callable[[], State],
        on_rest: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            state: gives that of the session as it is when it is called.
            on_rest: called when no wake is held any more.
        """
        self._bus = bus
        self._key = key
        self._state = state
        self._on_rest = on_rest
        self.held: Message | None = None

    async def hold(self, wake: Message) -> None:
        """Hold the newest wake; older ones are acked, since a newer event's wake follows."""
        held = self.held
        if held is not None and held.seq > wake.seq:
            await self._bus.ack(wake)
            return
        if held is not None and held.seq < wake.seq:
            await self._bus.ack(held)
        self.held = wake
        await self.settle()

    async def settle(self) -> None:
        """Acknowledge the wake if its event is folded and nothing is owed."""
        wake, state = self.held, self._state()
        if wake is None or state.position < wake.seq or core.owes(state):
            return
        self.held = None
        self._on_rest()
        crash.point("cortex.wake.before_ack")
        await self._bus.ack(wake)

    async def drop_empty(self) -> None:
        """Acknowledge the wake of an event that is gone: erased, or too old to be kept."""
        wake = self.held
        if wake is None or await self._bus.get_of(self._key, wake.seq) is not None:
            return
        if self.held is wake:
            self.held = None
            self._on_rest()
            await self._bus.ack(wake)
