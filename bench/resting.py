"""What it costs when nothing happens, and what a session costs while it is open or at rest."""

from __future__ import annotations

import asyncio

from bench.system import System

SETTLE_S = 5.0
WATCH_S = 20.0
SESSIONS = 1000
RELEASE_S = 10.0
"""`sessions.idle_release_s` of the default configuration."""


async def idle(system: System) -> dict[str, float]:
    """Return cpu_pct (of one core) and rss_mb of everything, services and broker."""
    await asyncio.sleep(SETTLE_S)
    begun_s = system.cpu_s()
    await asyncio.sleep(WATCH_S)
    return {
        "cpu_pct": (system.cpu_s() - begun_s) / WATCH_S * 100,
        "rss_mb": system.rss_mb(),
    }


async def per_1000_sessions(system: System) -> dict[str, float]:
    """Return open_mb and at_rest_mb: how much 1,000 sessions add, open and released.

    A process keeps what it once needed, so what sessions at rest add is told by a second
    thousand, after the first one came and went.
    """
    before_mb = system.rss_mb()
    await _visit(system, "first")
    open_mb = system.rss_mb() - before_mb
    await asyncio.sleep(RELEASE_S + SETTLE_S)
    once_mb = system.rss_mb()
    await _visit(system, "second")
    await asyncio.sleep(RELEASE_S + SETTLE_S)
    return {"open_mb": open_mb, "at_rest_mb": system.rss_mb() - once_mb}


async def _visit(system: System, name: str) -> None:
    """Let 1,000 sessions say one thing each, over a socket of their own."""
    await system.talk(SESSIONS, 1, name)
