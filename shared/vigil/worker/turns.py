"""Reading a stored turn, and the records of its tool calls, for whoever carries out what it asks.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final

from ..contracts import (
    Attachment,
    CallClaim,
    CallTool,
    Effect,
    ToolResultEvent,
    ToolResultPayload,
    Turn,
    decode_turn,
)
from ..contracts.tools import ServerQuestion
from ..errors import InvalidInput
from ..subjects import PART, SessionKey, token_of

LETTERS_HEADER: Final = "Vigil-Effects"
"""Has the letters of a turn that an older version stored, if it has effects."""


def may_ask(
    subject: str, older: str | None, data: bytes, letter: str, tags: Collection[bytes]
) -> bool:
    """Tell, without decoding, whether a turn that its service is brought may have work for it.

    Args:
        older: what `LETTERS_HEADER` says.
        letter: the service's in subjects.
        tags: of which a turn whose subject and headers say nothing has one, then.

    >>> old = "session.vigil.ann.t1.turn"
    >>> may_ask(old, "st", b"", "m", ()), may_ask(old, "st", b"", "s", ())
    (False, True)
    """
    kind = subject.rpartition(".")[2]
    letters = kind.removeprefix("turn-") if "-" in kind else older
    return any(tag in data for tag in tags) if letters is None else letter in letters


def session_of(subject: str) -> str:
    """Return the session of a turn as its subject has it: the lane of its turns."""
    return subject.rpartition(".")[0]


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
    if not key.is_turn(subject):
        raise InvalidInput("subject", f"{subject!r} holds no turns of a conversation")
    turn = decode_turn(data)
    for effect in effects_of(turn):
        if not PART.fullmatch(effect.id):
            raise InvalidInput("effects", f"{effect.id!r} is not the id of an effect")
    return key, turn


def is_open(turn: Turn, effect_id: str) -> bool:
    """Whether a session waits for that call, by its newest turn: its loop does, or it goes on
    without and is to be told."""
    if effect_id in turn.state.tasks:
        return True
    loop = turn.state.loop
    if loop is None or loop.waiting is None:
        return False
    return any(call.effect_id == effect_id for call in loop.waiting.calls)


def claim_of(
    key: SessionKey, call: CallTool, *, by: str, now: datetime, task: str = ""
) -> CallClaim:
    """Build the record that tells others that somebody is at it."""
    tool = call.payload.tool[:200]
    return CallClaim(effect_id=call.id, session_key=str(key), tool=tool, by=by, at=now, task=task)


def result_of(
    service: str,
    key: SessionKey,
    call_id: str,
    content: str,
    *,
    now: datetime,
    is_error: bool = False,
    is_tainted: bool = False,
    attachments: tuple[Attachment, ...] = (),
    fields: tuple[str, ...] = (),
    steps: int = 0,
    wanted: ServerQuestion | None = None,
) -> ToolResultEvent:
    """Build the answer to a call. Its id is the same for every try.

    Args:
        service: who answers; one of ours.
        key: the session that waits.
    """
    return ToolResultEvent(
        id=f"result-{token_of(service, call_id)}",
        session_key=str(key),
        created_at=now,
        caused_by=call_id,
        payload=ToolResultPayload(
            call_id=call_id,
            content=content,
            is_error=is_error,
            is_tainted=is_tainted,
            attachments=attachments,
            fields=fields,
            steps=steps,
            wanted=wanted,
        ),
    )
