"""The kind `slack`: its section of the configuration, and what is checked of it."""

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

_ADVICE: Final = "see docs/slack.md"
BOT_TOKEN: Final = re.compile(r"xoxb-[A-Za-z0-9-]{1,250}")
APP_TOKEN: Final = re.compile(r"xapp-[A-Za-z0-9-]{1,250}")
USER_ID: Final = re.compile(r"[UWuw][A-Za-z0-9]{2,30}")


class SlackAccount(Channel, frozen=True, kw_only=True, tag="slack"):
    """An app of Slack, which is the agent's own, by Socket Mode: nothing has to be reached from
    outside.

    People are written to in, and heard from, conversations with those whom they paired
    (`vigil channels pair`).
    """

    bot: str = "Vigil"
    """How the app is called in the workspace: there a code is sent to."""
    bot_token: str = ""
    """Of the app in the workspace: xoxb-…"""
    bot_token_file: str = ""
    """Instead: a file with it; relative to the home. Read again when Slack refuses it."""
    app_token: str = ""
    """Of the app, with `connections:write`: xapp-…"""
    app_token_file: str = ""
    """Instead: a file with it; relative to the home."""
    api_url: str = "https://slack.com/api"
    """Where the Web API is reached."""
    agent: str = "vigil"
    """Who is written to."""
    is_ordered: bool = True
    timeout_s: PositiveS = 60.0
    """Per attempt to send, with all its parts."""
    backoff_cap_s: PositiveS = 3600.0
    """Longest delay, also for what Slack asks for."""

    def sender(self, context: ChannelContext) -> Sender:
        self._check(context)
        from .sender import SlackSender

        return SlackSender(self, context)

    def listener(self, context: ChannelContext) -> Listener | None:
        self._check(context)
        self.app_secret(context.home)
        from .listener import SlackListener

        return SlackListener(self, context)

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
        if not USER_ID.fullmatch(address):
            raise InvalidInput(
                "address", "is no member ID of Slack's, as U012AB3CD: leave it out, if unknown"
            )

    def bot_secret(self, home: Path) -> str:
        """Return what it calls the Web API with. Raises: InvalidInput."""
        found = secrets.of_section("bot_token", self.bot_token, self.bot_token_file, home)
        if not BOT_TOKEN.fullmatch(found):
            raise InvalidInput("bot_token", "has another form than xoxb-…")
        return found

    def app_secret(self, home: Path) -> str:
        """Return what it opens a socket with. Raises: InvalidInput."""
        found = secrets.of_section("app_token", self.app_token, self.app_token_file, home)
        if not APP_TOKEN.fullmatch(found):
            raise InvalidInput("app_token", "has another form than xapp-…")
        return found

    def _check(self, context: ChannelContext) -> None:
        self.check_fields()
        check_api_url(self.api_url, context.ports_never)
        self.bot_secret(context.home)

    def check_fields(self) -> None:
        """Check what can be told by the section alone. Raises: InvalidInput."""
        if find_spec("aiohttp") is None:
            raise InvalidInput("kind", f"needs aiohttp: {distribution.command_for('slack')}")
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: Slack drops no repeats")
        if not self.bot.strip():
            raise InvalidInput("bot", "must be the app's name")
        check_api_url(self.api_url)

    def examine(self, home: Path) -> Check:
        for file in (self.bot_token_file, self.app_token_file):
            if (found := of_secret(home, file)) is not None:
                return found
        try:
            self.check_fields()
            self.bot_secret(home)
            self.app_secret(home)
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        return ok(f"{self.bot} at {urlsplit(self.api_url).hostname}")
