"""What Slack tells of what people write to an app. Pure.

Everything in it may have been written by anybody: what has another form than it should is left
out. Who somebody is says their id alone: names that people are shown by stand only in what is
forwarded, which is read as outside content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ...attachments.forwarded import ForwardedText
from ..chats.buttons import verdict_in
from ..chats.fields import dict_in, dicts_in, instant_of, text_in
from ..chats.post import VOICE, Post, PostFile
from ..chats.remarks import MADE, OTHER, forwarded, with_attached
from .composition import EFFECT

USER_ID: Final = re.compile(r"[UW][A-Z0-9]{2,30}")
TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{6}")
_SPOKEN: Final = "slack_audio"
"""The subtype of a file that was recorded in Slack, as a clip."""
_OWN_WORDS: Final = ("", "file_share", "thread_broadcast", "me_message")
"""Subtypes of what a person wrote."""
_MARK: Final = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")
_CALLS: Final = {"!here": "@here", "!channel": "@channel", "!everyone": "@everyone"}


class SlackPost(Post, frozen=True, kw_only=True):
    """What somebody wrote, or which button they pressed."""

    ts: str
    """When, by which the channel knows it; of a press, of what the button hangs on."""
    is_press: bool = False
    thread: str = ""
    """What it's a reply to, by its `ts`; empty: it begins none."""


def post_of(event: Any, own: str) -> SlackPost | None:
    """Return what an event tells; None: nothing that anybody waits for.

    Args:
        own: the app's own user.
    """
    if text_in(event, "type") not in ("message", "app_mention"):
        return None
    channel, kind = text_in(event, "channel"), text_in(event, "channel_type")
    told, is_edit = event, False
    if text_in(event, "subtype") == "message_changed":
        told, is_edit = dict_in(event, "message"), True
        # A preview that was added to a link changes a message, too.
        if "edited" not in told or text_in(told, "text") == text_in(
            event, "previous_message", "text"
        ):
            return None
    return _message(told, channel, kind, own, is_edit=is_edit)


def _message(
    told: dict[str, Any], channel: str, kind: str, own: str, *, is_edit: bool
) -> SlackPost | None:
    author, ts = text_in(told, "user"), text_in(told, "ts")
    if text_in(told, "subtype") not in _OWN_WORDS or author == own or not channel:
        return None
    if not (USER_ID.fullmatch(author) and TS.fullmatch(ts)):
        return None
    is_private = channel.startswith("D") and kind in ("", "im")
    thread = text_in(told, "thread_ts")
    thread = thread if TS.fullmatch(thread) and thread != ts else ""
    return SlackPost(
        id=f"{channel} {ts}{f' {thread}' if thread else ''}{' edited' if is_edit else ''}",
        author=author,
        room=channel,
        text=_words(told, own, is_private=is_private),
        ts=ts,
        is_direct=is_private,
        is_named=f"<@{own}>" in text_in(told, "text") or text_in(told, "parent_user_id") == own,
        is_edit=is_edit,
        thread=thread,
        files=tuple(_files(told)),
        forwarded=tuple(_forwarded(told)),
    )


def place_in(id_: str) -> tuple[str, str]:
    """Return from a post's id its place in the channel, and of what it's a reply to; empty: none.

    >>> place_in("C1 1.000001 0.000009"), place_in("D1 1.000001"), place_in("press D1 1.1 2.1")
    (('1.000001', '0.000009'), ('1.000001', ''), ('', ''))
    """
    found = re.fullmatch(r"\S+ ([0-9]+\.[0-9]{6})(?: ([0-9]+\.[0-9]{6}))?(?: edited)?", id_)
    return (found[1], found[2] or "") if found else ("", "")


def press_of(payload: Any) -> SlackPost | None:
    """Return which button was pressed; None: none of ours."""
    if text_in(payload, "type") != "block_actions":
        return None
    author, channel = text_in(payload, "user", "id"), text_in(payload, "container", "channel_id")
    ts = text_in(payload, "container", "message_ts")
    actions = payload.get("actions")
    action = actions[0] if isinstance(actions, list) and len(actions) == 1 else {}
    verdict, at = verdict_in(text_in(action, "value")), text_in(action, "action_ts")
    if not (verdict and USER_ID.fullmatch(author) and TS.fullmatch(ts) and TS.fullmatch(at)):
        return None
    return SlackPost(
        id=f"press {channel} {ts} {at}",
        author=author,
        room=channel,
        text=verdict,
        ts=ts,
        is_direct=channel.startswith("D"),
        is_press=True,
    )


