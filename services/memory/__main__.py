"""Memory: what agents know of people, and how it is found again (SPEC M).

The log MEMORIES is the truth. Each replica makes a database and vectors of it, in a slot of its
own, and answers from them; what is written goes to the log first and comes back from there. So
any number of replicas agree, and whatever one of them loses, the log has.

It never talks to a language model: what is worth remembering, and what is asked, is decided
elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Final

from vigil import __version__, runtime, topology
from vigil.bus import micro
from vigil.bus.bus import Message
from vigil.errors import InvalidInput
from vigil.observe import metrics, warmth
from vigil.runtime import Context
from vigil.settings.switches import Switches
from vigil.subjects import Scope, SessionKey
from vigil.worker import dead_letters, requeue
from vigil.worker.requeue import RequeueQuestion, RequeueReply
from vigil.worker.worker import Worker

from . import embedding, vectors, work
from .answers import Answering
from .calls import Calls
from .config import Limits
from .embedding.absent import MissingEmbedder
from .embedding.choice import choose as choose_embedder
from .embedding.choice import guarded
from .recall.words import Words
from .replica import slots
from .replica.erasure import Erasing
from .replica.rebuild import Equipment, Replica
from .replica.slots import Slot
from .service import DESCRIPTION, Service
from .store.writes import STREAM as MEMORIES
from .store.writes import Log
from .upkeep.accesses import Accesses
from .vectors.choice import choose as choose_index
from .work import Work

NO_THREAD: Final = "_memory"
"""In the place of a thread, for what belongs to no conversation."""
REBUILD: Final = RequeueReply(
    outcome="refused", reason="a record has its place in the log: `vigil memory rebuild` reads it"
)


async def serve(context: Context, limits: Limits | None = None) -> None:
    """Remember and answer until cancelled; then finish or give back what is in hand.

    Raises:
        ConfigError: the embedder or the vector index can't work as configured, or there is no
            folder to write to.
    """
    limits = limits or Limits()
    slot = slots.take(context.settings.memory, slots_max=limits.slots_max)
    try:
        embedder = guarded(context, await asyncio.to_thread(choose_embedder, context.settings))
        index = choose_index(context.settings, slot.folder)
        try:
            await _serve(context, limits, slot, embedder, index)
        finally:
            await index.close()
            await embedder.close()
    finally:
        slot.release()


async def _serve(
    context: Context,
    limits: Limits,
    slot: Slot,
    embedder: embedding.Embedder,
    index: vectors.VectorIndex,
) -> None:
    bus, clock = context.bus, context.clock
    written = Log(bus, limits)
    parts = Equipment(
        bus=bus,
        clock=clock,
        config=context.settings.config,
        counts=context.metrics,
        limits=limits,
        log=written,
        index=index,
        embedder=embedder,
        words=Words(),
        bury=partial(_bury, context),
    )
    replica = await Replica.open(slot.folder, parts)
    switches = await Switches.watch(bus)
    accesses = Accesses(written, clock, context.new_id, limits)
    answering = Answering(context, replica, written, accesses, limits)
    answering.is_erasing = switches.is_erasing
    worker = Worker(context, Calls(context, answering, limits), limits.turns, switches.is_gone)
    erasing = Erasing(
        bus,
        replica,
        written,
        accesses,
        instance=context.instance,
        is_erasing=switches.is_erasing,
    )
    _observe(context, slot, replica, embedder)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(replica.run(), name="memory-replica")
            group.create_task(accesses.run(), name="memory-accesses")
            await _answer(context, limits, replica, answering, worker, erasing)
    finally:
        await accesses.close(timeout_s=limits.stop_grace_s)
        await switches.close()
        await replica.close()


async def _answer(
    context: Context,
    limits: Limits,
    replica: Replica,
    answering: Answering,
    worker: Worker[Work],
    erasing: Erasing,
) -> None:
    """Take questions and turns until cancelled."""
    bus = context.bus
    service = Service(answering, context.metrics, replica.rebuild, erasing.erase)
    serving = micro.serving(
        bus,
        service.endpoints(),
        name=work.SERVICE,
        version=__version__,
        description=DESCRIPTION,
        instance=context.instance,
        concurrency_max=limits.questions_at_once_max,
    )
    async with serving, asyncio.TaskGroup() as group:
        group.create_task(_become_ready(context, limits, replica), name="memory-ready")
        await replica.projector.caught_up.wait()
        async with (
            worker.consuming(topology.MEMORY_TURNS, topology.MEMORY_TURNS_SYSTEM) as loops,
            requeue.answering(bus, work.SERVICE, partial(_again, worker)),
        ):
            await worker.run(loops)


async def _bury(context: Context, message: Message, cause: str) -> None:
    """Leave a record of MEMORIES that no try could use for a person; one of nobody is logged."""
    try:
        scope = Scope.of_subject(message.subject)
    except InvalidInput:
        return
    key = SessionKey(scope.owner, scope.agent, NO_THREAD)
    now = context.clock.now()
    letter = dead_letters.build(work.SERVICE, message, cause, key, now=now)
    await dead_letters.bury(context.bus, context.metrics, letter, message, key)


async def _again(worker: Worker[Work], question: RequeueQuestion) -> RequeueReply:
    """Try a dead letter again. A record can't be taken in later than it was stored."""
    return REBUILD if question.stream == MEMORIES else await worker.again(question)


async def _become_ready(context: Context, limits: Limits, replica: Replica) -> None:
    """Count as ready once the first recall will be whole, or that would take too long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.ready_wait_s):
            await replica.projector.caught_up.wait()
            await replica.vectorizer.is_settled.wait()
    context.ready.set()


def _observe(context: Context, slot: Slot, replica: Replica, embedder: embedding.Embedder) -> None:
    """Let health and metrics tell how it is."""
    context.metrics.watch(metrics.VECTORS_BEHIND, lambda: replica.behind)
    context.facts["slot"] = slot.number
    context.facts["embedder"] = embedder.name
    if isinstance(embedder, MissingEmbedder):
        context.facts["degraded"] = f"recall goes by full text alone. {embedder.reason}"
    context.facts["index"] = replica.index.name

    def report_position() -> None:
        context.facts.update(position=replica.store.position, stuck=replica.projector.problem)

    def obstacle() -> str:
        context.facts[warmth.FACT] = replica.warmth
        return replica.obstacle

    context.asked.append(obstacle)
    replica.on_applied = report_position
    replica.on_applied()


if __name__ == "__main__":
    runtime.main("memory")
