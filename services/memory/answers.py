"""What memory is asked and told, whoever asks: a person, a model's tool, a turn, a tick.

A write is checked, stored in the log, and done; what it does is decided by the fold. A read waits
until the store has what this replica was told is stored, so whoever saves something and asks the
same replica finds it. Before anything is said not to be there, what other replicas stored is
waited for, too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
import structlog

from vigil import crash
from vigil.contracts import (
    MemoriesAssociated,
    MemoriesMerged,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemoryLink,
    MemoryRecord,
)
from vigil.errors import InvalidInput, NotFound, Unavailable
from vigil.memory.client import Conflict
from vigil.memory.operation import operation_of
from vigil.memory.operations.associate import Associate, Associated
from vigil.memory.operations.forget import Forget, Forgotten
from vigil.memory.operations.get import Get, Got
from vigil.memory.operations.graph import GetGraph, Graph
from vigil.memory.operations.list import Listed, ListMemories
from vigil.memory.operations.maintain import Maintain, Maintained
from vigil.memory.operations.recall import Recall, Recalled
from vigil.memory.operations.save import Save, Saved
from vigil.memory.operations.stats import GetStats, Stats
from vigil.memory.operations.undo import Undo, Undone
from vigil.memory.questions import DEGRADED_NEWEST, IDS_MAX, UNDONE_SHOWN_MAX, Question, Reply
from vigil.memory.summaries import is_unwritten
from vigil.observe import metrics
from vigil.runtime import Context
from vigil.subjects import Scope, token_of

from . import checks
from .config import Limits
from .replica.rebuild import Replica
from .rules import merge
from .store.store import Store
from .store.writes import Log
from .successions import Successions
from .upkeep.accesses import Accesses
from .upkeep.passes import Passes

log = structlog.get_logger("vigil.memory")

ROOMS_MAX: Final = 10_000
"""Scopes that aren't looked up for each save; then it begins anew."""
Via = Literal["rpc", "call", "turn"]
"""How somebody asks: over the bus, by a tool call, by a turn that doesn't wait."""


class Gone(Conflict):
    """It was done before, and what came of it was forgotten since."""


