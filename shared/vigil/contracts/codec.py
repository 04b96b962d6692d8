"""Encoding, decoding, and lifting of old versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from ..errors import InvalidInput
from .board import BoardEntry, SlotEntry
from .events import Event
from .mail import MailEntry
from .memories import MemoryRecord
from .outcomes import (
    Attempt,
    CallClaim,
    DeadLetter,
    DeadLetterEnd,
    Dispatch,
    Receipt,
    Said,
    TimerRecord,
)
from .past.words import PastWords
from .signals import Signal
from .tools import Pins, Shelf
from .turns import Turn

T = TypeVar("T")
Lift = Callable[[dict[str, Any]], dict[str, Any]]

_RECORDS: Final[dict[str, tuple[Any, int]]] = {
    "event": (Event, 1),
    "turn": (Turn, 2),
    "said": (Said, 1),
    "receipt": (Receipt, 1),
    "timer": (TimerRecord, 1),
    "dead_letter": (DeadLetter, 1),
    "dispatch": (Dispatch, 1),
    "attempt": (Attempt, 1),
    "dead_letter_end": (DeadLetterEnd, 1),
    "signal": (Signal, 1),
    "memory": (MemoryRecord, 1),
    "call_claim": (CallClaim, 1),
    "board": (BoardEntry, 1),
    "shelf": (Shelf, 1),
    "pins": (Pins, 1),
    "slot": (SlotEntry, 1),
    "mail": (MailEntry, 1),
    "past": (PastWords, 1),
}
"""What each record is read as, and the version of it that is written today."""
VERSIONS: Final = {name: version for name, (_, version) in _RECORDS.items()}
"""The version that is written today, by record."""


def _lift_turn_1(raw: dict[str, Any]) -> dict[str, Any]:
    """What a turn of version 1 was decided from was not kept: `Turn.made` stays None."""
    return raw


LIFTS: Final[dict[tuple[str, int], Lift]] = {("turn", 1): _lift_turn_1}
"""(record, version) -> the function that lifts that version by one."""

encode: Final = msgspec.json.Encoder().encode


class _Decoders(dict[str, msgspec.json.Decoder[Any]]):
    """Each is made for the first record of its kind: that takes 1 ms, and no service reads all."""

    def __missing__(self, record: str) -> msgspec.json.Decoder[Any]:
        found = self[record] = msgspec.json.Decoder(_RECORDS[record][0])
        return found


_DECODERS: Final = _Decoders()


_ERRORS: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def decode(record: str, data: bytes) -> Any:
    """Decode a stored record of any version.

    Raises:
        InvalidInput: the bytes are no such record, or of a version from the future.
    """
    found = _of_today(record, data)
    if found is not None:
        return found
    try:
        version = _version_decoder.decode(data).v
        if version == VERSIONS[record]:
            return _DECODERS[record].decode(data)
        return _lifted(record, version, data)
    except _ERRORS as error:
        raise InvalidInput(record, str(error)) from error


def _of_today(record: str, data: bytes) -> Any:
    """Return a record of today's version, as nearly all are, decoded once; None: it's no such."""
    try:
        found = _DECODERS[record].decode(data)
    except _ERRORS:
        return None
    return found if found.v == VERSIONS[record] else None


class _Versioned(msgspec.Struct):
    v: int = 1


_version_decoder: Final = msgspec.json.Decoder(_Versioned)


def _lifted(record: str, version: int, data: bytes) -> Any:
    current = VERSIONS[record]
    if not 1 <= version <= current:
        raise InvalidInput(record, f"version {version} is not known here (up to {current})")
    raw = msgspec.json.decode(data, type=dict[str, Any])
    for v in range(version, current):
        raw = LIFTS[record, v](raw) | {"v": v + 1}
    return msgspec.convert(raw, _RECORDS[record][0])


def decode_event(data: bytes) -> Event:
    """Decode a stored event of any version. Raises: InvalidInput."""
    event: Event = decode("event", data)
    return event


def decode_turn(data: bytes) -> Turn:
    """Decode a stored turn of any version. Raises: InvalidInput."""
    turn: Turn = decode("turn", data)
    return turn


def decode_said(data: bytes) -> Said:
    """Decode what the agent said. Raises: InvalidInput."""
    said: Said = decode("said", data)
    return said


def decode_receipt(data: bytes) -> Receipt:
    """Decode the outcome of a send. Raises: InvalidInput."""
    receipt: Receipt = decode("receipt", data)
    return receipt


def decode_timer(data: bytes) -> TimerRecord:
    """Decode a schedule. Raises: InvalidInput."""
    timer: TimerRecord = decode("timer", data)
    return timer


def decode_dead_letter(data: bytes) -> DeadLetter:
    """Decode a dead letter. Raises: InvalidInput."""
    letter: DeadLetter = decode("dead_letter", data)
    return letter


def decode_dispatch(data: bytes) -> Dispatch:
    """Decode an order to carry a message over a channel. Raises: InvalidInput."""
    dispatch: Dispatch = decode("dispatch", data)
    return dispatch


def decode_attempt(data: bytes) -> Attempt:
    """Decode one try of a channel. Raises: InvalidInput."""
    attempt: Attempt = decode("attempt", data)
    return attempt


def decode_dead_letter_end(data: bytes) -> DeadLetterEnd:
    """Decode what a person did with a dead letter. Raises: InvalidInput."""
    end: DeadLetterEnd = decode("dead_letter_end", data)
    return end


def decode_signal(data: bytes) -> Signal:
    """Decode a signal. Raises: InvalidInput."""
    signal: Signal = decode("signal", data)
    return signal


def decode_memory(data: bytes) -> MemoryRecord:
    """Decode a record of MEMORIES. Raises: InvalidInput."""
    record: MemoryRecord = decode("memory", data)
    return record


def decode_call_claim(data: bytes) -> CallClaim:
    """Decode the claim of a tool call. Raises: InvalidInput."""
    claim: CallClaim = decode("call_claim", data)
    return claim


def decode_board(data: bytes) -> BoardEntry:
    """Decode an entry of the board. Raises: InvalidInput."""
    entry: BoardEntry = decode("board", data)
    return entry


def decode_shelf(data: bytes) -> Shelf:
    """Decode what a source of tools offers. Raises: InvalidInput."""
    shelf: Shelf = decode("shelf", data)
    return shelf


def decode_pins(data: bytes) -> Pins:
    """Decode what was approved of an MCP server. Raises: InvalidInput."""
    pins: Pins = decode("pins", data)
    return pins


def decode_slot(data: bytes) -> SlotEntry:
    """Decode an entry of the timetable's ledger. Raises: InvalidInput."""
    slot: SlotEntry = decode("slot", data)
    return slot


def decode_mail(data: bytes) -> MailEntry:
    """Decode a mail that came to a mailbox. Raises: InvalidInput."""
    mail: MailEntry = decode("mail", data)
    return mail


def decode_past(data: bytes) -> PastWords:
    """Decode what was said before a conversation was imported. Raises: InvalidInput."""
    words: PastWords = decode("past", data)
    return words
