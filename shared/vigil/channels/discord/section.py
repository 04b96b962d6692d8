"""The kind `discord`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ...errors import InvalidInput
from ...fields import secrets
from ..asked import AskedField
from ..chats.section import ChatBot
from ..contract import ChannelContext, Listener, Sender
from .happenings import SNOWFLAKE

TIMEOUT_S_MAX: Final = 120.0
TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,100}\.[A-Za-z0-9_-]{1,50}\.[A-Za-z0-9_-]{1,100}")


class DiscordBot(ChatBot, frozen=True, kw_only=True, tag="discord"):
    """A bot of Discord, which is the agent's own.

    People are written to in, and heard from, channels with those whom they paired
    (`vigil channels pair`).
    """

    asked = (
        AskedField("bot", "What the bot is called", "@vigil", is_needed=False),
        AskedField("token", "Its token, as the developer portal gave it", is_secret=True),
    )

    token: str = ""
    """As the developer portal gave it."""
    token_file: str = ""
    """Instead: a file with it; relative to the home. Read again when Discord refuses it."""
    api_url: str = "https://discord.com/api/v10"
    """Where the REST interface is reached."""

    def sender(self, context: ChannelContext) -> Sender:
        self.check(context)
        from .sender import DiscordSender

        return DiscordSender(self, context)

    def listener(self, context: ChannelContext) -> Listener | None:
        self.check(context)
        from ..chats.follower import ChatListener
        from .listener import DiscordReading

        return ChatListener(self, context, DiscordReading)

    @property
    def carries_files(self) -> bool:
        return True

    @property
    def secret_files(self) -> tuple[str, ...]:
        return (self.token_file,)

    def check_secrets(self, home: Path) -> None:
        self.secret(home)

    def check_own_fields(self) -> None:
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: Discord knows repeats for minutes only")
        if self.timeout_s > TIMEOUT_S_MAX:
            reason = f"can't be over {TIMEOUT_S_MAX:g}: Discord knows repeats for minutes"
            raise InvalidInput("timeout_s", reason)

    def check_may_pair(self, address: str) -> None:
        if not (address.isascii() and SNOWFLAKE.fullmatch(address)):
            raise InvalidInput(
                "address", "is no user ID of Discord's, which is a number: leave it out, if unknown"
            )

    def secret(self, home: Path) -> str:
        """Return what it logs in with. Raises: InvalidInput."""
        found = secrets.of_section("token", self.token, self.token_file, home)
        if not TOKEN.fullmatch(found):
            raise InvalidInput("token", "has another form than three parts with points between")
        return found
