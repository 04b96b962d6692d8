"""The projector: follows the streams that are told, and appends to SIGNALS what they give.

One replica is active, by the lease `signals`, so that signals come in order and nobody's work is
refused; the others stand by. The lease only saves work: what makes a signal be stored exactly
once is that SIGNALS grows at its known end alone (:mod:`.tail`).

It runs beside the sessions and is never waited for by them; whatever happens to it, it begins
again from what is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec
import structlog

from vigil import crash
from vigil.background.end import end_tasks
from vigil.backoff import Backoff
from vigil.bus.batches import BatchEntry
from vigil.bus.bus import Bus, Follower, Message
from vigil.bus.lease import Lease, Leases
from vigil.circuits import BreakerTerms, Circuits
from vigil.clock import Clock
from vigil.contracts import Signal, SignalSource, encode
from vigil.errors import InvalidInput, VigilError
from vigil.observe import metrics, trace
from vigil.runtime import Context
from vigil.signals.sources import Source, place_of, source_of, sources

from . import tail
from .latency import BranchTimes
from .patterns import Pattern, PatternKind, SignalWindow

log = structlog.get_logger("vigil.cortex")

LEASE: Final = "signals"
GATHER_S: Final = 0.1
"""How long records are gathered: under load this makes a batch of a few hundred signals."""
RECORDS_MAX: Final = 400
"""Of each source at once."""
PATTERNS_SHOWN_MAX: Final = 20
THROTTLE: Final = BreakerTerms(open=Backoff(120.0, 120.0))
"""How long a flood's source is slowed down; if it goes on, again."""


class SignalProjector:
    """Projects for as long as it runs; `facts` have what the window finds (`patterns`), by
    which circuits open, and how long branches take (`branches`)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._leases = Leases(
            context.bus, context.instance, replicas=context.settings.config.nats.replicas
        )
        self._kept = timedelta(days=context.settings.config.retention.signals_days)
        self._window = SignalWindow()
        self._branches = BranchTimes()
        self._circuits: Final[dict[PatternKind, Circuits]] = {
            "error_loop": Circuits.of(context, patience_s=context.settings.config.model.timeout_s),
            "flood": Circuits(context.bus, context.clock, context.service, THROTTLE),
        }

    async def run(self) -> None:
        """Stand by, and project whenever the lease is free. Ends only when it's cancelled."""
        await self._leases.whenever_free(LEASE, self._be_active, _log_failure)

    async def _be_active(self, lease: Lease) -> None:
        try:
            await lease.held(self._project(), name="cortex-signals", on_renewed=self._show)
        finally:
            for name in ("patterns", "branches"):
                self._context.facts.pop(name, None)

    async def _project(self) -> None:
        context = self._context
        run = Run(context.bus, context.clock, context.new_id, self._kept)
        position = await run.begin()
        self._window, self._branches = SignalWindow(), BranchTimes()
        self._window.add(position.newest)
        self._branches.add(position.newest)
        self._show()
        for pattern in self._window.patterns(context.clock.now()):
            await self._act(pattern)  # whoever found it may have died of it
        async with contextlib.aclosing(run.each()) as each:
            async for stored in each:
                self._count(stored)
                self._branches.add(one.signal for one in stored)
                for pattern in self._window.add(one.signal for one in stored):
                    _warn_of(pattern)
                    self._show()
                    await self._act(pattern)

    async def _act(self, pattern: Pattern) -> None:
        """Open the circuit of what fails, or of what there is too much of (SPEC C-4)."""
        if pattern.circuit:
            await self._circuits[pattern.kind].trip(pattern.circuit, pattern.reason)

    def _count(self, stored: list[Stored]) -> None:
        counts, now = self._context.metrics, self._context.clock.now()
        for kind, number in Counter(one.signal.kind for one in stored).items():
            counts.count(metrics.SIGNALS, kind, by=number)
        # What is completed after a crash was read by its sequence, and doesn't tell when it came.
        for record in {one.record.token: one.record for one in stored if one.record.token}.values():
            lag_s = (now - record.stored_at).total_seconds()
            counts.observe(metrics.SIGNAL_LAG, max(lag_s, 0.0))

    def _show(self) -> None:
        found = self._window.patterns(self._context.clock.now())[:PATTERNS_SHOWN_MAX]
        self._context.facts["patterns"] = [msgspec.to_builtins(one) for one in found]
        self._context.facts["branches"] = msgspec.to_builtins(self._branches.latency())


