"""The kind `telegram`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ...errors import InvalidInput
from ...fields import secrets
from ...fields.section import PositiveS
from ..asked import AskedField
from ..chats.section import ChatBot
from ..contract import ChannelContext, Listener, Sender

BOT: Final = re.compile(r"@[A-Za-z][A-Za-z0-9_]{3,31}")
TOKEN: Final = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")


class TelegramBot(ChatBot, frozen=True, kw_only=True, tag="telegram"):
    """A bot of Telegram, which is the agent's own.

    People are written to in, and heard from, chats with those whom they paired
    (`vigil channels pair`).
    """

    asked = (
        AskedField("bot", "What the bot is called", "@my_vigil_bot"),
        AskedField("token", "Its token, as @BotFather gave it", is_secret=True),
    )

    bot: str
    """How it's called: @vigil_bot"""
    token: str = ""
    """As @BotFather gave it."""
    token_file: str = ""
    """Instead: a file with it; relative to the home. Read again when the server refuses it."""
    api_url: str = "https://api.telegram.org"
    """Where the Bot API is reached: a server of your own, say."""
    poll_s: PositiveS = 30.0
    """How long the server may wait for news before it answers that there are none."""

    has_drafts: bool = False
    """In the chat with somebody alone an answer is shown while it's written, as a draft, which is
    no message: Telegram takes it away."""

    def sender(self, context: ChannelContext) -> Sender:
        self.check(context)
        from .sender import TelegramSender

        return TelegramSender(self, context)

    def listener(self, context: ChannelContext) -> Listener | None:
        self.check(context)
        from ..chats.follower import ChatListener
        from .listener import TelegramReading

        return ChatListener(self, context, TelegramReading)

    @property
    def carries_files(self) -> bool:
        return True

    @property
    def library(self) -> str:
        return "aiogram"

    @property
    def secret_files(self) -> tuple[str, ...]:
        return (self.token_file,)

    def check_secrets(self, home: Path) -> None:
        self.secret(home)

    def check_own_fields(self) -> None:
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: Telegram drops no repeats")
        if not BOT.fullmatch(self.bot):
            raise InvalidInput("bot", "must be the bot's name: @vigil_bot")

    def check_may_pair(self, address: str) -> None:
        if not (address.isascii() and address.isdigit() and len(address) <= 20):
            raise InvalidInput(
                "address", "is no id of Telegram's, which is a number: leave it out, if unknown"
            )

    def secret(self, home: Path) -> str:
        """Return what it logs in with. Raises: InvalidInput."""
        found = secrets.of_section("token", self.token, self.token_file, home)
        if not TOKEN.fullmatch(found):
            raise InvalidInput("token", "has another form than 123456:letters")
        return found
