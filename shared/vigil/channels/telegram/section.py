"""The kind `telegram`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ... import distribution
from ...checks import Check, fail, of_secret, ok
from ...errors import InvalidInput
from ...fields import secrets
from ...fields.section import PositiveS
from ..chats.addresses import check_api_url
from ..contract import Channel, ChannelContext, Listener, Sender

_ADVICE: Final = "see docs/telegram.md"
BOT: Final = re.compile(r"@[A-Za-z][A-Za-z0-9_]{3,31}")
TOKEN: Final = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")


class TelegramBot(Channel, frozen=True, kw_only=True, tag="telegram"):
    """A bot of Telegram, which is the agent's own.

    People are written to in, and heard from, chats with those whom they paired
    (`vigil channels pair`).
    """

    bot: str
    """How it's called: @vigil_bot"""
    token: str = ""
    """As @BotFather gave it."""
    token_file: str = ""
    """Instead: a file with it; relative to the home. Read again when the server refuses it."""
    api_url: str = "https://api.telegram.org"
    """Where the Bot API is reached: a server of your own, say."""
    agent: str = "vigil"
    """Who is written to."""
    poll_s: PositiveS = 30.0
    """How long the server may wait for news before it answers that there are none."""
    is_ordered: bool = True
    timeout_s: PositiveS = 60.0
    """Per attempt to send, with all its parts."""
    backoff_cap_s: PositiveS = 3600.0
    """Longest delay, also for what the server asks for."""

    def sender(self, context: ChannelContext) -> Sender:
        self._check(context)
        from .sender import TelegramSender

        return TelegramSender(self, context)

    def listener(self, context: ChannelContext) -> Listener | None:
        self._check(context)
        from .listener import TelegramListener

        return TelegramListener(self, context)

    @property
    def is_answering(self) -> bool:
        return True

    @property
    def paired_at(self) -> str:
        return self.bot

    @property
    def agent_id(self) -> str:
        return self.agent

    @property
    def is_code_for_anybody(self) -> bool:
        return True

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

    def _check(self, context: ChannelContext) -> None:
        self.check_fields()
        check_api_url(self.api_url, context.ports_never)
        self.secret(context.home)

    def check_fields(self) -> None:
        """Check what can be told by the section alone. Raises: InvalidInput."""
        if find_spec("aiogram") is None:
            raise InvalidInput("kind", f"needs aiogram: {distribution.command_for('telegram')}")
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: Telegram drops no repeats")
        if not BOT.fullmatch(self.bot):
            raise InvalidInput("bot", "must be the bot's name: @vigil_bot")
        check_api_url(self.api_url)

    def examine(self, home: Path) -> Check:
        try:
            self.check_fields()
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        if (found := of_secret(home, self.token_file)) is not None:
            return found
        try:
            self.secret(home)
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        return ok(f"{self.bot} at {urlsplit(self.api_url).hostname}")
