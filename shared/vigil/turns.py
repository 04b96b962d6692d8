"""Reading a stored turn, for the services that carry out what it asks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .contracts import Effect, Turn, decode_turn
from .errors import InvalidInput
from .subjects import PART, SessionKey


def read_turn(
    subject: str, data: bytes, effects_of: Callable[[Turn], Sequence[Effect]]
) -> tuple[SessionKey, Turn]:
    """Decode a turn and the session that it was stored under.

    Args:
        effects_of: those that the caller carries out: their ids become parts of subjects.

    Raises:
        InvalidInput: it is no turn, not of a session of this stream, or names such an effect by
            what can't be part of a subject.
    """
    key = SessionKey.of_subject(subject)
    if key.turn != subject:
        raise InvalidInput("subject", f"{subject!r} holds no turns of a conversation")
    turn = decode_turn(data)
    for effect in effects_of(turn):
        if not PART.fullmatch(effect.id):
            raise InvalidInput("effects", f"{effect.id!r} is not the id of an effect")
    return key, turn
