"""The kind `discord`: its section of the configuration, and what is checked of it."""

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
from .happenings import SNOWFLAKE

_ADVICE: Final = "see docs/discord.md"
TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,100}\.[A-Za-z0-9_-]{1,50}\.[A-Za-z0-9_-]{1,100}")


class DiscordBot(Channel, frozen=True, kw_only=True, tag="discord"):
    """A bot of Discord, which is the agent's own.

    People are written to in, and heard from, channels with those whom they paired
    (`vigil channels pair`).
    """

    bot: str = "Vigil"
    """How it is called: there a code is sent to."""
    token: str = ""
    """As the developer portal gave it."""
    token_file: str = ""
    """Instead: a file with it; relative to the home. Read again when Discord refuses it."""
    api_url: str = "https://discord.com/api/v10"
    """Where the REST interface is reached."""
    agent: str = "vigil"
    """Who is written to."""
    is_ordered: bool = True
    timeout_s: PositiveS = 60.0
    """Per attempt to send, with all its parts; Discord knows a repeat for some minutes."""
    backoff_cap_s: PositiveS = 3600.0
    """Longest delay, also for what Discord asks for."""

    def sender(self, context: ChannelContext) -> Sender:
        self._check(context)
        from .sender import DiscordSender

        return DiscordSender(self, context)

    def listener(self, context: ChannelContext) -> Listener | None:
        self._check(context)
        from .listener import DiscordListener

        return DiscordListener(self, context)

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

    def _check(self, context: ChannelContext) -> None:
        self.check_fields()
        check_api_url(self.api_url, context.ports_never)
        self.secret(context.home)

    def check_fields(self) -> None:
        """Check what can be told by the section alone. Raises: InvalidInput."""
        if find_spec("aiohttp") is None:
            raise InvalidInput("kind", f"needs aiohttp: {distribution.command_for('discord')}")
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: Discord knows repeats for minutes only")
        if self.timeout_s > 120:
            raise InvalidInput("timeout_s", "can't be over 120: Discord knows repeats for minutes")
        if not self.bot.strip():
            raise InvalidInput("bot", "must be the bot's name")
        check_api_url(self.api_url)

    def examine(self, home: Path) -> Check:
        if (found := of_secret(home, self.token_file)) is not None:
            return found
        try:
            self.check_fields()
            self.secret(home)
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        return ok(f"{self.bot} at {urlsplit(self.api_url).hostname}")
