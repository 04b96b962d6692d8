"""Answers what a chain asks, by reads of the log. One story of one session.

Everything is bounded: how many records a scan looks at, and how many bytes. What is read is
reduced at once (:mod:`.facts`); no bytes are kept.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from vigil.bus.bus import Bus, Message
from vigil.contracts import DeadLetterEnd, ToolResultEvent, Turn, decode_turn
from vigil.errors import InvalidInput
from vigil.observe import trace
from vigil.subjects import SessionKey

from .deeds import is_asked_by
from .facts import Fact, LetterFact, fact_of
from .story import (
    All,
    Ask,
    Asking,
    At,
    FirstTurn,
    FoundFacts,
    In,
    LettersAbout,
    Newest,
    Next,
    ResultOf,
    Turns,
    TurnWith,
)

T = TypeVar("T")
DEAD: Final = "DEAD"
SCAN_RECORDS_MAX: Final = 5000
SCAN_BYTES_MAX: Final = 32 * 1024 * 1024
FACTS_MAX: Final = 100
"""Records that one question may bring into a story."""
WINDOW: Final = 256
"""Sequences that the first window of a search spans; each later one twice as many."""
QUIET_S: Final = 0.5
"""A scan that hears nothing for so long asks whether it has heard it all: what it would end on may
be gone, or the broker slow."""


async def scan(
    bus: Bus,
    stream: str,
    filters: Sequence[str],
    visit: Callable[[Message], bool],
    *,
    after: int = 0,
    before: int | None = None,
) -> None:
    """Show `visit` what is stored now between two sequences (both excluded), until it says True.

    One record at a time: what `visit` doesn't keep is let go.
    """
    follower = await bus.follow(stream, filters, after + 1)
    try:
        if follower.waiting == 0:
            return
        while True:
            message = await follower.next_within(QUIET_S)
            if message is None:
                if await _is_over(bus, stream, filters, after, before):
                    return
                continue
            if (before is not None and message.seq >= before) or visit(message):
                return
            if message.pending == 0:
                return
            after = message.seq
    finally:
        await follower.close()


async def _is_over(
    bus: Bus, stream: str, filters: Sequence[str], after: int, before: int | None
) -> bool:
    """Return whether nothing is stored between two sequences (both excluded)."""
    for subject in filters:
        message = await bus.get_next(stream, subject, after + 1)
        if message is not None and (before is None or message.seq < before):
            return False
    return True


class Budget:
    """What a scan may still read."""

    def __init__(self, count: int = SCAN_RECORDS_MAX, size: int = SCAN_BYTES_MAX) -> None:
        self._count = count
        self._bytes = size

    def take(self, message: Message) -> bool:
        """Count a message; False: that was the last one."""
        self._count -= 1
        self._bytes -= len(message.data)
        return self._count > 0 and self._bytes > 0


async def newest_first(
    bus: Bus,
    stream: str,
    filters: Sequence[str],
    budget: Budget,
    reduce: Callable[[Message], T | None],
) -> AsyncGenerator[T, None]:
    """Yield what `reduce` makes of records, the newest first, in windows that grow.

    A window is read before anything of it is yielded; of its records only what `reduce` returns
    is held.
    """
    newest = [await bus.get_last(stream, subject) for subject in filters]
    span, end = WINDOW, max((m.seq for m in newest if m is not None), default=0) + 1
    kept: list[T] = []
    is_over = False

    def visit(message: Message) -> bool:
        nonlocal is_over
        made = reduce(message)
        if made is not None:
            kept.append(made)
        is_over = not budget.take(message)
        return is_over

    while end > 1 and not is_over:
        start = max(end - span, 1)
        await scan(bus, stream, filters, visit, after=start - 1, before=end)
        for made in reversed(kept):
            yield made
        kept.clear()
        span, end = span * 2, start


def to_fact(message: Message) -> Fact:
    parent = message.header(trace.HEADER)
    return fact_of(message.stream, message.seq, message.subject, message.data, parent)


class Reader:
    """Reads one session for one story."""

    def __init__(self, bus: Bus, key: SessionKey) -> None:
        self._bus = bus
        self._key = key
        self._stream = key.stream

    async def answer(self, asking: Asking[T]) -> T:
        """Answer what a chain asks until it is told. Raises: Unavailable."""
        answer: Any = None
        while True:
            try:
                ask = asking.send(answer)
            except StopIteration as end:
                value: T = end.value
                return value
            answer = await self._one(ask)

    async def _one(self, ask: Ask) -> Any:
        if isinstance(ask, In):
            return await Reader(self._bus, ask.key)._one(ask.ask)
        return await _ANSWERS[type(ask)](self, ask)

    async def _newest(self, ask: Newest) -> Fact | None:
        return self._fact(await self._bus.get_last(self._stream, ask.subject))

    async def _next(self, ask: Next) -> Fact | None:
        return self._fact(await self._bus.get_next(self._stream, ask.subject, ask.after + 1))

    def _fact(self, message: Message | None) -> Fact | None:
        return None if message is None else to_fact(message)

    async def _at(self, ask: At) -> Fact | None:
        message = await self._bus.get_of(self._key, ask.seq) if ask.seq > 0 else None
        if message is None or not message.subject.startswith(self._key.root + "."):
            return None
        return self._fact(message)

    async def _all(self, ask: All) -> FoundFacts:
        found = _Finds()
        for subject in ask.subjects:
            # Most have no record, or one: looking costs less than a consumer.
            last = await self._bus.get_last(self._stream, subject)
            if last is None:
                continue
            first = await self._bus.get_next(self._stream, subject, 1)
            if first is None or first.seq == last.seq:
                found.visit(last)
            else:
                await scan(self._bus, self._stream, [subject], found.visit, before=last.seq + 1)
        return found.found()

    # ------------------------------------------------------------ turns

    async def _first_turn(self, ask: FirstTurn) -> Fact | None:
        """Find it by halving: about log2(last sequence) single reads."""
        newest = await self._bus.get_last(self._stream, self._key.turns)
        low, high = ask.after + 1, min(newest.seq if newest else 0, (ask.before or 2**62) - 1)
        best: Message | None = None
        while low <= high:
            middle = (low + high) // 2
            found = await self._bus.get_next(self._stream, self._key.turns, middle)
            if found is None or found.seq > high:
                high = middle - 1
            elif _holds(found, ask.test):
                best, high = found, middle - 1
            else:
                low = found.seq + 1
        return self._fact(best)

    async def _turns(self, ask: Turns) -> FoundFacts:
        found = _Finds()

        def visit(message: Message) -> bool:
            turn = _turn_of(message)
            is_full = found.visit(message, is_wanted=turn is not None and ask.is_about(turn))
            return is_full or (turn is not None and ask.is_last(turn))

        await scan(
            self._bus, self._stream, [self._key.turns], visit, after=ask.after, before=ask.before
        )
        return found.found()

    async def _turn_with(self, ask: TurnWith) -> Fact | None:
        """Look back in windows that grow: a send is settled soon after its turn."""
        needle = ask.effect_id.encode()
        found = _Finds()

        def visit(message: Message) -> bool:
            is_wanted = needle in message.data and _holds(message, _decides(ask.effect_id))
            return found.visit(message, is_wanted=is_wanted) or is_wanted

        span, end = 64, ask.before
        while end > 1 and not found.facts and not found.is_cut:
            start = max(end - span, 1)
            await scan(
                self._bus, self._stream, [self._key.turns], visit, after=start - 1, before=end
            )
            span, end = span * 8, start
        return found.facts[0] if found.facts else None

    async def _result_of(self, ask: ResultOf) -> Fact | None:
        needle = ask.call_id.encode()
        found = _Finds()

        def visit(message: Message) -> bool:
            body = to_fact(message).body if needle in message.data else None
            is_it = isinstance(body, ToolResultEvent) and body.payload.call_id == ask.call_id
            return found.visit(message, is_wanted=is_it) or is_it

        where = self._key.in_event("tool_result")
        newest = await self._bus.get_last(self._stream, where)
        if newest is not None and newest.seq > ask.after:
            await scan(self._bus, self._stream, [where], visit, after=ask.after)
        return found.facts[0] if found.facts else None

    # ------------------------------------------------------------ dead letters

    async def _letters(self, ask: LettersAbout) -> FoundFacts:
        key = self._key
        subject = f"dead.*.{key.agent}.{key.user}.{key.thread}"
        found = _Finds()
        if await self._bus.get_last(DEAD, subject) is None:
            return found.found()
        names: set[str] = set()

        def visit(message: Message) -> bool:
            return found.visit(message, is_wanted=_is_wanted(to_fact(message), ask, names))

        await scan(self._bus, DEAD, [subject], visit)
        return found.found()


_ANSWERS: Final[dict[type[Ask], Callable[[Reader, Any], Awaitable[Any]]]] = {
    At: Reader._at,
    Newest: Reader._newest,
    Next: Reader._next,
    All: Reader._all,
    FirstTurn: Reader._first_turn,
    Turns: Reader._turns,
    TurnWith: Reader._turn_with,
    ResultOf: Reader._result_of,
    LettersAbout: Reader._letters,
}


class _Finds:
    """What a scan found, up to what it may look at."""

    def __init__(self) -> None:
        self._budget = Budget()
        self.facts: list[Fact] = []
        self.is_cut = False

    def visit(self, message: Message, *, is_wanted: bool = True) -> bool:
        """Take a record if it's wanted; True: no more may be looked at."""
        if is_wanted:
            self.facts.append(to_fact(message))
        self.is_cut = not self._budget.take(message) or len(self.facts) >= FACTS_MAX
        return self.is_cut

    def found(self) -> FoundFacts:
        """Return what was found, by sequence."""
        return FoundFacts(tuple(sorted(self.facts, key=lambda fact: fact.seq)), self.is_cut)


def _is_wanted(fact: Fact, ask: LettersAbout, names: set[str]) -> bool:
    """Tell whether a record of DEAD is about what is asked; `names` are the letters so far."""
    match fact.body:
        case DeadLetterEnd():
            return fact.body.letter_id in names
        case LetterFact() as letter:
            is_wanted = _is_about(letter, ask)
            if is_wanted:
                names.add(letter.id)
            return is_wanted
        case _:
            return False


def _is_about(letter: LetterFact, ask: LettersAbout) -> bool:
    if ask.letter_id is not None:
        return letter.id == ask.letter_id
    if ask.effect_id is not None:
        return letter.effect_id == ask.effect_id
    return bool(ask.seq) and letter.seq == ask.seq and letter.effect_id is None


def _decides(effect_id: str) -> Callable[[Turn], bool]:
    return lambda turn: is_asked_by(turn, effect_id)


def _turn_of(message: Message) -> Turn | None:
    try:
        return decode_turn(message.data)
    except InvalidInput:
        return None


def _holds(message: Message, test: Callable[[Turn], bool]) -> bool:
    """Apply a test to a turn; one that can't be read fails it."""
    turn = _turn_of(message)
    return turn is not None and test(turn)
