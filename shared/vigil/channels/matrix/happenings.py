"""What a server of Matrix tells of the rooms of an account. Pure.

Everything in it may have been written by anybody: what has another form than it should is left
out. Names that people are shown by aren't read: who somebody is says the event's sender alone, for
which their server vouches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from ..chats.fields import dict_in, text_in
from ..chats.post import VOICE, PostFile
from ..chats.remarks import with_attached

EFFECT: Final = "org.vigil.effect"
"""In what the account said: the id of the effect that said it."""
PART: Final = "org.vigil.part"
"""Which part of it, from 1 on."""
ASKS: Final = "org.vigil.asks"
"""The id of the request that it shows whole."""
TYPES: Final = ("m.room.message", "m.room.encrypted", "m.room.member", "m.reaction")
VERDICTS: Final = {"✅": "accept", "👍": "accept", "❌": "reject", "👎": "reject"}
"""What reactions to a request mean."""
_SHADES: Final = re.compile("[\ufe0f\U0001f3fb-\U0001f3ff]")
SYNC_LIMIT: Final = 50
ATTACHED: Final = {
    "m.image": "an image",
    "m.file": "a file",
    "m.audio": "a sound",
    "m.video": "a film",
}
TAKEN: Final = ("m.image", "m.file")
"""Of these, what may be taken in."""
VOICE_MARKS: Final = ("m.voice", "org.matrix.msc3245.voice")
"""Say of a sound that it was recorded as a message (MSC3245)."""
MXC: Final = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]{1,255})/([A-Za-z0-9_-]{1,255})")
"""Where a server has a file: the server, and its name there."""
OTHER: Final = "something that isn't text"
_FALLBACK: Final = re.compile(r"(?:>[^\n]*\n)+\n?")
"""How programs of old quote what a message replies to: others' words, in front of it."""


class MatrixInvitation(msgspec.Struct, frozen=True):
    """Somebody wants the account in a room."""

    room: str
    inviter: str


class RoomUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What is new in a room that the account is in."""

    room: str
    events: Sequence[dict[str, Any]]
    before: str = ""
    """The mark before which more is new; empty: this is all."""
    has_joined: bool = False
    """Whether the account came into the room just now."""
    has_moved: bool = False
    """Whether somebody came or went."""


class RoomReaction(msgspec.Struct, frozen=True, kw_only=True):
    """A sign that somebody put to a message."""

    id: str
    author: str
    to: str
    verdict: str


class SyncAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to /sync."""

    next: str
    invitations: Sequence[MatrixInvitation]
    rooms: Sequence[RoomUpdate]


class RoomMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message in a room."""

    id: str
    author: str
    kind: Literal["text", "notice", "encrypted"]
    at_ms: int
    text: str = ""
    replies_to: str = ""
    """The event that it replies to; empty: none."""
    is_edit: bool = False
    mentions: frozenset[str] = frozenset()
    """Whom it speaks to, by id."""
    files: tuple[PostFile, ...] = ()


def filter_of() -> dict[str, Any]:
    """Return what of the rooms is asked for."""
    nothing: dict[str, Any] = {"types": []}
    return {
        "presence": nothing,
        "account_data": nothing,
        "room": {
            "state": nothing,
            "ephemeral": nothing,
            "account_data": nothing,
            "timeline": {"limit": SYNC_LIMIT, "types": list(TYPES)},
        },
    }


def sync_answer_of(data: Any, own: str) -> SyncAnswer | None:
    """Return what an answer to /sync tells; None: it is none.

    Args:
        own: the account's id.
    """
    following = text_in(data, "next_batch")
    if not following:
        return None
    return SyncAnswer(
        next=following,
        invitations=tuple(_invitations(dict_in(data, "rooms", "invite"), own)),
        rooms=tuple(_rooms(dict_in(data, "rooms", "join"), own)),
    )


def _invitations(rooms: dict[str, Any], own: str) -> Iterator[MatrixInvitation]:
    for room, told in rooms.items():
        for event in events_of(told, "invite_state", "events"):
            is_mine = (
                text_in(event, "type") == "m.room.member" and text_in(event, "state_key") == own
            )
            if is_mine and text_in(event, "content", "membership") == "invite":
                yield MatrixInvitation(room, text_in(event, "sender"))
                break


def _rooms(rooms: dict[str, Any], own: str) -> Iterator[RoomUpdate]:
    for room, told in rooms.items():
        events = events_of(told, "timeline", "events")
        moved = [one for one in events if text_in(one, "type") == "m.room.member"]
        timeline = dict_in(told, "timeline")
        yield RoomUpdate(
            room=room,
            events=events,
            before=text_in(timeline, "prev_batch") if timeline.get("limited") is True else "",
            has_joined=any(text_in(one, "state_key") == own and _is_join(one) for one in moved),
            has_moved=bool(moved),
        )


def _is_join(event: dict[str, Any]) -> bool:
    before = text_in(event, "unsigned", "prev_content", "membership")
    return text_in(event, "content", "membership") == "join" and before != "join"


def message_of(event: dict[str, Any]) -> RoomMessage | None:
    """Return the message that an event is; None: it's none that anybody waits for."""
    type_, content = text_in(event, "type"), dict_in(event, "content")
    id_, author = text_in(event, "event_id"), text_in(event, "sender")
    at_ms = event.get("origin_server_ts")
    if not id_ or not author or type_ not in TYPES[:2] or not isinstance(at_ms, int):
        return None
    if type_ == "m.room.encrypted":
        return RoomMessage(id=id_, author=author, kind="encrypted", at_ms=at_ms)
    if not content:
        return None  # it was taken back
    relation = dict_in(content, "m.relates_to")
    replies_to = text_in(relation, "m.in_reply_to", "event_id")
    kind, told = text_in(content, "msgtype"), content.get("m.mentions")
    users = told.get("user_ids") if isinstance(told, dict) else None
    return RoomMessage(
        id=id_,
        author=author,
        kind="notice" if kind == "m.notice" else "text",
        at_ms=at_ms,
        text=_words(kind, content, is_reply=bool(replies_to)),
        replies_to=replies_to,
        is_edit=text_in(relation, "rel_type") == "m.replace",
        mentions=frozenset(one for one in users if isinstance(one, str))
        if isinstance(users, list)
        else frozenset(),
        files=_files(kind, content),
    )


