"""What one replica makes of the log, and how it makes that anew without ever answering wrongly.

A replica has a store (SQLite), somebody who fills it from the log, and somebody who makes vectors
of it. To rebuild everything, a second store is filled beside the first, which answers meanwhile;
then the new file takes the old one's place, which holds up questions for some milliseconds, and
the vectors are made anew, which recall tells as degraded.

A store belongs to one log. If the broker has another one (it was set up anew, or restored to an
earlier state), what was made of the old one is worth nothing and everything is made anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec
import structlog

from vigil import crash
from vigil.background.end import end_tasks
from vigil.bus.bus import Bus
from vigil.clock import Clock
from vigil.errors import Unavailable
from vigil.memory.questions import Rebuild, Rebuilding
from vigil.observe.metrics import Metrics
from vigil.observe.warmth import Warmth
from vigil.settings.config import Config
from vigil.worker.patience import ANY, Patience

from ..config import Limits
from ..embedding import Embedder, choice
from ..recall.recall import Recaller
from ..recall.scores import Weights
from ..recall.words import Words
from ..store import store as stores
from ..store.store import Store
from ..store.writes import STREAM, Log
from ..vectors import VectorIndex
from .projector import Bury, Projector
from .vectorizer import Vectorizer, Whole

log = structlog.get_logger("vigil.memory")

LOG: Final = "log"
"""In `meta`: when the stream that it was made of was created."""
BESIDE: Final = "next"
"""The folder in which a store is made anew beside the one in use."""
READERS_WAIT_S: Final = 10.0


class Equipment(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica is made of and doesn't change: seams, limits, time."""

    bus: Bus
    clock: Clock
    config: Config
    counts: Metrics
    limits: Limits
    log: Log
    index: VectorIndex
    embedder: Embedder
    words: Words
    bury: Bury


