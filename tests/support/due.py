"""Rows of the timetable that the system makes, and their slots, as a person sees them over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.support.pauses import pauses
from tests.support.world import World
from vigil.subjects import signals_of

PATIENCE_S: Final = 40.0


def give_role(home: Path, agent: str = "vigil") -> None:
    """Write what an agent is to look after: without that its first cycle waits for news."""
    file = home / "agents" / agent / "ROLE.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("You look after the CI of main.")


async def row_of(http: httpx2.AsyncClient, kind: str) -> dict[str, Any]:
    """Wait for the row of a kind that the agent `vigil` has for whoever asks."""
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while True:
            rows = (await http.get("/api/cron", params={"all": True})).json()["rows"]
            for row in rows:
                if row["kind"] == kind:
                    return dict(row)
            await asyncio.sleep(next(pause_s))


async def slots(http: httpx2.AsyncClient, row: dict[str, Any], count: int) -> list[Any]:
    """Wait until the ledger of a row has so many entries; the oldest first."""
    found: list[Any] = []
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while len(found) < count:
            await asyncio.sleep(next(pause_s))
            query = {"row": row["id"], "limit": 500}
            found = (await http.get("/api/slots", params=query)).json()["slots"]
    return found[::-1]


async def decided(
    http: httpx2.AsyncClient, row: dict[str, Any], known: int, instants: int
) -> list[Any]:
    """Wait until the ledger of a row has so many instants behind the entries that are known; return
    those entries. One may be of several: a clock that is moved on may be faster than a decision."""
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while True:
            new = (await slots(http, row, known))[known:]
            if sum(entry["count"] for entry in new) >= instants:
                return new
            await asyncio.sleep(next(pause_s))


async def newest(world: World, user: str, kind: str, agent: str = "vigil") -> int:
    """Return the place of the newest signal of a kind that tells of them; 0: there is none."""
    found = await world.admin.get_last("SIGNALS", signals_of(user, agent=agent, kind=kind))
    return 0 if found is None else found.seq


async def until_newer(
    world: World, user: str, kind: str, before: int, agent: str = "vigil"
) -> None:
    """Wait until there is a newer signal of that kind: what isn't told is news to nobody."""
    async with asyncio.timeout(PATIENCE_S):
        pause_s = pauses()
        while await newest(world, user, kind, agent) == before:
            await asyncio.sleep(next(pause_s))
