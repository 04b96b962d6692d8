"""A request to a person as a page shows it, and where it stands in a conversation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from vigil.board.kinds.approval import ApprovalView
from vigil.contracts import QUESTION
from vigil.grants.proposal import constraints_of
from vigil.subjects import SessionKey

from ....http.wire import TimelineRecord, TranscriptMessage
from ....trust.letters import LetterView
from ...text import as_json
from ..cards import ToolCard

LONG: Final = 1_500
"""Characters of arguments that are shown among others; longer ones are whole on a page of their
own."""


class RequestCard(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person, or a question to them, whatever became of it."""

    request: ApprovalView
    agent: str
    is_question: bool
    is_open: bool
    """Whether the reader may decide it now."""
    is_shown: bool
    """Whether its arguments are shown whole: nobody decides what they weren't shown."""
    grant: Any = None
    """What would be allowed from now on, if the reader wants that."""

    @property
    def is_decidable(self) -> bool:
        return self.is_open and self.is_shown


Entry = TranscriptMessage | ToolCard | RequestCard | LetterView


def place_of(entry: TranscriptMessage | ToolCard | LetterView) -> int:
    """Return where an entry stands in the log."""
    return entry.turn_seq if isinstance(entry, LetterView) else entry.seq


def request_card(one: ApprovalView, *, may_decide: bool, is_alone: bool = False) -> RequestCard:
    """Return a request as it is shown.

    Args:
        is_alone: on a page of its own, where it is whole however long it is.
    """
    is_question = one.tool == QUESTION
    is_open = one.state == "open" and may_decide
    grant = None
    if is_open and not is_question and one.fields is None:
        grant = msgspec.to_builtins(constraints_of(one.tool, one.risk, one.input))
    return RequestCard(
        request=one,
        agent=SessionKey.parse(one.session_key).agent,
        is_question=is_question,
        is_open=is_open,
        is_shown=is_alone or len(as_json([one.input, one.edited])) <= LONG,
        grant=grant,
    )


def children_of(session: SessionKey, records: Iterable[TimelineRecord]) -> set[str]:
    """Return the keys of the sessions that turns of a conversation started.

    >>> effect = {"type": "spawn_session", "id": "1f", "payload": {"kind": "worker"}}
    >>> turn = TimelineRecord(seq=1, kind="turn", data={"effects": [effect]})
    >>> children_of(SessionKey("ann", "vigil", "t1"), [turn])
    {'ann:vigil:_worker-1f'}
    """
    found = set()
    for record in records:
        if record.kind != "turn" or not isinstance(record.data, dict):
            continue
        for effect in record.data.get("effects") or ():
            if effect["type"] == "spawn_session":
                found.add(str(session.of_kind(effect["payload"]["kind"], effect["id"])))
    return found


def with_requests(entries: Sequence[Entry], cards: Iterable[RequestCard]) -> list[Entry]:
    """Put each request before the first message that came after it was asked.

    >>> from datetime import UTC, datetime
    >>> def said(hour):
    ...     at = datetime(2026, 11, 28, hour, tzinfo=UTC)
    ...     return TranscriptMessage(
    ...         id="", seq=hour, role="user", text="", at=at, caused_by=None)
    >>> def asked(hour):
    ...     at = datetime(2026, 11, 28, hour, tzinfo=UTC)
    ...     one = ApprovalView(id="", name="", session_key="ann:vigil:t1", tool="t", input={},
    ...         digest="", risk="safe", reason="", asked_at=at, expires_at=at, caused_by="",
    ...         state="accepted")
    ...     return request_card(one, may_decide=True)
    >>> placed = with_requests([said(9), said(11)], [asked(12), asked(10)])
    >>> [getattr(one, "at", None) is None for one in placed]
    [False, True, False, True]
    """
    left = sorted(cards, key=lambda card: card.request.asked_at)
    found: list[Entry] = []
    for entry in entries:
        if isinstance(entry, TranscriptMessage):
            while left and left[0].request.asked_at < entry.at:
                found.append(left.pop(0))
        found.append(entry)
    return [*found, *left]