class Replica:
    """One replica's store and vectors. Use what it holds inside of :meth:`posts`."""

    def __init__(self, folder: Path, store: Store, parts: Equipment) -> None:
        self._folder = folder
        self._parts = parts
        self.on_applied: Callable[[], None] = lambda: None
        """Called when something of the log came in."""
        self._wanted: Literal["all", "vectors"] | None = None
        self._wakes = asyncio.Event()
        self._beside: Projector | None = None
        self.passing = asyncio.Lock()
        """Held by a pass, and while the store is made anew: passes write what they read here."""
        self._gate = asyncio.Event()
        self._gate.set()
        self._readers = 0
        self._no_readers = asyncio.Event()
        self._no_readers.set()
        self._take(store)

    def _take(self, store: Store) -> None:
        parts = self._parts
        self.store = store
        self.projector = self._projector(store)
        self.vectorizer = Vectorizer(store, parts.index, parts.embedder, parts.limits)
        self.projector.on_applied = self._applied
        self.index: VectorIndex = Whole(parts.index, self.vectorizer)
        self.recaller = Recaller(
            store,
            self.index,
            parts.embedder,
            parts.words,
            Weights(weight_vector=choice.weight(parts.config.memory)),
        )

    def _applied(self) -> None:
        self.vectorizer.wake()
        self.on_applied()

    def _projector(self, store: Store) -> Projector:
        parts = self._parts
        return Projector(
            parts.bus, store, parts.words, parts.bury, parts.limits, parts.clock, parts.counts
        )

    @classmethod
    async def open(cls, folder: Path, parts: Equipment) -> Replica:
        """Open what this slot's last holder made; delete it if it was made of another log."""
        shutil.rmtree(folder / BESIDE, ignore_errors=True)
        store = await Store.open(folder)
        created, last = await _identity(parts)
        is_other = await _is_other(store, store.position, created, last)
        if is_other:
            log.warning("another log", action="memory.other_log", position=store.position)
            await store.close()
            stores.delete(folder)
            store = await Store.open(folder)
        await store.set_meta(LOG, created)
        replica = cls(folder, store, parts)
        if is_other:
            replica.vectorizer.fill_anew()
        return replica

    # ------------------------------------------------------------ reading

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Hold the store while it is read: no other takes its place meanwhile."""
        while not self._gate.is_set():
            await self._gate.wait()
        self._readers += 1
        self._no_readers.clear()
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self._no_readers.set()

    async def fresh(self) -> None:
        """Wait until the store has what this replica knows to be stored.

        Raises:
            Unavailable: the log is still being read from its beginning.
        """
        if not self.projector.caught_up.is_set():
            raise Unavailable(f"{self.obstacle}; ask again soon")
        limits = self._parts.limits
        if not self.projector.problem:  # or each would wait for what doesn't come
            await self.projector.at_least(self._parts.log.told, timeout_s=limits.fresh_wait_s)

    async def freshest(self) -> None:
        """Wait also for what other replicas stored: before saying that something isn't there.

        Raises:
            Unavailable: the broker does not answer, or what it has can't be written here.
        """
        newest = await self._parts.log.newest()
        if self.projector.problem and newest > self.store.position:
            raise Unavailable(f"{self.obstacle}; ask again soon")
        await self.projector.at_least(newest, timeout_s=self._parts.limits.fresh_wait_s)

    # ------------------------------------------------------------ how far it is

    @property
    def rebuilding(self) -> Rebuilding | None:
        """What is being made anew, and how far that is."""
        projector = self._beside or self.projector
        if not projector.caught_up.is_set():
            return Rebuilding(
                what="all", done=projector.position, total=max(projector.total or 0, 1)
            )
        if self._wanted is not None:
            return Rebuilding(what=self._wanted, done=0, total=max(self.store.position, 1))
        return self.vectorizer.filling

    @property
    def is_behind(self) -> bool:
        """Whether it lacks what is known to be stored, and that won't come in by itself at once."""
        return bool(self.projector.problem) or self.store.position < self._parts.log.told

    @property
    def obstacle(self) -> str:
        """What it can't do now, and why, with how far that is; empty: nothing."""
        progress = self.rebuilding
        if not self.projector.caught_up.is_set():
            how_far = f": {progress.done} of {progress.total} records" if progress else ""
            why = f", {self.projector.problem}" if self.projector.problem else ""
            return f"memory is being made of the log{how_far}{why}"
        if self.projector.problem:
            return f"what was saved last isn't found yet: {self.projector.problem}"
        if self.vectorizer.problem:
            return f"recall goes by full text alone: {self.vectorizer.problem}"
        if progress is not None and progress.what == "vectors":
            made = f"{progress.done} of {progress.total} memories"
            return f"recall goes by full text alone while vectors are made: {made}"
        return ""

    @property
    def warmth(self) -> Warmth:
        """How far it is (SPEC C-3)."""
        if not self.projector.caught_up.is_set():
            return "warming"
        if self.projector.problem or self.vectorizer.problem:
            return "degraded"
        is_making = self.rebuilding is not None or not self.vectorizer.is_settled.is_set()
        return "warming" if is_making else "warm"

    @property
    def behind(self) -> int:
        """Records of the log that are in SQLite, and not in the index yet."""
        return max(self.store.position - self.vectorizer.position, 0)

    # ------------------------------------------------------------ working

    def rebuild(self, question: Rebuild) -> Rebuilding:
        """Begin to make it anew, and return at once; one that is under way goes on."""
        if self._wanted != "all":
            self._wanted = question.what
            log.info("rebuilding", action="memory.rebuild", what=question.what)
            self._wakes.set()
        found = self.rebuilding
        assert found is not None  # noqa: S101 - it was just wanted
        return found

    async def run(self) -> None:
        """Keep up with the log until cancelled."""
        checking = asyncio.create_task(self._check_log(), name="memory-log")
        try:
            while True:
                await self._run_until_wanted()
        finally:
            checking.cancel()

    async def _run_until_wanted(self) -> None:
        """Work until another store has taken the place of this one."""
        async with contextlib.AsyncExitStack() as holding, asyncio.TaskGroup() as group:
            working = [
                group.create_task(self.projector.run(), name="memory-projector"),
                group.create_task(self.vectorizer.run(), name="memory-vectorizer"),
            ]
            made: Store | None = None
            while made is None:
                await self._wakes.wait()
                self._wakes.clear()
                if self._wanted == "vectors":
                    self._wanted = None
                    self.vectorizer.fill_anew()
                elif self._wanted == "all":
                    await holding.enter_async_context(self.passing)
                    made = await self._make_beside()
            for task in working:
                task.cancel()
            await asyncio.wait(working)
            await self._swap(made)

    async def _make_beside(self) -> Store:
        """Make a store of the whole log beside the one in use."""
        folder = self._folder / BESIDE
        shutil.rmtree(folder, ignore_errors=True)
        store = await Store.open(folder)
        created, last = await _identity(self._parts)
        is_other = await _is_other(self.store, self.store.position, created, last)
        await store.set_meta(LOG, created)
        self._beside = self._projector(store)
        try:
            task = asyncio.create_task(self._beside.run(), name="memory-rebuild")
            caught_up = asyncio.create_task(self._beside.caught_up.wait())
            try:
                await asyncio.wait({task, caught_up}, return_when="FIRST_COMPLETED")
                if not is_other:  # another log may never get so far
                    await self._beside.at_least(self.store.position, timeout_s=READERS_WAIT_S)
            finally:
                await end_tasks(caught_up, task)
                if not task.cancelled():
                    task.result()
        except BaseException:
            await store.close()
            raise
        return store

    async def _swap(self, made: Store) -> None:
        """Put a store in the place of the one in use."""
        self._gate.clear()
        try:
            async with asyncio.timeout(READERS_WAIT_S):
                await self._no_readers.wait()
        except TimeoutError:
            log.warning("readers hold on", action="memory.swap_late", readers=self._readers)
        await made.close()
        crash.point("memory.rebuild.before_swap")
        await self.store.close()
        stores.delete(self._folder)
        crash.point("memory.rebuild.swapping")
        beside = self._folder / BESIDE
        (beside / stores.FILE).replace(self._folder / stores.FILE)
        shutil.rmtree(beside, ignore_errors=True)
        self._beside = None
        before = (self.projector.caught_up, self.vectorizer.is_settled)
        self._take(await Store.open(self._folder))
        for awaited in before:  # whoever waits for those will find the new ones further on
            awaited.set()
        self._wanted = None
        self.projector.caught_up.set()
        self.vectorizer.fill_anew()
        self._gate.set()
        log.info("rebuilt", action="memory.rebuilt", position=self.store.position)

    async def _check_log(self) -> None:
        """Look after each reconnect whether the log is still the one that this was made of."""
        reconnected = asyncio.Event()
        self._parts.bus.on_restart("memory-log", reconnected.set)
        try:
            while True:
                await reconnected.wait()
                reconnected.clear()
                if not await self._is_of_this_log():
                    log.warning(
                        "another log", action="memory.other_log", position=self.store.position
                    )
                    self._parts.log.begin_anew()
                    self.rebuild(Rebuild())
        finally:
            self._parts.bus.on_restart("memory-log", None)

    async def _is_of_this_log(self) -> bool:
        """Ask until the broker has said which log it has; it may still have to be made."""
        while True:
            # Before it asks: after a reconnect everybody writes, so there is more by the answer.
            store, position = self.store, self.store.position
            created, last = await _identity(self._parts)
            if store is self.store:
                return not await _is_other(store, position, created, last)

    async def close(self) -> None:
        await self.store.close()


async def _identity(parts: Equipment) -> tuple[str, int]:
    """Return when the stream was created, and its last sequence, as soon as the broker tells."""
    ask = partial(parts.bus.api, f"STREAM.INFO.{STREAM}", {})
    info = await Patience("memory.follow", parts.limits.again, errors=ANY).run(ask)
    return str(info["created"]), int(info["state"]["last_seq"])


async def _is_other(store: Store, position: int, created: str, last: int) -> bool:
    """Whether a store was made of another log, or of more than there is."""
    made_of = await store.meta(LOG)
    return (made_of is not None and made_of != created) or position > last
