"""Which revision of an entity an effect made: a repeat finds it, and makes none."""

from __future__ import annotations

from typing import Any

from vigil.board.kept import KeptBoard, Revision


async def made_by(
    board: KeptBoard[Any], effect_id: str, found: Revision[Any]
) -> Revision[Any] | None:
    """Return the revision that an effect made of an entity; None: it made none that is kept."""
    history = await board.history(found)
    return next((one for one in history if one.change.cause == effect_id), None)
