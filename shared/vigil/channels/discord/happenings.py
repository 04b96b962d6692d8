"""What Discord tells of what people write to a bot. Pure.

Everything in it may have been written by anybody: what has another form than it should is left
out. Names that people are shown by aren't read: who somebody is says their id alone. Of what is
forwarded Discord tells nobody's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from ...attachments.forwarded import ForwardedText
from ..chats.buttons import verdict_in
from ..chats.fields import dict_in, dicts_in, text_in
from ..chats.post import VOICE, Post, PostFile, RepliedPost, replied_post
from ..chats.remarks import OTHER, forwarded, with_attached

SNOWFLAKE: Final = re.compile(r"[0-9]{1,20}")
_WRITTEN: Final = (0, 19)
"""Types of messages that a person wrote: one, and a reply."""
_FORWARD: Final = 1
_SPOKEN: Final = 1 << 13
"""The flag IS_VOICE_MESSAGE: the file of such a message was recorded in Discord."""
_COMPONENT: Final = 3


class DiscordPost(Post, frozen=True, kw_only=True):
    """What somebody wrote, or which button they pressed."""

    message: str
    """Its id; of a press, of what the button hangs on."""
    press: tuple[str, str] = ("", "")
    """By which a press is answered; empty: it's a message."""


def post_of(kind: str, data: Any, own: str) -> DiscordPost | None:
    """Return what an event tells; None: nothing that anybody waits for.

    Args:
        kind: of the event.
        own: the bot's own id.
    """
    if kind == "INTERACTION_CREATE":
        return _press(data)
    if kind not in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
        return None
    is_edit = kind == "MESSAGE_UPDATE"
    # A preview that was found for a link changes a message, too.
    if is_edit and not text_in(data, "edited_timestamp"):
        return None
    author, channel = text_in(data, "author", "id"), text_in(data, "channel_id")
    message = text_in(data, "id")
    is_persons = not dict_in(data, "author").get("bot") and not text_in(data, "webhook_id")
    if not is_persons or author == own or not _are_ids(author, channel, message):
        return None
    if not isinstance(data, dict) or data.get("type", 0) not in _WRITTEN:
        return None
    is_private = "guild_id" not in data
    replied = dict_in(data, "referenced_message", "author")
    return DiscordPost(
        id=f"{channel} {message}{' edited' if is_edit else ''}",
        author=author,
        room=channel,
        text=_words(data, own, is_private=is_private),
        message=message,
        is_direct=is_private,
        is_named=own in _mentioned(data) or text_in(replied, "id") == own,
        is_edit=is_edit,
        replied=_replied(data) if text_in(replied, "id") == own else None,
        files=tuple(_files(data)),
        forwarded=tuple(_forwarded(data)),
    )


def _replied(data: dict[str, Any]) -> RepliedPost | None:
    number = text_in(data, "referenced_message", "id")
    return replied_post(number, sent_at(number)) if SNOWFLAKE.fullmatch(number) else None


def _press(data: Any) -> DiscordPost | None:
    is_private = isinstance(data, dict) and "guild_id" not in data
    author = text_in(data, "user", "id") or text_in(data, "member", "user", "id")
    channel, message = text_in(data, "channel_id"), text_in(data, "message", "id")
    verdict, id_ = verdict_in(text_in(data, "data", "custom_id")), text_in(data, "id")
    if not verdict or data.get("type") != _COMPONENT:
        return None
    if not _are_ids(author, channel, message, id_):
        return None
    return DiscordPost(
        id=f"press {id_}",
        author=author,
        room=channel,
        text=verdict,
        message=message,
        is_direct=is_private,
        press=(id_, text_in(data, "token")),
    )


def _are_ids(*several: str) -> bool:
    return all(SNOWFLAKE.fullmatch(one) for one in several)


def _mentioned(data: Mapping[str, Any]) -> set[str]:
    found = data.get("mentions")
    return {text_in(one, "id") for one in found} if isinstance(found, list) else set()


