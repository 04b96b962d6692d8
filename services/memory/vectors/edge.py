"""The Qdrant engine on this machine, in a process of its own, in a folder of the replica.

The default: nothing to install and nothing to look after. What it holds can be made again from
SQLite, so a folder that can't be opened, or was made with another embedder, is made anew. Where
nothing was ever stored the engine isn't started before something is: it is 26 MB, and 0.1 s of CPU.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import structlog

from vigil.errors import Unavailable
from vigil.subjects import Scope

from . import Near, Point, Where
from .engine_calls import (
    CopyMore,
    Count,
    Flush,
    ForgetPoints,
    Open,
    Query,
    ScrubMore,
    Search,
    StoredPoint,
    TakeOver,
    Upsert,
)
from .engine_process import ANSWER_S_MAX, EngineGone, EngineLocked, EngineProcess
from .filters import allowed, payload_of, whose

log = structlog.get_logger("vigil.memory")

T = TypeVar("T")

ROWS_MAX: Final = 64
"""Of one request: some 5 ms, so long does a search wait for it."""
SEARCH_S_MAX: Final = 5.0
DEATHS_MAX: Final = 3
"""So often may the engine die on one folder before that is made anew: it may be what kills it."""


class EdgeIndex:
    """See `VectorIndex`."""

    name = "edge"

    def __init__(self, folder: Path, *, answer_s_max: float = ANSWER_S_MAX) -> None:
        self._folder = folder
        self._answer_s_max = answer_s_max
        self._open: Open | None = None
        self._engine: EngineProcess | None = None
        self._is_new = False
        """It has to be filled, and nothing that was filled in has been flushed."""
        self._is_empty = False
        """It is open, and nothing was ever stored: there is no engine, and needs none."""
        self._is_lost = False
        """It got new while it was open; only `open` can tell."""
        self._deaths = 0
        self._stored_in: EngineProcess | None = None
        """Which run of the engine has what was stored since the last flush."""
        self._starting = asyncio.Lock()
        self._writing = asyncio.Lock()

    async def open(self, embedder: str, dimension: int) -> bool:
        wanted = Open(embedder, dimension)
        async with self._writing, self._starting:
            self._is_lost = False
            if self._open == wanted and (self._is_empty or self._is_well()):
                return self._is_new
            self._deaths = 0
            self._stored_in = None
            self._open = None
            await self._stop()
            self._is_empty = self._is_new = not await asyncio.to_thread(_holds_any, self._folder)
            if not self._is_empty:
                await self._start(wanted)
            self._open = wanted
            return self._is_new

    async def upsert(self, points: Sequence[Point]) -> None:
        rows = [StoredPoint(point.num, point.vector, payload_of(point)) for point in points]
        async with self._writing:
            for start in range(0, len(rows), ROWS_MAX):
                engine = await self._running()
                self._stored_in = self._stored_in or engine
                await engine.ask(Upsert(rows[start : start + ROWS_MAX]), type(None))

    async def flush(self) -> None:
        async with self._writing:
            if self._is_empty:
                self._is_new = False
                return
            engine = await self._running()
            stored_in, self._stored_in = self._stored_in, None
            if stored_in not in (None, engine):
                raise EngineGone("the vector engine ended before it flushed: repeat what it had")
            await engine.ask(Flush(), type(None))
            self._is_new = False

    async def search(self, vector: bytes, limit: int, where: Where) -> list[Near]:
        conditions = allowed(where)
        if not any(vector) or self._is_empty:
            return []  # a text without any known word is near to nothing
        request = Search(vector, limit, conditions)
        try:
            async with asyncio.timeout(SEARCH_S_MAX):
                found = await self._queried(request, list[tuple[int, float]])
        except TimeoutError:
            raise Unavailable(f"no answer from the vectors within {SEARCH_S_MAX:g} s") from None
        return [Near(num, similarity) for num, similarity in found]

    async def count(self, scope: Scope | None = None) -> int:
        request = Count(whose(scope) if scope else ())
        return 0 if self._is_empty else await self._queried(request, int)

    async def drop(self, scope: Scope | None = None) -> None:
        request = ForgetPoints(whose(scope) if scope else ())
        async with self._writing:
            if self._is_empty:
                return
            # One run of the engine from beginning to end: a copy that it began ends with it.
            engine = await self._running()
            await engine.ask(request, type(None))
            while scope is not None and not await engine.ask(CopyMore(), bool):
                pass
            await engine.ask(TakeOver(), type(None))
            while not await engine.ask(ScrubMore(), bool):
                pass

    async def close(self) -> None:
        async with self._writing, self._starting:
            self._open, self._is_empty = None, False
            await self._stop()

    async def _queried(self, request: Query, answer: type[T]) -> T:
        """Ask what changes nothing; once more, if the engine ends over it."""
        try:
            return await (await self._running()).ask(request, answer)
        except EngineGone:
            return await (await self._running()).ask(request, answer)

    def _is_well(self) -> bool:
        engine = self._engine
        return engine is not None and not engine.is_gone and not engine.has_failed

    async def _running(self) -> EngineProcess:
        """Return the engine; start it again if it ended.

        Raises:
            Unavailable: nothing is open; or all that it held is lost, and `open` must tell so.
        """
        async with self._starting:
            if self._open is None:
                raise Unavailable("the vector index has to be opened first")
            if self._is_lost:
                raise Unavailable("the vector index was lost, and has to be filled again")
            if self._engine is not None and not self._engine.is_gone:
                return self._engine
            if self._is_empty:
                engine = await self._start(self._open)
                self._is_empty = False
                return engine
            self._deaths += 1
            log.warning("engine ended", action="memory.engine_ended", deaths=self._deaths)
            engine = await self._start(self._open)
            self._is_lost = self._is_new
            if self._is_lost:
                raise Unavailable("the vector index was lost, and has to be filled again")
            return engine

    async def _start(self, request: Open) -> EngineProcess:
        """Start the engine on what is there, else on nothing; `_is_new` says which."""
        if self._deaths < DEATHS_MAX:
            try:
                return await self._start_once(request)
            except EngineLocked:
                raise
            except Unavailable as error:
                log.warning("made anew", action="memory.engine_anew", error=str(error))
        return await self._start_once(msgspec.structs.replace(request, is_anew=True))

    async def _start_once(self, request: Open) -> EngineProcess:
        await self._stop()
        engine = await EngineProcess.start(self._folder, answer_s_max=self._answer_s_max)
        self._engine = engine
        self._is_new = await engine.ask(request, bool)
        return engine

    async def _stop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.stop()


def _holds_any(folder: Path) -> bool:
    """Whether anything is in a folder."""
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False