class Answering:
    """Answers for one replica."""

    def __init__(
        self, context: Context, replica: Replica, log: Log, accesses: Accesses, limits: Limits
    ) -> None:
        self._clock = context.clock
        self._new_id = context.new_id
        self._counts = context.metrics
        self.replica = replica
        self._log = log
        self._accesses = accesses
        self._limits = limits
        self._successions = Successions(replica, self._append, context.clock)
        self._passes: tuple[Store, Passes] | None = None
        self._has_room: set[Scope] = set()
        """Scopes that were found to be among those of their owner."""
        self.is_erasing: Callable[[str], bool] = lambda user: False
        """Whether a person is being erased: nothing of theirs is taken in any more."""

    async def answer(self, scope: Scope, question: Question, *, via: Via) -> Reply:
        """Answer a question about one scope.

        Raises:
            InvalidInput: naming field and reason.
            NotFound: what it is about isn't in that scope.
            Conflict: it can't be done as things stand.
            Unavailable: not now. After OutcomeUnknown, a write may have happened.
        """
        if self.is_erasing(scope.owner):
            raise Unavailable(f"{scope.owner} is being erased")
        operation = operation_of(type(question))
        handler = HANDLERS.get(operation.question)
        if handler is None:
            raise InvalidInput("op", f"{operation.name} is not served")
        if operation.check is not None:
            operation.check(question)
        if not operation.is_reading:
            return await handler(self, scope, question, via)
        await self.replica.fresh()
        async with self.replica.reading():
            return await handler(self, scope, question, via)

    @property
    def now(self) -> datetime:
        return self._clock.now()

    # ------------------------------------------------------------ reading

    async def _recall(self, scope: Scope, question: Recall, via: Via) -> Recalled:
        recalled = await self.replica.recaller.recall(scope, question, self._clock.now())
        if question.counts and question.as_of is None:
            self._accesses.add(scope, (hit.memory.id for hit in recalled.hits))
        if not self.replica.is_behind:
            return recalled
        # Also of nobody it isn't known that there is nothing.
        degraded = (*recalled.degraded, DEGRADED_NEWEST)
        return msgspec.structs.replace(recalled, degraded=degraded, is_empty=False)

    async def _list(self, scope: Scope, question: ListMemories, via: Via) -> Listed:
        listed = await self.replica.store.list(scope, question, self.now)
        if not self.replica.is_behind:
            return listed
        return msgspec.structs.replace(listed, degraded=(DEGRADED_NEWEST,))

    async def _graph(self, scope: Scope, question: GetGraph, via: Via) -> Graph:
        return await self.replica.store.graph(scope, question, self.now)

    async def _get(self, scope: Scope, question: Get, via: Via) -> Got:
        store, now = self.replica.store, self._clock.now()
        try:
            return await store.get(scope, question.id, now)
        except NotFound:
            await self.replica.freshest()
        return await store.get(scope, question.id, now)

    async def _stats(self, scope: Scope, question: GetStats, via: Via) -> Stats:
        replica = self.replica
        found = await replica.store.stats(scope, question, self._clock.now())
        return msgspec.structs.replace(found, index=replica.index.name, rebuild=replica.rebuilding)

    # ------------------------------------------------------------ writing

    async def _save(self, scope: Scope, save: Save, via: Via) -> Saved:
        checks.check_save(save, self._clock.now())
        await self._check_links(scope, save)
        return await self.remember(scope, save, via=via)

    async def remember(self, scope: Scope, save: Save, *, via: Via) -> Saved:
        """Store what was checked; a repeat of a key is the memory that it made.

        Raises:
            Conflict: the key was used for something else, or for what was forgotten (Gone).
            InvalidInput: the owner has memories of too many agents.
            Unavailable: not now.
        """
        record = checks.saved(scope, save, random_id=self._new_id(), now=self._clock.now())
        id_ = record.memory.id
        if save.key and (found := await self._repeated(scope, save, id_, via)):
            return found
        await self._check_room(scope)
        crash.point("memory.save.before")
        ack = await self._log.write(record)
        if ack.is_duplicate and (found := await self._repeated(scope, save, id_, via)):
            return found
        self._counts.count(metrics.MEMORIES_SAVED, via)
        with contextlib.suppress(Unavailable):  # else the next pass does it
            await self._successions.follow(scope, record)
        return Saved(id=id_, seq=ack.seq, is_repeat=ack.is_duplicate)

    async def rewrite(self, scope: Scope, summary: str, save: Save) -> None:
        """Have a text take the place of a merged summary's, if that still stands as it was merged.

        Raises:
            Unavailable: not now.
        """
        merged = await self._unwritten(scope, summary)
        if merged is None:
            log.info("not there", action="memory.not_rewritten", memory=summary)
            return
        made = merge.rewritten(merged, save.content, is_tainted=save.is_tainted, now=self.now)
        id_ = token_of(scope.agent, scope.owner, "merge", made.memory.id)  # a repeat's is the same
        about = self._about(scope, save.by) | {"id": id_}
        record = MemoriesMerged(**about, memory=made.memory, merged_ids=made.merged_ids)
        await self._append(scope, record)

    async def _unwritten(self, scope: Scope, summary: str) -> Memory | None:
        """Return a summary that stands as it was merged; None: there is no such any more."""
        await self.replica.fresh()
        await self.replica.freshest()
        async with self.replica.reading():
            with contextlib.suppress(NotFound):
                found = await self.replica.store.get(scope, summary, self.now)
                if found.memory.ended is None and is_unwritten(found.memory):
                    return found.memory
        return None

    async def _repeated(self, scope: Scope, save: Save, memory_id: str, via: Via) -> Saved | None:
        """Return what a key stands for already, as far as this replica knows.

        Keys of turns and calls are ours, and never used for two things. People's may be, at once.

        Raises:
            Conflict: something else; Gone: what was forgotten since.
        """
        if via == "rpc":
            with contextlib.suppress(Unavailable):  # no save waits until the log has been read
                await self.replica.fresh()
        async with self.replica.reading():
            store, now = self.replica.store, self._clock.now()
            is_known, memory = await store.saved_before(scope, memory_id, now)
        if not is_known:
            return None
        if memory is None:
            raise Gone("what was saved with this key was forgotten")
        if not checks.is_same(memory, save):
            raise Conflict("this key was used for another memory")
        return Saved(id=memory_id, seq=memory.seq, is_repeat=True)

    async def _check_room(self, scope: Scope) -> None:
        """Refuse the first memory of yet another agent, beyond a bound. Raises: InvalidInput.

        Looked up once for each scope: each save would wait for a reader of the database.
        """
        if scope in self._has_room:
            return
        agents_max = self._limits.agents_per_owner_max
        async with self.replica.reading():
            agents = await self.replica.store.agents(scope.owner)
        if scope.agent not in agents and len(agents) >= agents_max:
            raise InvalidInput("agentId", f"would be the memory of more than {agents_max} agents")
        if scope.agent in agents:
            if len(self._has_room) >= ROOMS_MAX:
                self._has_room.clear()
            self._has_room.add(scope)

    def check_room(self) -> None:
        """Check each scope anew that something is saved in: some were erased."""
        self._has_room.clear()
        self._successions.forget()

    async def _check_links(self, scope: Scope, save: Save) -> None:
        if not save.links:
            return
        known = await self._known(scope, [link.to_id for link in save.links])
        for number, link in enumerate(save.links):
            if link.to_id not in known:
                raise InvalidInput(f"links[{number}].to_id", "there is no such memory")

    async def _known(self, scope: Scope, ids: list[str]) -> frozenset[str]:
        """Return those ids that are memories of the scope."""
        await self.replica.fresh()
        async with self.replica.reading():
            known = await self.replica.store.known(scope, ids)
            if len(known) < len(set(ids)):
                await self.replica.freshest()
                known = await self.replica.store.known(scope, ids)
        return known

    async def _forget(self, scope: Scope, forget: Forget, via: Via) -> Forgotten:
        wanted = list(dict.fromkeys(forget.ids))
        known = await self._known(scope, wanted)
        ids = tuple(one for one in wanted if one in known)
        if ids:
            await self._log.write(MemoryForgotten(**self._about(scope, forget.by), memory_ids=ids))
        return Forgotten(forgotten=len(ids), missing=len(wanted) - len(ids))

    async def _associate(self, scope: Scope, associate: Associate, via: Via) -> Associated:
        known = await self._known(scope, [associate.from_id, associate.to_id])
        for id_ in (associate.from_id, associate.to_id):
            if id_ not in known:
                raise NotFound(f"there is no memory {id_}")
        edge = MemoryLink(
            from_id=associate.from_id,
            to_id=associate.to_id,
            relation=associate.relation,
            weight=associate.weight,
        )
        await self._log.write(MemoriesAssociated(**self._about(scope, associate.by), edges=(edge,)))
        return Associated(edge=edge)

    async def _undo(self, scope: Scope, undo: Undo, via: Via) -> Undone:
        await self.replica.fresh()
        await self.replica.freshest()
        async with self.replica.reading():
            plan = await self.replica.store.plan_undo(scope, undo.source)
        if not plan.undone:
            raise NotFound(f"nothing stands that came from {undo.source!r}")
        for part in plan.parts(IDS_MAX):
            await self._log.write(
                MemoriesUndone(
                    **self._about(scope, undo.by),
                    source=undo.source,
                    memory_ids=part.undone,
                    restored_ids=part.restored,
                )
            )
        return Undone(
            undone=plan.undone[:UNDONE_SHOWN_MAX],
            restored=plan.restored[:UNDONE_SHOWN_MAX],
            undone_left_out=max(len(plan.undone) - UNDONE_SHOWN_MAX, 0),
            restored_left_out=max(len(plan.restored) - UNDONE_SHOWN_MAX, 0),
        )

    # ------------------------------------------------------------ passes

    async def maintain_all(self, question: Maintain) -> Maintained:
        """Run a pass over every scope. Raises: as :meth:`answer`."""
        await self.replica.fresh()
        async with self.replica.reading():
            scopes = await self.replica.store.scopes()
        return await self._run_pass(question, scopes)

    async def _maintain(self, scope: Scope, question: Maintain, via: Via) -> Maintained:
        return await self._run_pass(question, [scope])

    async def _run_pass(self, question: Maintain, scopes: Sequence[Scope]) -> Maintained:
        passing = self.replica.passing
        if passing.locked():
            raise Conflict("a pass is running, or memory is being made anew; ask again later")
        async with passing:
            await self.replica.fresh()
            passes = self._passes_of(self.replica.store)
            scopes = [scope for scope in scopes if not self.is_erasing(scope.owner)]
            run = passes.maintain if question.what == "maintenance" else passes.associate
            try:
                async with asyncio.timeout(self._limits.pass_timeout_s), self.replica.reading():
                    return await run(scopes)
            except TimeoutError as error:
                raise Unavailable("the pass took too long; what it has done stands") from error

    def _passes_of(self, store: Store) -> Passes:
        """Return the passes over a store: where the last one ended is known to them alone."""
        if self._passes is None or self._passes[0] is not store:
            passes = Passes(store, self.replica.index, self._append, self._clock)
            self._passes = (store, passes)
        return self._passes[1]

    async def _append(self, scope: Scope, record: MemoryRecord) -> int:
        if self.is_erasing(scope.owner):
            raise Unavailable(f"{scope.owner} is being erased")
        return (await self._log.write(record)).seq

    def _about(self, scope: Scope, by: str) -> dict[str, Any]:
        """Return what every record carries."""
        return {
            "id": self._new_id(),
            "agent": scope.agent,
            "owner": scope.owner,
            "at": self._clock.now(),
            "by": by,
        }


Handler = Callable[[Answering, Scope, Any, Via], Awaitable[Reply]]
"""Answers one kind of question about one scope; of an operation that only reads, from the store of
`Answering.replica`, which is fresh and stays."""
HANDLERS: Final[dict[type[Question], Handler]] = {
    Save: Answering._save,
    Forget: Answering._forget,
    Associate: Answering._associate,
    Undo: Answering._undo,
    Maintain: Answering._maintain,
    Recall: Answering._recall,
    ListMemories: Answering._list,
    GetGraph: Answering._graph,
    Get: Answering._get,
    GetStats: Answering._stats,
}
"""By what is asked: the struct of an operation."""
