"""What the Bot API tells of what people write to a bot. Pure.

Everything in it may have been written by anybody: what has another form than it should is left
out. Who somebody is says their id alone: names that people are shown by stand only in what is
forwarded, which is read as outside content.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ...attachments.forwarded import ForwardedText
from ..chats.buttons import verdict_in
from ..chats.fields import dict_in, instant_of, text_in
from ..chats.post import VOICE, Post, PostFile, RepliedPost, replied_post
from ..chats.remarks import MADE, OTHER, forwarded, with_attached

KINDS: Final = ("message", "edited_message", "callback_query")
IMAGE, FILE = "an image", "a file"
UNTAKEN: Final = {
    "audio": "a sound",
    "video": "a film",
    "video_note": "a film",
    "animation": "a film",
    "sticker": "a sticker",
}


_PATH: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,300}")


class TelegramPost(Post, frozen=True, kw_only=True):
    """What somebody wrote, or which button they pressed."""

    button: str = ""
    """The press, to be answered; empty: it's a message."""
    message: int = 0
    """Its id in the chat; of a press, of what the button hangs on."""


def update_id_of(update: Any) -> int:
    """Return where an update stands; -1: it's none."""
    found = update.get("update_id") if isinstance(update, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else -1


def post_of(update: Any, bot: str) -> TelegramPost | None:
    """Return what an update tells; None: nothing that anybody waits for.

    Args:
        bot: how the bot is called, with @.
    """
    if (pressed := dict_in(update, "callback_query")) and isinstance(pressed.get("id"), str):
        return _press(pressed)
    for kind in KINDS[:2]:
        if message := dict_in(update, kind):
            return _message(message, bot, is_edit=kind == "edited_message")
    return None


def _press(pressed: dict[str, Any]) -> TelegramPost | None:
    author, message = _person(pressed), dict_in(pressed, "message")
    chat, number = _id(dict_in(message, "chat")), message.get("message_id")
    found = verdict_in(text_in(pressed, "data"))
    if not (author and chat and found) or not isinstance(number, int):
        return None
    return TelegramPost(
        id=f"press {pressed['id']}",
        author=author,
        room=chat,
        text=found,
        is_direct=_is_private(message, author, chat),
        button=pressed["id"],
        message=number,
    )


def _message(message: dict[str, Any], bot: str, *, is_edit: bool) -> TelegramPost | None:
    author, chat = _person(message), _id(dict_in(message, "chat"))
    number = message.get("message_id")
    if not (author and chat) or not isinstance(number, int) or "sender_chat" in message:
        return None
    text = _words(message)
    named = addressed(text, bot)
    replied = dict_in(message, "reply_to_message", "from")
    is_reply = f"@{text_in(replied, 'username')}".lower() == bot.lower()
    return TelegramPost(
        id=f"{chat} {number}{' edited' if is_edit else ''}",
        author=author,
        room=chat,
        text=text if _is_private(message, author, chat) else text[named:],
        is_direct=_is_private(message, author, chat),
        is_named=is_reply or _is_in(text, bot),
        is_edit=is_edit,
        message=number,
        replied=_replied(message) if is_reply else None,
        files=_files(message),
        forwarded=_forwarded(message),
    )


def _replied(message: dict[str, Any]) -> RepliedPost | None:
    to = dict_in(message, "reply_to_message")
    number, date = to.get("message_id"), to.get("date")
    if not isinstance(number, int) or not isinstance(date, int):
        return None
    return replied_post(str(number), date)


def _files(message: dict[str, Any]) -> tuple[PostFile, ...]:
    """Return the file that came with a message, or with the one that it hands on, if it may be
    taken."""
    if _is_of_bot(message) or any(name in message for name in UNTAKEN):
        return ()
    sizes = message.get("photo")
    largest = sizes[-1] if isinstance(sizes, list) and sizes else None
    voice = {} if _is_forward(message) else dict_in(message, "voice")
    found = largest if isinstance(largest, dict) else voice or dict_in(message, "document")
    place, size = text_in(found, "file_id"), found.get("file_size")
    if not place:
        return ()
    file = PostFile(
        kind=VOICE if found is voice else FILE if largest is None else IMAGE,
        place=place,
        name=text_in(found, "file_name"),
        size=size if isinstance(size, int) else 0,
        is_spoken=found is voice,
    )
    return (file,)


def path_in(fields: Any) -> str:
    """Return where a file can be had, of what `getFile` answers; empty: it doesn't say.

    >>> path_in({"file_path": "photos/file_1.jpg"}), path_in({"file_path": "../../bot/getMe"})
    ('photos/file_1.jpg', '')
    """
    found = text_in(fields, "file_path")
    return found if _PATH.fullmatch(found) and ".." not in found else ""


def _person(fields: dict[str, Any]) -> str:
    """Return the id of whom something is from; empty: of a bot, or of nobody."""
    who = dict_in(fields, "from")
    return "" if who.get("is_bot") is not False else _id(who)


def _is_private(message: dict[str, Any], author: str, chat: str) -> bool:
    return text_in(dict_in(message, "chat"), "type") == "private" and author == chat


def _words(message: dict[str, Any]) -> str:
    """Return what its author wrote; of what others did, that it's there."""
    if _is_of_bot(message):
        return MADE
    files, kinds = _files(message), UNTAKEN | {"voice": VOICE, "photo": IMAGE, "document": FILE}
    kind = "" if files else next((words for name, words in kinds.items() if name in message), "")
    if _is_forward(message):
        return forwarded("", kind, is_attached=bool(files or _forwarded(message)))
    text = _text(message)
    return text if files else with_attached(text, kind) or OTHER


def _text(message: dict[str, Any]) -> str:
    return (text_in(message, "text") or text_in(message, "caption")).strip()


def _is_of_bot(message: dict[str, Any]) -> bool:
    return "via_bot" in message and not _is_forward(message)


def _is_forward(message: dict[str, Any]) -> bool:
    return "forward_origin" in message or "forward_date" in message


def _forwarded(message: dict[str, Any]) -> tuple[ForwardedText, ...]:
    """Return what a message hands on: all that it says is another's."""
    if not _is_forward(message) or not (text := _text(message)):
        return ()
    origin = dict_in(message, "forward_origin")
    person = dict_in(origin, "sender_user")
    chat = dict_in(origin, "chat") or dict_in(origin, "sender_chat")
    names = (text_in(person, "first_name"), text_in(person, "last_name"))
    by = " ".join(names).strip() or text_in(origin, "sender_user_name") or text_in(chat, "title")
    date = origin.get("date", message.get("forward_date"))
    sent_at = instant_of(date) if isinstance(date, int) else None
    return (ForwardedText(text=text, by=by, sent_at=sent_at),)


def _is_in(text: str, bot: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(bot)}(?!\w)", text, re.IGNORECASE) is not None


def addressed(text: str, bot: str) -> int:
    """Return how long the beginning of a text is that only names the bot; 0: it doesn't."""
    found = re.match(rf"\s*{re.escape(bot)}(?!\w)[:,]?\s*", text, re.IGNORECASE)
    return 0 if found is None else found.end()


def _id(data: dict[str, Any]) -> str:
    found = data.get("id")
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else ""
