"""Which lines of a transcript were taken back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from vigil.bus.bus import Message
from vigil.contracts import decode_turn
from vigil.contracts.history import TakenBack
from vigil.errors import InvalidInput

from ..http.wire import TranscriptMessage


def taken_back_in(newest: Message | None) -> tuple[TakenBack, ...]:
    """Return what was taken back in a session by its newest turn; nothing if it can't be read."""
    try:
        return () if newest is None else decode_turn(newest.data).state.taken_back
    except InvalidInput:
        return ()


def marked(
    lines: Iterable[TranscriptMessage], taken_back: Sequence[TakenBack]
) -> Iterator[TranscriptMessage]:
    """Yield the lines, those of older versions with what took their place."""
    for line in lines:
        by = next((one.by for one in taken_back if _is_of(line, one)), None)
        yield line if by is None else msgspec.structs.replace(line, taken_back_by=by)


def _is_of(line: TranscriptMessage, one: TakenBack) -> bool:
    """Whether a line was said by a person after the message, or decided after it was taken up."""
    if line.role == "user":
        return one.said_from <= line.seq < one.by
    is_between = line.turn_seq is not None and one.turns_after < line.turn_seq < one.by
    return is_between or line.caused_by == one.event_id  # an answer may be decided meanwhile