def _words(data: Mapping[str, Any], own: str, *, is_private: bool) -> str:
    """Return what its author wrote; of what others did, that it's there."""
    if _is_forward(data):
        return forwarded("", "", is_attached=any((*_files(data), *_forwarded(data))))
    text = text_in(data, "content")
    if not is_private:
        text = re.sub(rf"^\s*<@!?{re.escape(own)}>[:,]?\s*", "", text)
    if any(True for _ in _files(data)):
        return text.strip()
    return with_attached(text.strip(), "a file" if data.get("attachments") else "") or OTHER


def _is_forward(data: Mapping[str, Any]) -> bool:
    return dict_in(data, "message_reference").get("type") == _FORWARD


def _handed_on(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages that one hands on, as they were then."""
    return [dict_in(one, "message") for one in dicts_in(data, "message_snapshots")]


def _forwarded(data: Mapping[str, Any]) -> Iterator[ForwardedText]:
    for one in _handed_on(data) if _is_forward(data) else ():
        try:
            sent_at = datetime.fromisoformat(text_in(one, "timestamp"))
        except ValueError:
            sent_at = None
        if text := text_in(one, "content").strip():
            yield ForwardedText(text=text, sent_at=sent_at)


def _files(data: Mapping[str, Any]) -> Iterator[PostFile]:
    flags, is_forward = data.get("flags"), _is_forward(data)
    is_spoken = isinstance(flags, int) and bool(flags & _SPOKEN) and not is_forward
    of = _handed_on(data) if is_forward else [data]
    for one in (file for each in of for file in dicts_in(each, "attachments")):
        place, size = text_in(one, "url"), one.get("size")
        is_image = text_in(one, "content_type").startswith("image/")
        if place:
            yield PostFile(
                kind=VOICE if is_spoken else "an image" if is_image else "a file",
                place=place,
                name=text_in(one, "filename"),
                size=size if isinstance(size, int) else 0,
                is_spoken=is_spoken,
            )


class DiscordMark(msgspec.Struct, frozen=True, kw_only=True):
    """How far a bot's events were read: what stands in `ChatPlace.next`."""

    newest: str = "0"
    """The newest message that was dealt with: ids are in the order of time."""
    session: str = ""
    """Of the gateway; empty: none is known."""
    seq: int = 0
    """The number of the newest event in it that was dealt with."""
    url: str = ""
    """Where it is resumed."""

    def with_message(self, id_: str) -> DiscordMark:
        newest = max(self.newest, id_, key=int)
        return msgspec.structs.replace(self, newest=newest)


def mark_of(stored: str) -> DiscordMark:
    """Return a mark as it was stored; one that can't be read is of the beginning.

    >>> mark_of(stored_of(DiscordMark(newest="7", session="s", seq=3))).seq, mark_of("x").newest
    (3, '0')
    """
    try:
        found = msgspec.json.decode(stored, type=DiscordMark)
    except msgspec.MsgspecError:
        return DiscordMark()
    return found if SNOWFLAKE.fullmatch(found.newest) else DiscordMark()


def stored_of(mark: DiscordMark) -> str:
    return msgspec.json.encode(mark).decode()


EPOCH_MS: Final = 1_420_070_400_000


def snowflake_at(epoch_s: float) -> str:
    """Return the least id that a message has which was written then.

    >>> snowflake_at(1_420_070_401)
    '4194304000'
    """
    return str(max(int(epoch_s * 1000) - EPOCH_MS, 0) << 22)


def sent_at(id_: str) -> float:
    """Return when a message was written that has such an id, in epoch seconds.

    >>> sent_at("4194304000")
    1420070401.0
    """
    return ((int(id_) >> 22) + EPOCH_MS) / 1000


def messages_in(data: Any) -> list[dict[str, Any]]:
    """Return the messages of a channel, the oldest first."""
    several = data if isinstance(data, list) else []
    found = [one for one in several if isinstance(one, dict) and _are_ids(text_in(one, "id"))]
    return sorted(found, key=lambda one: int(text_in(one, "id")))