def _words(told: dict[str, Any], own: str, *, is_private: bool) -> str:
    """Return what its author wrote; of what others did, that it's there."""
    if "bot_id" in told:
        return MADE
    raw = text_in(told, "text")
    if not is_private:
        raw = re.sub(rf"^\s*<@{re.escape(own)}>[:,]?\s*", "", raw)
    text = unmarked(raw).strip()
    if _shares(told):
        return forwarded(text, "", is_attached=any((*_files(told), *_forwarded(told))))
    if any(True for _ in _files(told)):
        return text
    return with_attached(text, "a file" if told.get("files") else "") or OTHER


def _shares(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages that one hands on. Beside words of its author's the preview of a link
    that stands in them looks nearly the same, and is none."""
    if "bot_id" in told:
        return []
    is_silent = not text_in(told, "text").strip()
    return [
        one
        for one in dicts_in(told, "attachments")
        if one.get("is_share") or (is_silent and one.get("is_msg_unfurl"))
    ]


def _forwarded(told: dict[str, Any]) -> Iterator[ForwardedText]:
    for one in _shares(told):
        ts = text_in(one, "ts")
        if text := unmarked(text_in(one, "text")).strip():
            yield ForwardedText(
                text=text,
                by=text_in(one, "author_name") or text_in(one, "author_subname"),
                sent_at=instant_of(float(ts)) if TS.fullmatch(ts) else None,
            )


def _files(told: dict[str, Any]) -> Iterator[PostFile]:
    """Return the files of a message, and of those that it hands on, that Slack has, and not another
    service that it names."""
    of = [] if "bot_id" in told else [told, *_shares(told)]
    for by, one in ((each, file) for each in of for file in dicts_in(each, "files")):
        place, size = (
            text_in(one, "url_private_download") or text_in(one, "url_private"),
            one.get("size"),
        )
        if not place or text_in(one, "mode") in ("external", "tombstone", "hidden_by_limit"):
            continue
        # Somebody else's clip can be shown by anybody.
        is_own = by is told and text_in(one, "user") in ("", text_in(told, "user"))
        is_spoken = is_own and text_in(one, "subtype") == _SPOKEN
        is_image = text_in(one, "mimetype").startswith("image/")
        yield PostFile(
            kind=VOICE if is_spoken else "an image" if is_image else "a file",
            place=place,
            name=text_in(one, "name"),
            size=size if isinstance(size, int) else 0,
            is_spoken=is_spoken,
        )


def unmarked(text: str) -> str:
    """Return a text of Slack's as it's read: where a link leads is told, whatever it's called.

    >>> unmarked("see <https://a.example|b.example> &lt;3 <@U1> <#C1|general> <!here>")
    'see b.example (https://a.example) <3 @U1 #general @here'
    """
    out, at = [], 0
    for found in _MARK.finditer(text):
        out += [text[at : found.start()], _shown(found[1], found[2] or "")]
        at = found.end()
    out.append(text[at:])
    return "".join(out).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _shown(target: str, label: str) -> str:
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return _CALLS.get(target, label or "@group")
    if target.startswith("@"):
        return target
    address = target.removeprefix("mailto:")
    is_same = label in ("", address) or address in (f"http://{label}", f"https://{label}")
    return address if is_same else f"{label} ({address})"


def effect_in(message: Any, own: str) -> tuple[str, int] | None:
    """Return which effect, and which part of it, a message says; None: it isn't the app's."""
    payload = dict_in(message, "metadata", "event_payload")
    part, effect = payload.get("part"), text_in(payload, "effect")
    is_own = text_in(message, "user") == own
    if not is_own or text_in(message, "metadata", "event_type") != EFFECT or not effect:
        return None
    return (effect, part) if isinstance(part, int) else None


def messages_in(data: Any) -> list[dict[str, Any]]:
    """Return the messages of a channel's history, the oldest first."""
    found = data.get("messages") if isinstance(data, dict) else None
    several = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return sorted(several, key=lambda one: text_in(one, "ts").rjust(20, "0"))
