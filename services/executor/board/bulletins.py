"""Texts of bulletins, put where conversations are shown them (SPEC C-2).

A text replaces the bulletin that was there when it was begun, and no other: if what it is made of
was forgotten meanwhile, there is a newer one, and the text is thrown away. The revision names the
effect, so a repeat finds that it is there.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from vigil.board.kept import BULLETINS, KeptBoard
from vigil.contracts import Change, TellParent
from vigil.contracts.board import MadeText
from vigil.contracts.board.bulletin import CURRENT
from vigil.errors import WrongLastSequence
from vigil.runtime import Context
from vigil.subjects import SessionKey

from .made import made_by

OVERTAKEN: Final = "the bulletin was changed meanwhile, so the text is thrown away"
WHY: Final = "a model put into words what is known"


class BulletinShelf:
    """Stores them."""

    def __init__(self, context: Context) -> None:
        self._clock = context.clock
        self._board = KeptBoard(context.bus, BULLETINS)

    async def put(self, key: SessionKey, effect: TellParent, made: MadeText) -> str:
        """Store a text; may be repeated. Return why it isn't stored; empty: it is.

        Raises:
            Unavailable: try again later.
        """
        found = await self._board.find([key.scope], CURRENT)
        if found is not None and found.number == made.basis.revision:
            bulletin = replace(
                found.entity,
                text=made.text,
                made_by="model",
                made_at=made.basis.read_at,
                digest=made.basis.digest,
                is_empty=False,
            )
            change = Change(by=key.agent, why=WHY, cause=effect.id)
            try:
                await self._board.replace(found.number, bulletin, change, self._clock.now())
            except WrongLastSequence:
                return OVERTAKEN
            return ""
        is_there = found is not None and await made_by(self._board, effect.id, found) is not None
        return "" if is_there else OVERTAKEN
