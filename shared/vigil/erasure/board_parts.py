"""What stands on the board of some conversations alone, and is deleted with them.

That are their requests for approval, which hold the arguments of calls, and the standing grants
that hold in one of them: left, they would hold for the next conversation of that name. A grant that
the gateway ended when it was asked to delete the conversation is empty, and stays to tell that.
Those of `vigil.toml` go by what stands there.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TypeVar

from ..bus.bus import Bus
from ..contracts import Approval, Grant, GrantUse, decode_board
from ..errors import InvalidInput
from ..grants.rule import is_emptied
from ..subjects import Scope, SessionKey, board_of
from .deletion import erase_message

E = TypeVar("E", Approval, Grant, GrantUse)
_Found = list[tuple[int, E]]


class BoardParts:
    """Deletes what sessions of one scope have there.

    Raises, from each method: Unavailable, BusError: call again.
    """

    def __init__(self, bus: Bus, whose: Scope, sessions: Collection[SessionKey]) -> None:
        self._bus = bus
        self._whose = whose
        self._sessions = {str(one) for one in sessions}

    async def sweep(self) -> int:
        """Delete it; return how many records it were."""
        found = [
            seq
            for seq, request in await self._read("approval", Approval)
            if request.session_key in self._sessions
        ]
        return await self._erase([*found, *await self._of_grants(None)])

    async def sweep_left(self, done_at: datetime) -> int:
        """Delete what was left of conversations that were deleted by `done_at`, when less went with
        them; return how many records it were.

        Which sessions they had started nobody knows any more: an open request of a session of which
        nothing is stored can't be decided by anybody.
        """
        found = [
            seq
            for seq, request in await self._read("approval", Approval)
            if request.asked_at <= done_at
            and (
                request.session_key in self._sessions
                or (request.state == "open" and await self._is_gone(request.session_key))
            )
        ]
        return await self._erase([*found, *await self._of_grants(done_at)])

    async def _of_grants(self, until: datetime | None) -> list[int]:
        """Return where the grants are that hold in one of the sessions, and their uses.

        Args:
            until: only those that were made by then.
        """
        theirs = [
            (seq, grant)
            for seq, grant in await self._read("grant", Grant)
            if grant.session_key in self._sessions
            and grant.made_by != "configuration"
            and (until is None or grant.made_at <= until)
        ]
        newest = {grant.id: (seq, grant) for seq, grant in theirs}
        kept = {seq for seq, grant in newest.values() if is_emptied(grant)}
        ended = {grant.id for seq, grant in newest.values() if seq not in kept}
        uses = await self._read("use", GrantUse) if ended else []
        # The uses first: with the grant it would be forgotten which they are.
        return [
            *(seq for seq, use in uses if use.id in ended),
            *(seq for seq, _ in theirs if seq not in kept),
        ]

    async def _read(self, kind: str, record: type[E]) -> _Found[E]:
        """Return every state of those of a kind, and its place, in order."""
        found: _Found[E] = []
        for message in await self._bus.read("BOARD", [board_of(self._whose, kind)]):
            try:
                entity = decode_board(message.data).entity
            except InvalidInput:
                continue
            if isinstance(entity, record):
                found.append((message.seq, entity))
        return found

    async def _is_gone(self, session: str) -> bool:
        key = SessionKey.parse(session)
        return await self._bus.get_next(key.stream, key.everything, 1) is None

    async def _erase(self, places: list[int]) -> int:
        """Delete them one after another: the newest state of each is the last to go."""
        for seq in places:
            await erase_message(self._bus, "BOARD", seq)
        return len(places)
