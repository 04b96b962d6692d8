"""Dead letters as a fold of the stream DEAD, and what can be done with one. Pure.

A letter is open until somebody ended it: requeued it, or discarded it. An end is final: what is
requeued and dies again is another letter, with an id of its own. A letter may be stored twice
under one id, after a crash; the first place counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from vigil.contracts import (
    DEAD_LETTER_BYTES_MAX,
    DeadLetter,
    DeadLetterEnd,
    External,
    Instant,
    UserMessage,
    decode_dead_letter,
    decode_dead_letter_end,
    decode_event,
)
from vigil.errors import InvalidInput
from vigil.subjects import ENDED, SessionKey, token_of

from ..http.wire import Answer

Action = Literal["requeued", "discarded"]


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter, where it lies, and what became of it."""

    seq: int
    key: SessionKey
    record: DeadLetter
    end: DeadLetterEnd | None = None

    @property
    def subject(self) -> str:
        """Where it is stored."""
        return self.key.dead(self.record.service)


class Letters:
    """The fold: letters and ends, taken in the order of the stream.

    Args:
        with_data: the id of the one letter whose bytes are kept; the others' are forgotten.
    """

    def __init__(self, with_data: str = "") -> None:
        self._with_data = with_data
        self._letters: dict[str, Letter] = {}
        self._ends: dict[str, DeadLetterEnd] = {}
        self.end_seqs: dict[SessionKey, int] = {}
        """The last end of each session."""

    def take(self, seq: int, subject: str, data: bytes) -> None:
        """Take the next message of DEAD. Raises: InvalidInput, it can't be read."""
        key = SessionKey.of_subject(subject)
        if subject.split(".")[1] == ENDED:
            self.end_seqs[key] = seq
            end = decode_dead_letter_end(data)
            self._ends.setdefault(end.letter_id, end)
            return
        record = decode_dead_letter(data)
        if record.id != self._with_data:
            record = msgspec.structs.replace(record, data=b"")
        self._letters.setdefault(record.id, Letter(seq=seq, key=key, record=record))

    def all(self) -> list[Letter]:
        """Return every letter, the oldest first."""
        return [
            msgspec.structs.replace(letter, end=self._ends.get(letter.record.id))
            for letter in self._letters.values()
        ]

    def get(self, letter_id: str) -> Letter | None:
        return next((one for one in self.all() if one.record.id == letter_id), None)


def page(
    letters: Iterable[Letter], *, only_open: bool, service: str | None, after: int, limit: int
) -> tuple[list[Letter], int | None]:
    """Select letters -> (those of this page, the sequence after which the next one begins)."""
    wanted = [
        letter
        for letter in letters
        if letter.seq > after
        and not (only_open and letter.end is not None)
        and service in (None, letter.record.service)
    ]
    found = wanted[:limit]
    return found, found[-1].seq if len(wanted) > limit else None


# ---------------------------------------------------------------- how it's tried again


class Ask(msgspec.Struct, frozen=True):
    """The service that gave it up tries again."""

    service: str


class Copy(msgspec.Struct, frozen=True):
    """A session has passed it, so it comes again as a new event."""

    event: UserMessage | External


class Never(msgspec.Struct, frozen=True):
    """It can't be tried again."""

    reason: str


def way_back(letter: Letter) -> Ask | Copy | Never:
    """Decide how a dead letter is tried again (`letter` with its bytes)."""
    record = letter.record
    if record.service in ("delivery", "executor", "memory", "scheduler"):
        return Ask(record.service)
    if record.service != "cortex":
        return Never("what an outside program published can't be requeued: publish it again")
    return _event_again(letter)


def _event_again(letter: Letter) -> Copy | Never:
    record, key = letter.record, letter.key
    if key.is_turn(record.subject):
        return Never("a turn that can't be read is not requeued: the session went on without it")
    if len(record.data) >= DEAD_LETTER_BYTES_MAX:
        return Never("it is larger than what is kept of a dead letter")
    try:
        event = decode_event(record.data)
    except InvalidInput as error:
        return Never(f"it can't be read: {error}")
    if event.session_key != str(key):
        return Never(f"it says that it belongs to {event.session_key}")
    if not isinstance(event, UserMessage | External):
        kind = str(event.__struct_config__.tag)
        return Never(f"a {kind} event belongs to its moment, and that has passed")
    return Copy(_renewed(event, record.id))


def _renewed(event: UserMessage | External, letter_id: str) -> UserMessage | External:
    """Return the event under an id of its own: the same for each try of this letter."""
    id_ = f"requeued-{token_of('requeue', letter_id)}"
    if isinstance(event, UserMessage):
        # The session itself knows the ids of keyed messages, so a second copy changes nothing.
        payload = msgspec.structs.replace(event.payload, is_keyed=True)
        return msgspec.structs.replace(event, id=id_, caused_by=event.id, payload=payload)
    return msgspec.structs.replace(event, id=id_, caused_by=event.id)


# ---------------------------------------------------------------- what a client sees


class Ended(Answer, frozen=True, kw_only=True):
    """What a person did with it."""

    action: Action
    by: str
    at: Instant


class DeadLetterView(Answer, frozen=True, kw_only=True):
    """A dead letter. `subject` and `source_seq` tell where in the log it comes from."""

    id: str
    seq: int
    """Its place among the dead letters: what `after` takes."""
    service: str
    session_key: str
    cause: str
    at: Instant
    stream: str
    source_seq: int
    subject: str
    effect_id: str | None = None
    """The message that no channel took, if that is what died."""
    ended: Ended | None = None


class DeadLetterPage(Answer, frozen=True, kw_only=True):
    """Dead letters, the oldest first. `next_after` continues; null: that was all."""

    letters: tuple[DeadLetterView, ...]
    next_after: int | None


class DeadLetterDetail(Answer, frozen=True, kw_only=True):
    """A dead letter and what died. `data` is JSON as it was, else base64 in `unreadable`."""

    letter: DeadLetterView
    data: Any
    text: str | None = None
    """What was to be said, if it's a message that no channel took."""
    event_id: str | None = None
    """Of the copy, once it was requeued as a new event."""


def view(letter: Letter) -> DeadLetterView:
    """Translate a letter for a client."""
    record, end = letter.record, letter.end
    return DeadLetterView(
        id=record.id,
        seq=letter.seq,
        service=record.service,
        session_key=str(letter.key),
        cause=record.cause,
        at=record.at,
        stream=record.stream,
        source_seq=record.seq,
        subject=record.subject,
        effect_id=record.effect_id,
        ended=None if end is None else Ended(action=end.action, by=end.by, at=end.at),
    )