def reaction_of(event: dict[str, Any]) -> RoomReaction | None:
    """Return the verdict that a reaction may be; None: it's none."""
    relation = dict_in(event, "content", "m.relates_to")
    verdict = VERDICTS.get(_SHADES.sub("", text_in(relation, "key")))
    id_, author, to = (
        text_in(event, "event_id"),
        text_in(event, "sender"),
        text_in(relation, "event_id"),
    )
    is_one = (
        text_in(event, "type") == "m.reaction" and text_in(relation, "rel_type") == "m.annotation"
    )
    if not (is_one and verdict and id_ and author and to):
        return None
    return RoomReaction(id=id_, author=author, to=to, verdict=verdict)


def request_in(event: Any, own: str) -> str:
    """Return the request that an event of the account's shows; empty: none."""
    if not isinstance(event, dict) or text_in(event, "sender") != own:
        return ""
    found = text_in(event, "content", ASKS)
    return found if re.fullmatch("[0-9a-f]{32}", found) else ""


def _words(kind: str, content: dict[str, Any], *, is_reply: bool) -> str:
    """Return what its author wrote, and that something is attached, without its name, which may be
    by anybody."""
    body = text_in(content, "body")
    if kind in ("m.text", "m.emote", "m.notice"):
        return (_FALLBACK.sub("", body, count=1) if is_reply and body[:1] == ">" else body).strip()
    name = text_in(content, "filename")
    caption = body.strip() if kind in ATTACHED and name and name != body else ""
    return caption if _files(kind, content) else with_attached(caption, ATTACHED.get(kind, OTHER))


def _files(kind: str, content: dict[str, Any]) -> tuple[PostFile, ...]:
    """Return the file that an event is, if its server has it unencrypted."""
    place, size = text_in(content, "url"), dict_in(content, "info").get("size")
    is_spoken = kind == "m.audio" and any(mark in content for mark in VOICE_MARKS)
    if not (kind in TAKEN or is_spoken) or not MXC.fullmatch(place):
        return ()
    file = PostFile(
        kind=VOICE if is_spoken else ATTACHED[kind],
        place=place,
        name=text_in(content, "filename") or text_in(content, "body"),
        size=size if isinstance(size, int) else 0,
        is_spoken=is_spoken,
    )
    return (file,)


def is_named(message: RoomMessage, own: str, name: str) -> bool:
    """Whether a message speaks to the account.

    >>> said = RoomMessage(id="$1", author="@a:x", kind="text", at_ms=0, text="vigil: hello")
    >>> is_named(said, "@vigil:x", "Vigil"), is_named(said, "@desk:x", "Desk")
    (True, False)
    """
    # The id alone: it may begin the id of somebody on a server whose name is longer.
    has_id = re.search(rf"(?<!\w){re.escape(own)}(?![\w-]|\.\w|:\d)", message.text) is not None
    return has_id or own in message.mentions or addressed(message.text, own, name) > 0


def addressed(text: str, own: str, name: str) -> int:
    """Return how long the beginning of a text is that only names the account; 0: it doesn't.

    >>> addressed("@vigil:a.example: hello", "@vigil:a.example", "Vigil")
    18
    >>> addressed("@vigil:b.example: hello", "@vigil:a.example", "Vigil")
    0
    """
    names = "|".join(re.escape(one) for one in (own[1:].partition(":")[0], name) if one)
    for form in (
        rf"\s*{re.escape(own)}(?:[:,](?!\d)\s*|\s+|$)",
        # Behind @ and a name may come the server of somebody else's id.
        rf"\s*@(?:{names})(?:[:,](?:\s+|$)|\s*$)",
        rf"\s*(?:{names})(?:[:,]\s*|\s*$)",
    ):
        if found := re.match(form, text, re.IGNORECASE):
            return found.end()
    return 0


def effect_in(event: Any, own: str) -> tuple[str, int] | None:
    """Return which effect, and which part of it, an event of the account's says; None: it's of
    somebody else, whatever it claims."""
    if not isinstance(event, dict) or text_in(event, "sender") != own:
        return None
    effect, part = text_in(event, "content", EFFECT), dict_in(event, "content").get(PART)
    return (effect, part) if effect and isinstance(part, int) else None


def members_of(data: Any) -> frozenset[str]:
    """Return who is in a room."""
    return frozenset(dict_in(data, "joined"))


def events_of(data: Any, *path: str) -> list[dict[str, Any]]:
    """Return the events in an answer, as far as they are some."""
    *way, last = path
    found = dict_in(data, *way).get(last)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
