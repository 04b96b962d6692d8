"""What sends a message into a chat, with a person whom its receiver paired.

Telegram knows no repeats: what may have arrived isn't sent again. So is what arrived in part.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aiogram.methods import SendMessage
from aiogram.types import (
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    ReplyParameters,
)

from ...contracts import Said
from ...errors import InvalidInput, VigilError
from ..answers import Answer, NotTaken, Taken, Unclear
from ..chats.partner import ChatPartner, partner_of
from ..contract import ChannelContext
from .composition import TelegramPart, buttons, composed
from .wire import BotApi, CallFailed

if TYPE_CHECKING:
    from .section import TelegramBot

CALL_S: Final = 20.0
UNREADABLE: Final = "can't parse entities"
"""What Telegram says of tags that it can't read."""
NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)


class TelegramSender:
    """One bot's way out."""

    def __init__(self, section: TelegramBot, context: ChannelContext) -> None:
        self._section = section
        self._context = context
        self._api: BotApi | None = None
        self._token = ""

    def __repr__(self) -> str:
        return f"TelegramSender({self._section.bot!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        try:
            partner = await partner_of(self._context, said)
            api = await self._open()
        except InvalidInput as error:
            return NotTaken(reason=str(error))
        except VigilError as error:
            return NotTaken(reason=f"whom it is for can't be looked up: {error}")
        if partner is None:
            reason = f"no chat is known; see `vigil channels pair {self._context.name}`"
            return NotTaken(reason=reason, is_final=True)
        within_s = self._section.timeout_s
        try:
            async with asyncio.timeout(within_s):
                return await self._sent(api, said, *place_of(partner))
        except TimeoutError:
            return Unclear(reason=f"not all of it within {within_s:g} s")

    async def close(self) -> None:
        if self._api is not None:
            await self._api.close()

    async def _open(self) -> BotApi:
        """Return the way to the bot, with the token as it is now. Raises: InvalidInput."""
        token = self._section.secret(self._context.home)
        if self._api is None or token != self._token:
            await self.close()
            self._api, self._token = BotApi(token, self._section.api_url), token
        return self._api

    async def _sent(self, api: BotApi, said: Said, chat: str, reply: int, is_own: bool) -> Answer:
        parts = composed(said)
        until = asyncio.get_running_loop().time() + self._section.timeout_s
        for number, part in enumerate(parts, 1):
            is_last = number == len(parts)
            call = _call(
                part,
                chat,
                reply=reply if number == 1 else 0,
                asks=said.asks if is_own and is_last else "",
            )
            answer = await self._handed_over(api, call, part, until)
            if isinstance(answer, Taken):
                continue
            if number > 1:
                of = f"{number - 1} of {len(parts)} parts arrived"
                return Unclear(reason=f"{of}; then: {answer.reason}")
            return answer
        return Taken(reason="" if len(parts) == 1 else f"{len(parts)} messages")

    async def _handed_over(
        self, api: BotApi, call: SendMessage, part: TelegramPart, until: float
    ) -> Answer:
        """Send one part; what is to wait waits, if there is time for it."""
        while True:
            try:
                await api.call(call, timeout_s=CALL_S)
            except CallFailed as failed:
                if call.parse_mode and UNREADABLE in failed.answer.reason:
                    call = call.model_copy(update={"parse_mode": None, "text": part.text})
                    continue
                left_s = until - asyncio.get_running_loop().time()
                if 0 < failed.wait_s < left_s - CALL_S:
                    await asyncio.sleep(failed.wait_s)
                    continue
                return failed.answer
            return Taken()


def place_of(partner: ChatPartner) -> tuple[str, int, bool]:
    """Return the chat where it is said, the message that it answers there among others, and whether
    the chat is the person's own."""
    head = partner.head
    if head is not None and not head.is_direct:
        number = head.message.rpartition(" ")[2]
        return head.room, int(number) if number.isdigit() else 0, False
    # The chat with somebody has their own number, and nobody else is in it.
    return partner.paired.address, 0, True


def _call(part: TelegramPart, chat: str, *, reply: int, asks: str) -> SendMessage:
    rows = [
        [InlineKeyboardButton(text=label, callback_data=data) for label, data in row]
        for row in buttons(asks)
    ]
    return SendMessage(
        chat_id=int(chat),
        text=part.html or part.text,
        parse_mode="HTML" if part.html else None,
        link_preview_options=NO_PREVIEW,
        reply_parameters=ReplyParameters(message_id=reply, allow_sending_without_reply=True)
        if reply
        else None,
        reply_markup=InlineKeyboardMarkup(inline_keyboard=rows) if rows else None,
    )