def _warn_of(pattern: Pattern) -> None:
    log.warning(
        "pattern",
        action="cortex.pattern",
        pattern=pattern.kind,
        session=pattern.session_key,
        count=pattern.count,
        since=pattern.since.isoformat(),
    )


class Stored(NamedTuple):
    """A signal that is stored, and the record that it tells of."""

    signal: Signal
    record: Message


class Run:
    """One run of the projection: from what is stored, until something goes wrong."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        new_id: Callable[[], str],
        kept: timedelta,
        gather_s: float = GATHER_S,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._new_id = new_id
        self._kept = kept
        self._gather_s = gather_s
        self._position: tail.Position | None = None

    async def begin(self) -> tail.Position:
        """Find out where to begin. Raises: BusError, Unavailable."""
        self._position = await tail.find(self._bus, self._clock.now() - self._kept)
        return self._position

    async def each(self) -> AsyncGenerator[list[Stored], None]:
        """Project record after record; yields what is stored, some records at a time.

        Raises:
            WrongLastSequence: somebody else projects, too.
            BusError, Unavailable: nobody knows what is stored. In all cases: begin anew.
        """
        position = self._position or await self.begin()
        end = tail.SignalTail(self._bus, position, self._new_id)
        if rest := await self._rest(position.half):
            await end.append([_entry(one) for one in rest])
            yield rest
        async with contextlib.AsyncExitStack() as stack:
            following: list[tuple[Source, Follower]] = []
            for source in sources(await self._bus.layout()):
                begin = position.begins[source.stream]
                follower = await self._bus.follow(source.stream, source.filters, begin)
                stack.push_async_callback(follower.close)
                following.append((source, follower))
            while True:
                records = await self._gather(following)
                crash.point("cortex.signal.received")
                made = [
                    Stored(one, record)
                    for source, record in records
                    for one in _signals_of(source, record)
                ]
                if made:
                    await end.append([_entry(one) for one in made])
                    yield made

    async def _rest(self, half: tail.Half | None) -> list[Stored]:
        """Return the signals that are missing of a record that was told in part."""
        if half is None:
            return []
        record = await self._bus.get(half.stream, half.seq)
        if record is None:  # erased, or too old
            return []
        made = _signals_of(source_of(half.stream), record)
        return [Stored(one, record) for one in made if one.id not in half.done]

    async def _gather(self, following: _Following) -> list[tuple[Source, Message]]:
        """Wait for a record, then take what comes within a moment."""
        await _any_arrived([follower for _, follower in following])
        records = _taken(following)
        if len(records) < RECORDS_MAX:
            await asyncio.sleep(self._gather_s)
            records += _taken(following)
        # The sources have no order among each other; within each it is that of the stream.
        return records


_Following = Sequence[tuple[Source, Follower]]


async def _any_arrived(followers: Sequence[Follower]) -> None:
    waiting = [asyncio.create_task(follower.arrived()) for follower in followers]
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end_tasks(*waiting)


def _taken(following: _Following) -> list[tuple[Source, Message]]:
    """Take what is there, of each source some hundred at most, so that none has to wait."""
    taken: list[tuple[Source, Message]] = []
    for source, follower in following:
        for _ in range(RECORDS_MAX):
            if (record := follower.take_nowait()) is None:
                break
            taken.append((source, record))
    return taken


def _signals_of(source: Source, record: Message) -> list[Signal]:
    """Return the signals of a record; none of one that can't be read."""
    try:
        return source.project(record.seq, record.subject, record.data)
    except InvalidInput as error:
        # Whoever needs it (the cortex, delivery, memory) makes a dead letter of it, or logs it.
        log.warning(
            "passed over",
            action="cortex.signals.poison",
            stream=source.stream,
            seq=record.seq,
            error=str(error),
        )
        return []


def _entry(one: Stored) -> tuple[SignalSource, BatchEntry]:
    headers = {trace.HEADER: trace.passed_on(one.record.header(trace.HEADER))}
    return one.signal.source, BatchEntry(place_of(one.signal), encode(one.signal), headers)


def _log_failure(error: Exception) -> None:
    if isinstance(error, VigilError):
        log.info("projecting again", action="cortex.signals.again", error=repr(error))
    else:  # a fault of ours must not end the sessions of this replica
        log.error("signals failed", action="cortex.signals.failed", error=repr(error))
