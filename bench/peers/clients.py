"""What the peers' programs share: sessions that speak in turn, begun at a word, and their figures.

A program says ``ready`` once each session is open, begins when it's given a line, and prints one
JSON object. Instants are of the monotonic clock, which the processes of a machine share.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

Answer = Callable[[str, int], Awaitable[None]]
"""Takes the message of a session with that number, and returns when the answer is stored."""


class Load(NamedTuple):
    """What one process of a peer does."""

    database: str
    """A path, or a URL of Postgres."""
    first: int
    """The number of its first session: processes share a database."""
    sessions: int
    messages: int
    in_flight: int
    """How many messages it answers at once, at most."""
    variant: str
    """How durable, in the peer's own terms."""


def load_of(arguments: list[str]) -> Load:
    """Read a load from the command line, in the order of its fields."""
    database, first, sessions, messages, in_flight, variant = arguments
    return Load(database, int(first), int(sessions), int(messages), int(in_flight), variant)


async def run(load: Load, answer: Answer) -> None:
    """Let the sessions speak, each when it has the answer to what it said before."""
    slots = asyncio.Semaphore(load.in_flight)
    late_ms: list[float] = []

    async def speak(session: int, begin: int, end: int) -> None:
        for number in range(begin, end):
            begun_at = time.monotonic()
            async with slots:
                await answer(f"session-{session}", number)
            late_ms.append((time.monotonic() - begun_at) * 1000)

    async def speak_all(begin: int, end: int) -> None:
        sessions = range(load.first, load.first + load.sessions)
        await asyncio.gather(*(speak(session, begin, end) for session in sessions))

    # The first message opens a session; what is measured is a conversation.
    await speak_all(0, 1)
    late_ms.clear()
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    begun_at = time.monotonic()
    await speak_all(1, load.messages + 1)
    ended_at = time.monotonic()
    print(json.dumps({"begun_at": begun_at, "ended_at": ended_at, "late_ms": late_ms}))
