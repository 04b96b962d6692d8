"""PATCH /api/sessions/{key}: how one has a conversation in one's list: its name, put away, read."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Response
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from vigil.errors import InvalidInput, WrongLastSequence
from vigil.marks import conversation_label
from vigil.marks.conversation_label import TITLE_LENGTH_MAX, ConversationLabel
from vigil.subjects import SessionKey

from ..callers import Caller, Session, Shared, body_of
from ..endpoint import Endpoint
from ..gone import check_not_deleted
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import Answer, CursorValue, RequestBody
from ..shelf.first_words import first_said, words_of
from ..shelf.titles import title_of
from ..state.edge import Edge

TRIES_MAX: Final = 5
"""Changes by others of one's own windows that may come first."""


class ListedChange(RequestBody, frozen=True, kw_only=True):
    """What is to be changed; the rest stays as it is."""

    title: str | UnsetType | None = UNSET
    """What you call it, in one line; null or empty: by its first words again."""
    archived: bool | UnsetType = UNSET
    """Whether it is put away: it goes on as ever, and is listed apart."""
    read_to: CursorValue | UnsetType = UNSET
    """Sequence of the newest message that you read. It never moves back."""


class SessionLabel(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """How you have a conversation in your list."""

    session_key: str
    title: str
    is_archived: bool
    read_to: int
    """0: you read nothing of it in a place that says so."""


async def change_session(
    edge: Shared,
    caller: Caller,
    session: Session,
    wanted: Annotated[ListedChange, Depends(body_of(ListedChange))],
) -> Response:
    """Name a conversation, put it away, or note that you read it, in your own list."""
    if edge.switches.is_erasing(caller.user) or edge.switches.is_erasing(session.user):
        raise erasing()
    first = await first_said(edge.bus, session)
    if first is None:
        await check_not_deleted(edge, session)
        raise Problem(404, "there is no such session, or nobody said anything in it yet")
    label = await _labelled(edge, caller.user, session, wanted)
    if wanted.read_to is UNSET:
        read_to = await edge.read_marks.of(caller.user, session)
    else:
        read_to = await edge.read_marks.move(caller.user, session, wanted.read_to)
    title = label.title or title_of(words_of(first))
    is_archived = label.archived_at is not None
    return Json(
        SessionLabel(
            session_key=str(session), title=title, is_archived=is_archived, read_to=read_to
        )
    )


async def _labelled(
    edge: Edge, reader: str, session: SessionKey, wanted: ListedChange
) -> ConversationLabel:
    """Store what is said of title and archive; return the label as it is then."""
    for _ in range(TRIES_MAX):
        now = edge.clock.now()
        found, revision = await conversation_label.find(edge.bus, reader, session)
        known = found or ConversationLabel(reader=reader, session=str(session), at=now)
        label = known
        if wanted.title is not UNSET:
            label = replace(label, title=_checked(wanted.title or ""))
        if wanted.archived is not UNSET and wanted.archived != (label.archived_at is not None):
            label = replace(label, archived_at=now if wanted.archived else None)
        if label == known:
            return label
        try:
            await conversation_label.put(edge.bus, replace(label, at=now), expect=revision)
        except WrongLastSequence:
            continue
        return label
    raise Problem(409, "it was changed again and again meanwhile; try once more")


def _checked(title: str) -> str:
    """Return a title in one line. Raises: InvalidInput."""
    line = " ".join(title.split())
    if len(line) > TITLE_LENGTH_MAX:
        raise InvalidInput("title", f"must have at most {TITLE_LENGTH_MAX} characters")
    return line


ENDPOINTS: Final = (
    Endpoint(
        "PATCH",
        "/api/sessions/{key}",
        change_session,
        {200: SessionLabel},
        (403, 404, 409, 413, 422, 503),
        ListedChange,
    ),
)
