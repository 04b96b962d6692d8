"""All sessions of the cortex itself, as they grow: whatever was started by a conversation."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from tests.support.stack import Stack
from vigil.bus.bus import Bus
from vigil.contracts import Control, Start, State, Turn, decode_event, decode_turn
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey

T = TypeVar("T")


class Tree:
    """What is in the stream SYSTEM, by session."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.turns: dict[SessionKey, list[Turn]] = defaultdict(list)
        self.starts: dict[SessionKey, list[Start]] = defaultdict(list)
        self._grown = asyncio.Event()
        self._task = asyncio.create_task(self._follow())

    @classmethod
    async def watch(cls, stack: Stack) -> Tree:
        return cls(await stack.bus("admin"))

    async def _follow(self) -> None:
        follower = await self._bus.follow("SYSTEM", ["system.>"], 1)
        async for message in follower:
            key = SessionKey.of_subject(message.subject)
            with contextlib.suppress(InvalidInput):
                if key.is_turn(message.subject):
                    self.turns[key].append(decode_turn(message.data))
                elif message.subject == key.in_event("control"):
                    event = decode_event(message.data)
                    if isinstance(event, Control) and event.payload.start is not None:
                        self.starts[key].append(event.payload.start)
            self._grown.set()

    def of_kind(self, kind: str) -> list[SessionKey]:
        return sorted(key for key in self.turns if key.kind == kind)

    def state(self, key: SessionKey) -> State:
        return self.turns[key][-1].state

    def are_over(self, kind: str, count: int) -> bool:
        """Whether so many sessions of a kind began, and all of them ended."""
        keys = self.of_kind(kind)
        return len(keys) == count and all(self.state(key).loop is None for key in keys)

    async def until(self, condition: Callable[[], T], patience_s: float = 20.0) -> T:
        """Wait until `condition` of what is known is true."""
        try:
            async with asyncio.timeout(patience_s):
                while not (result := condition()):
                    self._grown.clear()
                    await self._grown.wait()
                return result
        except TimeoutError:
            shown = {str(key): [t.outcome for t in turns] for key, turns in self.turns.items()}
            raise AssertionError(f"still not so: {shown}") from None
