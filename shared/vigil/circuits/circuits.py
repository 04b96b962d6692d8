"""The breakers of a process, shared with all others over the board.

A circuit that is closed costs nothing: no read, no write, no timer; but for one look at the board
when a process first asks for a component, so that a restart finds open what was open, and for one
at each refusal, so that a reset by hand holds at once. What
changes is stored by compare-and-set, so of all replicas one opens it and one makes the trial. While
the board can't be reached each process goes by what it knows: a breaker is never a reason of its
own to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from ..board.entries import newest
from ..board.kept import CIRCUITS, KeptBoard, Revision
from ..bus.bus import Bus, BusError, Message
from ..clock import Clock
from ..contracts import Change, Circuit
from ..contracts.board import CircuitState
from ..errors import Unavailable, WrongLastSequence
from ..subjects import ANYBODY, Scope, SessionKey, board_of, token_of
from ..words.amounts import about
from . import breaker as rules
from .breaker import Breaker, BreakerTerms

if TYPE_CHECKING:
    from ..runtime import Context

log = structlog.get_logger("vigil.circuits")

SHARED: Final = Scope("_", "_")
"""Whose the circuits are that nobody has for themselves."""
SESSION: Final = "session:"
"""What a session thinks of without being asked by its person."""
OUTSIDE: Final = "outside:"
"""What comes in from outside for a session."""
AGAIN_S: Final = 1.0
TRIES_MAX: Final = 3
REASON_LENGTH_MAX: Final = 300
_AWAY: Final = (Unavailable, BusError)


class CircuitOpen(Unavailable):
    """A call was refused at once, since those before it failed."""

    def __init__(self, circuit: str, reason: str, wait_s: float) -> None:
        super().__init__(f"{circuit} is not asked for {about(wait_s)}, since it failed: {reason}")
        self.wait_s = wait_s
        """When to come again."""


class Passed(NamedTuple):
    """The right to one call; how it ended is told with it."""

    component: str
    number: int


class _Known:
    __slots__ = ("breaker", "lock", "revision")

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.revision = 0
        self.lock = asyncio.Lock()


_Decide = Callable[[Breaker, datetime], Breaker]


class Circuits:
    """The circuits that a service asks.

    Args:
        by: the service's name, for the record.
    """

    def __init__(self, bus: Bus, clock: Clock, by: str, terms: BreakerTerms | None = None) -> None:
        self._bus = bus
        self._board = KeptBoard(bus, CIRCUITS)
        self._clock = clock
        self._by = by
        self._terms = terms or BreakerTerms()
        self._known: dict[str, _Known] = {}

    @classmethod
    def of(cls, context: Context, *, patience_s: float) -> Circuits:
        """Return the circuits of a service, for calls that end after `patience_s` at the latest."""
        terms = BreakerTerms.of(context.settings.config.health, patience_s=patience_s)
        return cls(context.bus, context.clock, context.service, terms)

    async def enter(self, component: str) -> Passed:
        """Let a call through; tell by `failed`, `succeeded` or `unsaid` how it ended.

        Raises:
            CircuitOpen: the component failed and isn't asked now.
        """
        known = await self._of(component)
        if known.breaker.state == "closed":
            return Passed(component, known.breaker.number)
        async with known.lock:
            return await self._enter_open(component, known)

    async def _enter_open(self, component: str, known: _Known) -> Passed:
        await self._refresh(component, known)  # somebody may have reset it
        if rules.is_due(known.breaker, self._clock.now(), self._terms):
            await self._change(component, known, self._tried)
            if known.breaker.state == "half_open":
                return Passed(component, known.breaker.number)
        number = rules.pass_of(known.breaker)
        if number is not None:
            return Passed(component, number)
        raise self._refusal(component, known.breaker)

    def _tried(self, old: Breaker, now: datetime) -> Breaker:
        return rules.trial(old, now, self._terms) if rules.is_due(old, now, self._terms) else old

    def _refusal(self, component: str, found: Breaker) -> CircuitOpen:
        wait_s = self._left_s(found)
        if found.state == "half_open":
            wait_s = min(wait_s, rules.TRIAL_S)
        return CircuitOpen(component, found.reason, max(wait_s, 1.0))

    async def failed(self, passed: Passed, reason: str, wait_s: float = 0.0) -> float:
        """Tell that the component failed a call; `reason` is in words of ours.

        Returns: for how many seconds it isn't asked from now on; 0: it is.
        """
        reason = reason[:REASON_LENGTH_MAX]
        known = self._known[passed.component]
        async with known.lock:
            await self._change(
                passed.component,
                known,
                lambda old, now: rules.failed(old, passed.number, now, self._terms, reason, wait_s),
            )
        return max(self._left_s(known.breaker), 0.0)

    def _left_s(self, found: Breaker) -> float:
        return 0.0 if found.until is None else (found.until - self._clock.now()).total_seconds()

    async def succeeded(self, passed: Passed) -> None:
        """Tell that the component answered a call."""
        await self._take_in(passed, lambda old, _: rules.succeeded(old, passed.number))

    async def unsaid(self, passed: Passed) -> None:
        """Tell that a call ended and says nothing about the component: it was cancelled, say."""
        await self._take_in(passed, lambda old, now: rules.unsaid(old, passed.number, now))

    async def trip(self, component: str, reason: str) -> None:
        """Open a circuit, unless it is: it was seen to fail elsewhere than in calls."""

        def decide(old: Breaker, now: datetime) -> Breaker:
            if old.state == "open":
                return old
            return rules.opened(old, now, self._terms, reason[:REASON_LENGTH_MAX], failures=0)

        await self._decided(component, decide)

    async def recovered(self, component: str) -> None:
        """Close a circuit: the component was seen to be well elsewhere than in calls."""
        await self._decided(
            component, lambda old, _: old if old.state == "closed" else rules.closed(old)
        )

    async def _decided(self, component: str, decide: _Decide) -> None:
        known = await self._of(component)
        async with known.lock:
            if known.breaker.state != "closed":
                await self._refresh(component, known)  # somebody may have reset it
            await self._change(component, known, decide)

    # ------------------------------------------------------------ what others decide

    def state(self, component: str) -> CircuitState:
        """Return how a component of a session stands, as far as `follow` has read."""
        known = self._known.get(component)
        return "closed" if known is None else known.breaker.state

    async def follow(self) -> None:
        """Know of the circuits of sessions as they change; runs until it's cancelled.

        There is one circuit for each session, so none is asked for before it ever opened.
        """
        while True:
            try:
                follower = await self._bus.follow("BOARD", [board_of(ANYBODY, CIRCUITS.name)], 0)
                try:
                    async for message in follower:
                        self._heed(message)
                finally:
                    await follower.close()
            except _AWAY as error:
                log.info("not followed", action="circuit.unfollowed", error=str(error))
                await asyncio.sleep(AGAIN_S)

    def _heed(self, message: Message) -> None:
        found = self._board.read(message)
        if found is None or not found.entity.component.startswith((SESSION, OUTSIDE)):
            return
        component = found.entity.component
        if found.entity.state == "closed" and component not in self._known:
            return
        known = self._known.setdefault(component, _Known())
        if found.number > known.revision:
            _adopt(known, found)

    async def _of(self, component: str) -> _Known:
        known = self._known.get(component)
        if known is None:
            known = self._known[component] = _Known()
            await self._refresh(component, known)
        return known

    async def _take_in(self, passed: Passed, decide: _Decide) -> None:
        known = self._known[passed.component]
        if known.breaker.state == "closed":
            known.breaker = decide(known.breaker, self._clock.now())  # nothing to store
            return
        async with known.lock:
            await self._change(passed.component, known, decide)

    async def _change(self, component: str, known: _Known, decide: _Decide) -> None:
        """Store what was decided, if others are to know it, and go by it."""
        for _ in range(TRIES_MAX):
            now = self._clock.now()
            new = decide(known.breaker, now)
            if new.state == known.breaker.state == "closed" or new is known.breaker:
                known.breaker = new
                return
            try:
                stored = await self._board.replace(
                    known.revision,
                    circuit_of(component, new, now),
                    Change(by=self._by, why=new.reason),
                    now,
                )
            except WrongLastSequence:
                await self._refresh(component, known)
                continue
            except _AWAY as error:
                log.info("kept here", action="circuit.unstored", what=component, error=str(error))
                known.breaker = new
                return
            _observe(component, known.breaker, new)
            _adopt(known, stored)
            return

    async def _refresh(self, component: str, known: _Known) -> None:
        """Go by what the board has, if that is newer, or gone."""
        try:
            found = await self._board.find([whose(component)], token_of(component))
        except _AWAY as error:
            log.info("not read", action="circuit.unread", what=component, error=str(error))
            return
        if found is not None and found.number > known.revision:
            _adopt(known, found)
        elif found is None and known.revision:  # its person was erased: it never opened
            known.revision = 0
            if known.breaker.state != "closed":
                known.breaker = Breaker()


def _adopt(known: _Known, found: Revision[Circuit]) -> None:
    known.revision, known.breaker = found.number, breaker_of(found)


def _observe(component: str, old: Breaker, new: Breaker) -> None:
    if new.state == "open" and old.state == "closed":
        log.warning("not asked", action="circuit.opened", what=component, reason=new.reason)
    elif new.state == "closed":
        log.info("asked again", action="circuit.closed", what=component)


def whose(component: str) -> Scope:
    """Return whose circuit that is.

    >>> whose("model:claude"), whose("outside:ann:vigil:t1")
    (Scope(agent='_', owner='_'), Scope(agent='vigil', owner='ann'))
    """
    kind, _, key = component.partition(":")
    return SessionKey.parse(key).scope if f"{kind}:" in (SESSION, OUTSIDE) else SHARED


def circuit_of(component: str, breaker: Breaker, now: datetime) -> Circuit:
    """Build the record of a breaker."""
    scope = whose(component)
    return Circuit(
        id=token_of(component),
        owner=scope.owner,
        agent=scope.agent,
        component=component,
        state=breaker.state,
        reason=breaker.reason,
        failures=breaker.failures,
        openings=breaker.openings,
        opened_at=breaker.opened_at,
        changed_at=now,
        until=breaker.until,
    )


def breaker_of(found: Revision[Circuit]) -> Breaker:
    """Return what a record says; its place is the number of the change."""
    one = found.entity
    return Breaker(
        state=one.state,
        number=found.number,
        failures=one.failures if one.state != "closed" else 0,
        openings=one.openings,
        reason=one.reason,
        opened_at=one.opened_at,
        until=one.until,
    )


# ---------------------------------------------------------------- for people


async def each(bus: Bus, scopes: tuple[Scope, ...]) -> AsyncGenerator[Circuit]:
    """Yield the circuits of those that are known at all, in no order. Raises: Unavailable."""
    board = KeptBoard(bus, CIRCUITS)
    for scope in scopes:
        async with aclosing(newest(bus, board_of(scope, CIRCUITS.name))) as entries:
            async for message in entries:
                revision = board.read(message)
                if revision is not None:
                    yield revision.entity


async def reset(bus: Bus, component: str, *, by: str, now: datetime) -> Circuit | None:
    """Close a circuit by hand -> the circuit as it is now; None: there is none of that name.

    Raises:
        InvalidInput: a session's, and that is no session key.
        Unavailable: the broker is away, or others change it all the time.
    """
    board = KeptBoard(bus, CIRCUITS)
    for _ in range(TRIES_MAX):
        found = await board.find([whose(component)], token_of(component))
        if found is None or found.entity.state == "closed":
            return None if found is None else found.entity
        record = circuit_of(component, rules.closed(breaker_of(found)), now)
        try:
            return (await board.replace(found.number, record, Change(by=by), now)).entity
        except WrongLastSequence:
            continue
    raise Unavailable(f"{component}: others change it all the time")
