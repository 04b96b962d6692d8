"""Reading the board: approvals and jobs, each as the newest entry of its subject has it.

The board is written from the turns of the sessions, so it may be a moment behind them; what may be
done to an entity is decided in its session, never here. A list reads the newest entry of every
subject of a person and keeps no more of them than it is to show, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import aclosing
from datetime import datetime
from typing import Final, Generic

import msgspec
import structlog

from ..bus.bus import Bus, Message
from ..contracts import Approval, Job, decode_board
from ..errors import InvalidInput
from ..subjects import Scope, board_of
from .entries import last_of, newest
from .mirrored import E

log = structlog.get_logger("vigil.board")

ASKED_MAX: Final = 100
"""Newest requests that are looked through for the same one."""
NAMED_MAX: Final = 10
"""Requests with one name that are told apart."""


class Located(msgspec.Struct, Generic[E], frozen=True, kw_only=True):
    """An entity, and its place on the board."""

    entity: E
    turn_seq: int
    seq: int
    """Of the entry: a write that expects it comes directly after it, or not at all."""


class Board(Generic[E]):
    """The entities of one kind: ``Board(bus, Job)``, ``Board(bus, Approval)``."""

    def __init__(self, bus: Bus, kind: type[E]) -> None:
        self._bus = bus
        self._type = kind
        self._kind = str(kind.__struct_config__.tag)

    async def newest(
        self,
        whose: Iterable[Scope],
        *,
        limit: int,
        is_wanted: Callable[[E], bool] = lambda _: True,
        after: E | None = None,
    ) -> list[E]:
        """Return up to `limit` entities of those owners, the newest first.

        Args:
            after: only those that follow it in that order.

        Raises:
            Unavailable: the broker is away, or reading took too long.
        """
        found: dict[str, E] = {}
        for one in whose:
            async with aclosing(newest(self._bus, board_of(one, self._kind))) as entries:
                async for message in entries:
                    located = self._found(message)
                    if located is None:
                        continue
                    # A follower that began again brings some twice.
                    found.pop(message.subject, None)
                    is_later = after is None or _rank(located.entity) < _rank(after)
                    if is_later and is_wanted(located.entity):
                        found[message.subject] = located.entity
                    if len(found) > 2 * limit:
                        found = _newest(found, limit)
        return list(_newest(found, limit).values())

    async def find(self, whose: Iterable[Scope], id_: str) -> E | None:
        """Return the entity with that id, if one of those owners has it, or None.

        Args:
            id_: checked: it becomes a part of a subject.
        """
        found = await self.entry(whose, id_)
        return None if found is None else found.entity

    async def entry(self, whose: Iterable[Scope], id_: str) -> Located[E] | None:
        """Return the newest entry of an entity, as `find` does."""
        message = await last_of(self._bus, whose, self._kind, id_)
        return None if message is None else self._found(message)

    def _found(self, message: Message) -> Located[E] | None:
        """Return what the entry holds; None, if it can't be read."""
        try:
            entry = decode_board(message.data)
        except InvalidInput as error:
            log.warning("unreadable", action="board.unreadable", seq=message.seq, error=str(error))
            return None
        if not isinstance(entry.entity, self._type):
            return None
        return Located(entity=entry.entity, turn_seq=entry.turn_seq, seq=message.seq)


async def open_approvals(bus: Bus, whose: Iterable[Scope], called: str) -> list[Approval]:
    """Return the open requests of those owners with that short name, or that id: one, as a rule.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """

    def is_wanted(one: Approval) -> bool:
        return one.state == "open" and called in (one.name, one.id)

    return await Board(bus, Approval).newest(whose, limit=NAMED_MAX, is_wanted=is_wanted)


async def ended_approval(bus: Bus, whose: Scope, called: str, since: datetime) -> Approval | None:
    """Return the newest request of that owner with that short name which ended since then, or the
    one with that id, whenever it ended.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """

    def is_wanted(one: Approval) -> bool:
        is_lately = one.decided_at is not None and one.decided_at >= since
        return one.state != "open" and (called == one.id or (called == one.name and is_lately))

    found = await Board(bus, Approval).newest([whose], limit=1, is_wanted=is_wanted)
    return found[0] if found else None


async def asked_since(
    bus: Bus, whose: Scope, since: datetime, tools: Collection[str]
) -> list[Approval]:
    """Return what an owner was asked for since then, of these tools, whatever came of it.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """

    def is_wanted(one: Approval) -> bool:
        return one.tool in tools and one.asked_at >= since

    return await Board(bus, Approval).newest((whose,), limit=ASKED_MAX, is_wanted=is_wanted)


def _newest(found: dict[str, E], limit: int) -> dict[str, E]:
    ordered = sorted(found.items(), key=lambda one: _rank(one[1]), reverse=True)
    return dict(ordered[:limit])


def _rank(entity: Approval | Job) -> tuple[datetime, str]:
    """Return what the newest has most of."""
    born_at = entity.created_at if isinstance(entity, Job) else entity.asked_at
    return born_at, entity.id
