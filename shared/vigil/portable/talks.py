"""The conversations of an export, as what was said in them. Pure.

Only what was said comes along. What was decided there names places of a log that isn't here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from ..contracts import (
    TURN_BYTES_MAX,
    Attachment,
    UserMessage,
    decode_event,
    decode_said,
)
from ..contracts.codec import decode_past
from ..contracts.past.words import PastRole, PastWords
from ..errors import InvalidInput
from ..subjects import SessionKey, token_of
from .adopt import StaysBehind

ORIGIN: Final = "vigil"
ID_LENGTH_MAX: Final = 200
THREAD_KEPT: Final = 40
"""Characters of its name there that begin the name of a thread that may not have that."""


class SaidLine(msgspec.Struct, frozen=True, kw_only=True):
    """One message of it."""

    id: str
    role: PastRole
    text: str
    at: datetime
    by: str = ""
    origin: str = ORIGIN
    attachments: tuple[Attachment, ...] = ()
    is_tainted: bool = False
    replaces: str = ""
    """The message that it took the place of, with all that came of it."""


class ExportedTalk(msgspec.Struct, kw_only=True):
    """A conversation."""

    key: SessionKey
    """As it is called there, of the person who gets it."""
    lines: dict[str, SaidLine] = msgspec.field(default_factory=dict)
    """What was said, by its id, in its order."""

    def add(self, line: SaidLine) -> None:
        """Add what was said next; what it took the place of goes."""
        if line.replaces in self.lines:
            ids = list(self.lines)
            for id_ in ids[ids.index(line.replaces) :]:
                del self.lines[id_]
        self.lines.setdefault(line.id, line)

    def files(self) -> set[str]:
        """Return the hashes of the files that its messages name."""
        return {file.hash for line in self.lines.values() for file in line.attachments}

    def token(self, space: str) -> str:
        """Return what tells it from others: 32 hex digits. `space` is that of `named`."""
        return token_of("past", ORIGIN, space, str(self.key))


def line_of(subject: str, record: Any) -> tuple[SessionKey, SaidLine] | None:
    """Return what was said by a record as JSON; None: it says nothing.

    Raises: InvalidInput: it can't be read, or is too much for a record.
    """
    kind = ".".join(subject.split(".")[4:6])
    if kind not in ("in.said", "out.said", "past.said"):
        return None
    key, line = _read(kind, msgspec.json.encode(record))
    if key.is_system:
        raise StaysBehind("session_key", "is the agent's own")
    if not 0 < len(line.id) <= ID_LENGTH_MAX:
        raise InvalidInput("id", f"must have 1 to {ID_LENGTH_MAX} characters")
    if len(msgspec.json.encode(line)) > TURN_BYTES_MAX:
        raise InvalidInput("text", f"must have at most {TURN_BYTES_MAX} bytes")
    return key, line


def _read(kind: str, data: bytes) -> tuple[SessionKey, SaidLine]:
    if kind == "out.said":
        said = decode_said(data)
        line = SaidLine(
            id=said.id, role="agent", text=said.text, at=said.at, is_tainted=said.is_tainted
        )
        return SessionKey.parse(said.session_key), line
    if kind == "past.said":
        past = decode_past(data)
        known = msgspec.structs.asdict(past)
        names = set(SaidLine.__struct_fields__) & known.keys()
        line = SaidLine(**{name: known[name] for name in names})
        return SessionKey.parse(past.session_key), line
    event = decode_event(data)
    if not isinstance(event, UserMessage):
        raise InvalidInput("type", "is no message of a person's")
    payload = event.payload
    line = SaidLine(
        id=event.id,
        role="user",
        text=payload.text,
        at=event.created_at,
        by=payload.by,
        attachments=payload.attachments,
        replaces="" if payload.replaces is None else payload.replaces.event_id,
    )
    return SessionKey.parse(event.session_key), line


def named(talk: ExportedTalk, space: str) -> list[SessionKey]:
    """Return the threads that a conversation may have here, the first that suits best.

    Args:
        space: what keeps its name from being one of somebody else's; empty: it's theirs.
    """
    key = talk.key
    unique = token_of("thread", space, str(key))[:8]
    other = SessionKey(key.user, key.agent, f"{key.thread[:THREAD_KEPT]}-imported-{unique}")
    return [other] if space else [key, other]


def words_of(
    talk: ExportedTalk, key: SessionKey, space: str, *, is_trusted: bool, by: str, now: datetime
) -> list[PastWords]:
    """Return a conversation as it is stored in a thread."""
    of = talk.token(space)
    return [
        PastWords(
            id=line.id,
            session_key=str(key),
            role=line.role,
            text=line.text,
            at=line.at,
            of=of,
            number=number,
            origin=line.origin,
            imported_at=now,
            imported_by=by,
            by=line.by,
            attachments=line.attachments,
            is_tainted=line.is_tainted or not is_trusted,
        )
        for number, line in enumerate(talk.lines.values(), 1)
    ]
