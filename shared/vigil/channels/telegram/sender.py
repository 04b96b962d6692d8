"""What sends a message into a chat, with a person whom its receiver paired.

Telegram knows no repeats: what may have arrived isn't sent again, nor what arrived in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts import Attachment, Said
from ...imports.aiogram import (
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    ReplyParameters,
    SendDocument,
    SendMessage,
    SendPhoto,
)
from ..chats.buttons import buttons
from ..chats.calls import CALL_S, CallFailed
from ..chats.files import with_bytes
from ..chats.partner import ChatPartner
from ..chats.post import mark_of
from ..chats.sender import ChatSender
from ..contract import ChannelContext
from .composition import TelegramPart, composed
from .wire import BotApi

if TYPE_CHECKING:
    from .section import TelegramBot

UNREADABLE: Final = "can't parse entities"
"""What Telegram says of tags that it can't read."""
NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)
PHOTO_SIDES_MAX: Final = 10_000
"""Of a photo, width and height together; a larger one, or one that is twenty times as long as wide,
is refused (core.telegram.org/bots/api#sendphoto)."""
PHOTO_RATIO_MAX: Final = 20
_Part = tuple[SendMessage | SendPhoto | SendDocument, TelegramPart | None]


class TelegramSender(ChatSender[BotApi, _Part]):
    """One bot's way out."""

    def __init__(self, section: TelegramBot, context: ChannelContext) -> None:
        super().__init__(context, section.timeout_s)
        self._section = section

    def __repr__(self) -> str:
        return f"TelegramSender({self._section.bot!r})"

    def token(self) -> str:
        return self._section.secret(self._context.home)

    def opened_with(self, token: str) -> BotApi:
        return BotApi(token, self._section.api_url)

    async def planned(self, api: BotApi, said: Said, partner: ChatPartner) -> list[_Part]:
        chat, reply, is_own = place_of(partner)
        said, files = await with_bytes(self._context, said)
        parts, asks = composed(said, self._context.console_url)
        calls = [_call(part, chat) for part in parts]
        if reply:
            to = ReplyParameters(message_id=reply, allow_sending_without_reply=True)
            calls[0] = calls[0].model_copy(update={"reply_parameters": to})
        if is_own and asks:
            calls[-1] = calls[-1].model_copy(update={"reply_markup": _keyboard(asks)})
        texts: list[_Part] = list(zip(calls, parts, strict=True))
        return texts + [(file_call(file, data, chat), None) for file, data in files]

    async def hand_over(self, api: BotApi, part: _Part) -> str:
        call, of = part
        try:
            sent = await api.call(call, timeout_s=CALL_S)
        except CallFailed as failed:
            is_unread = UNREADABLE in failed.answer.reason
            if not (isinstance(call, SendMessage) and of and call.parse_mode and is_unread):
                raise
            plain = call.model_copy(update={"parse_mode": None, "text": of.text})
            sent = await api.call(plain, timeout_s=CALL_S)
        return mark_of(self._context.name, str(call.chat_id), str(sent.message_id))


def place_of(partner: ChatPartner) -> tuple[str, int, bool]:
    """Return the chat where it is said, the message that it answers there among others, and whether
    the chat is the person's own."""
    head = partner.head
    if head is not None and not head.is_direct:
        number = head.message.rpartition(" ")[2]
        return head.room, int(number) if number.isdigit() else 0, False
    # The chat with somebody has their own number, and nobody else is in it.
    return partner.paired.address, 0, True


def _call(part: TelegramPart, chat: str) -> SendMessage:
    return SendMessage(
        chat_id=int(chat),
        text=part.html or part.text,
        parse_mode="HTML" if part.html else None,
        link_preview_options=NO_PREVIEW,
    )


def file_call(file: Attachment, data: bytes, chat: str) -> SendPhoto | SendDocument:
    """Return what sends a file: a picture that Telegram shows as one, or a document."""
    held = BufferedInputFile(data, filename=file.name)
    sides = file.width, file.height
    is_shown = all(sides) and max(sides) <= PHOTO_RATIO_MAX * min(sides)
    if file.type in ("image/png", "image/jpeg") and is_shown and sum(sides) <= PHOTO_SIDES_MAX:
        return SendPhoto(chat_id=int(chat), photo=held)
    return SendDocument(chat_id=int(chat), document=held)


def _keyboard(asks: str) -> InlineKeyboardMarkup:
    row = [InlineKeyboardButton(text=label, callback_data=data) for label, data in buttons(asks)]
    return InlineKeyboardMarkup(inline_keyboard=[row])
