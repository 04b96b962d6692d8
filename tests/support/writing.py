"""Whoever writes texts for one person's rows of the timetable: a test has each text ready."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from services.cortex.model import ModelAnswer, ModelError, ModelRequest
from tests.support.due import newest, row_of, slots, until_newer
from tests.support.remembering import save
from tests.support.scripted_model import say
from tests.support.world import Person, StoppedClock, World


class Writer:
    """Writes one person's bulletins, or summaries: each text in its turn."""

    def __init__(self, world: World, person: Person, kind: str = "bulletin") -> None:
        self.world = world
        self.kind = kind
        self.http: httpx2.AsyncClient = person.http
        self.user = person.key.partition(":")[0]
        self.row: dict[str, Any] = {}
        self.told = 0
        """Entries of the row that were looked at."""
        self.texts: list[str | ModelError | ModelAnswer] = []
        self.asked: list[ModelRequest] = []
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self._behave = world.agent.behave
        world.agent.behave = self._answer

    async def _answer(self, request: ModelRequest) -> ModelAnswer:
        if not request.session_key.startswith(f"{self.user}:vigil:_{self.kind}-"):
            return await self._behave(request)  # type: ignore[misc, no-any-return]
        self.asked.append(request)
        self.begun.set()
        await self.gate.wait()
        text = self.texts.pop(0)
        if isinstance(text, ModelError):
            raise text
        return text if isinstance(text, ModelAnswer) else say(text)

    async def slot(self, seconds: float, entries: int = 1) -> list[Any]:
        """Let time pass until a slot is due; return so many new entries."""
        assert isinstance(self.world.clock, StoppedClock)
        if not self.row:
            self.row = await row_of(self.http, self.kind)
        self.world.clock.move(seconds)
        return await self.entries(entries)

    async def entries(self, count: int) -> list[Any]:
        found = await slots(self.http, self.row, self.told + count)
        new, self.told = found[self.told :], len(found)
        return new

    async def remember(self, content: str) -> str:
        before = await newest(self.world, self.user, "memory.saved")
        id_ = await save(self.http, content, type="fact")
        await until_newer(self.world, self.user, "memory.saved", before)
        return id_

    async def read(self, **query: Any) -> dict[str, Any]:
        (found,) = (await self.http.get("/api/bulletin", params=query)).json()["bulletins"]
        return dict(found)


async def begin(world: World, user: str, kind: str = "bulletin") -> tuple[Person, Writer]:
    """Have somebody begin to talk, and their texts written by a test."""
    person = await world.person(f"{user}:vigil:main", has_socket=False)
    writer = Writer(world, person, kind)
    await person.exchange("hi")
    return person, writer
