"""Deleting a message of a stream for good, also while a backup reads that stream."""

from __future__ import annotations

from typing import Any, Final

from ..backoff import Backoff
from ..bus.bus import Bus, BusError
from ..errors import OutcomeUnknown, VigilError
from ..worker.patience import AWAY, Patience, after_s

PATIENCE_S: Final = 120.0
"""How long the broker may refuse to delete; it does while a backup reads that stream."""
AGAIN_S: Final = 0.2
ERR_NO_MESSAGE: Final = 10043
ERR_SEQUENCE_NOT_FOUND: Final = 10037


async def erase_message(bus: Bus, stream: str, seq: int, *, is_secret: bool = True) -> None:
    """Delete a message and, if it is secret, overwrite its bytes. Harmless if it's gone."""
    request: dict[str, Any] = {"seq": seq, "no_erase": not is_secret}

    async def delete() -> None:
        try:
            await bus.api(f"STREAM.MSG.DELETE.{stream}", request)
        except BusError as error:
            is_gone = error.code in (ERR_NO_MESSAGE, ERR_SEQUENCE_NOT_FOUND)
            if not is_gone and await bus.get(stream, seq) is not None:
                raise  # a backup reads this stream

    await patience((BusError, OutcomeUnknown)).run(delete)


def patience(errors: tuple[type[VigilError], ...] = AWAY) -> Patience:
    """Return what repeats a step of an erasure while the broker is away, or busy."""
    return Patience(None, Backoff(AGAIN_S, AGAIN_S), errors=errors, is_over=after_s(PATIENCE_S))
