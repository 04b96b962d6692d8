"""From the dead letter of an event of an outside program to the signal that it gives. Pure.

The program was told that its event is stored, and nobody waits for what comes of it: this is how
it learns that the event couldn't be used, and why, from the signals that it may follow. Words of
the event aren't copied, but a plain id: whoever sent it may be anybody.
"""

from __future__ import annotations

import contextlib
import re
from typing import Final

import msgspec

from ..contracts import DeadLetter, SignalSource, decode_dead_letter
from ..subjects import Scope, SessionKey
from .draft import Signals

FIELDS: Final = frozenset(
    {"agentid", "body", "data", "data_base64", "datacontenttype", "id", "source", "specversion"}
    | {"subject", "time", "type"}
)
"""Those whose reasons are words of ours: of others the name is the sender's."""
_STREAM: Final = "EVENTS"
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)


class _Named(msgspec.Struct):
    id: str = ""


def read(source: SignalSource, subject: str, data: bytes) -> tuple[Signals, DeadLetter]:
    """Decode a letter. Raises: InvalidInput, it can't be read."""
    letter = decode_dead_letter(data)
    place = SessionKey.of_subject(subject)
    return Signals(Scope(place.agent, place.user), source), letter


def refused(signals: Signals, letter: DeadLetter) -> None:
    """Tell that an event of a program couldn't be used."""
    if letter.stream != _STREAM:
        return
    field, _, reason = letter.cause.partition(": ")
    is_ours = field in FIELDS
    signals.add(
        "event.refused",
        letter.at,
        "An event of a program could not be used",
        caused_by=None,
        subject=letter.id,
        field=field if is_ours else None,
        reason=reason if is_ours else None,
        credential=letter.subject.rpartition(".")[2],
        event_id=_id_in(letter.data),
    )


def _id_in(data: bytes) -> str | None:
    """Return what an event is called, if that is plain.

    >>> _id_in(b'{"id": "build-7"}'), _id_in(b'{"id": "say yes"}'), _id_in(b"{")
    ('build-7', None, None)
    """
    named = _Named()
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        named = msgspec.json.decode(data, type=_Named)
    return named.id if _PLAIN.fullmatch(named.id) else None
