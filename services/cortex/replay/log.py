"""A session's log, folded again from its first turn to its last, a page at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from vigil.bus.bus import Bus
from vigil.bus.message import Message
from vigil.contracts import Event, State, Turn, decode_turn
from vigil.errors import InvalidInput
from vigil.settings.config import Config
from vigil.subjects import SessionKey

from ..core.draft.chunk import Offer
from ..history import History
from ..policy import context_tokens_of, policy_of
from ..session import log as session_log
from ..session.inbox import decoded
from ..session.open_session import OFFER_SHARE_MAX
from ..session.past.inheritance import inherited
from .decision import CannotReplay, decide
from .difference import Difference, first
from .recorded_session import RecordedSession

PAGE: Final = 500
PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
EVENTS_MAX: Final = 1000
"""Events that are remembered; older ones that are still queued are read again."""
LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Replayed(msgspec.Struct, kw_only=True):
    """What became of one session."""

    session: str
    turns: int = 0
    """Folded again, and identical."""
    skipped: dict[str, int] = {}
    """Reason -> turns that can't be folded again."""
    seq: int = 0
    """Stream sequence of the first turn that differs; 0: none does."""
    difference: Difference | None = None


class SessionLog:
    """The turns of one session, each with what was known before it."""

    def __init__(self, bus: Bus, key: SessionKey, config: Config) -> None:
        self.key = key
        self.policy = policy_of(config, key)
        self._bus = bus
        self._tokens = context_tokens_of(config, key)
        self._events: OrderedDict[int, Message] = OrderedDict()
        self.history = History(config.model.history_rows, self._tokens)

    async def turns(self) -> AsyncIterator[tuple[Message, Turn | None, State | None]]:
        """Yield each turn (None: unreadable) with the state before it (None: unknown)."""
        start, before, ordinal = 1, State(), 0
        known: State | None = before
        while True:
            page, has_more = await self._bus.page(
                self.key.stream,
                [self.key.turns, self.key.in_all],
                start,
                limit=PAGE,
                bytes_max=PAGE_BYTES_MAX,
            )
            for message in page:
                if not self.key.is_turn(message.subject):
                    self._keep(message)
                    continue
                turn = _turn(message)
                is_next = turn is not None and turn.ordinal == ordinal + 1
                yield message, turn, known if is_next else None
                if turn is None:
                    known, ordinal = None, ordinal + 1
                    continue
                known, ordinal = session_log.state_after(turn, message.seq), turn.ordinal
                await session_log.grow(self._bus, self.key, self.history, message.seq, turn)
                if turn.state.start is not None and self.history.inherited is None:
                    self.history.inherited = await inherited(self._bus, self.key, turn.state.start)
            if not has_more or not page:
                return
            start = page[-1].seq + 1

    def _keep(self, message: Message) -> None:
        self._events[message.seq] = message
        if len(self._events) > EVENTS_MAX:
            self._events.popitem(last=False)

    async def event(self, seq: int) -> Event | None:
        """Return the event with that sequence; None: it is gone, or can't be read."""
        message = self._events.get(seq) or await self._bus.get_of(self.key, seq)
        try:
            return None if message is None else decoded(self.key, message)
        except InvalidInput:
            return None

    async def again(self, message: Message, turn: Turn, before: State | None) -> Turn:
        """Decide a turn again. Raises: CannotReplay."""
        if before is None:
            raise CannotReplay("the turn before it is gone, or can't be read")

        async def unsaved(start: int) -> Offer:
            limit = int(self._tokens * OFFER_SHARE_MAX)
            return await session_log.unsaved(
                self._bus, self.key, start, limit, before.taken_back, before=message.seq
            )

        made = turn.made
        cut = None if made is None else made.cut
        session = RecordedSession(self.history, cut, unsaved)
        return await decide(turn, before, policy=self.policy, read=self.event, session=session)


def _turn(message: Message) -> Turn | None:
    try:
        return decode_turn(message.data)
    except InvalidInput:
        return None


async def replay(bus: Bus, key: SessionKey, config: Config, since: datetime = LONG_AGO) -> Replayed:
    """Fold a session again, up to the first turn that differs.

    Args:
        since: turns before that are read and not compared.
    """
    log = SessionLog(bus, key, config)
    found = Replayed(session=str(key))
    async for message, turn, before in log.turns():
        if turn is None:
            _skip(found.skipped, "it can't be read")
            continue
        if turn.created_at < since:
            continue
        try:
            decided = await log.again(message, turn, before)
        except CannotReplay as error:
            _skip(found.skipped, str(error))
            continue
        found.difference = first(turn, decided)
        if found.difference is not None:
            found.seq = message.seq
            return found
        found.turns += 1
    return found


def _skip(skipped: dict[str, int], reason: str) -> None:
    skipped[reason] = skipped.get(reason, 0) + 1


async def sessions(bus: Bus) -> list[SessionKey]:
    """Return every session that has turns."""
    found: set[SessionKey] = set()
    for stream, root in (("SESSIONS", "session"), ("SYSTEM", "system")):
        for subject in await bus.subjects(stream, f"{root}.*.*.*.*"):
            key = SessionKey.of_subject(subject)
            if key.is_turn(subject):
                found.add(key)
    return sorted(found, key=str)
