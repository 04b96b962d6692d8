"""The kind `slack`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ...errors import InvalidInput
from ...fields import secrets
from ..asked import AskedField
from ..chats.section import ChatBot
from ..contract import ChannelContext, Listener, Sender

BOT_TOKEN: Final = re.compile(r"xoxb-[A-Za-z0-9-]{1,250}")
APP_TOKEN: Final = re.compile(r"xapp-[A-Za-z0-9-]{1,250}")
ADDRESS: Final = re.compile(r"[UWuw][A-Za-z0-9]{2,30}")
"""A member ID, as somebody writes it: what is paired is compared in small letters."""


class SlackAccount(ChatBot, frozen=True, kw_only=True, tag="slack"):
    """An app of Slack, which is the agent's own, by Socket Mode: nothing has to be reached from
    outside.

    People are written to in, and heard from, conversations with those whom they paired
    (`vigil channels pair`).
    """

    asked = (
        AskedField("bot", "What the app is called", "@vigil", is_needed=False),
        AskedField("bot_token", "Bot token of the app", "xoxb-…", is_secret=True),
        AskedField("app_token", "App token, with connections:write", "xapp-…", is_secret=True),
    )

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

    def sender(self, context: ChannelContext) -> Sender:
        self.check(context)
        from .sender import SlackSender

        return SlackSender(self, context)

    def listener(self, context: ChannelContext) -> Listener | None:
        self.check(context)
        from ..chats.follower import ChatListener
        from .listener import SlackReading

        return ChatListener(self, context, SlackReading)

    @property
    def carries_files(self) -> bool:
        return True

    @property
    def secret_files(self) -> tuple[str, ...]:
        return (
            self.bot_token_file,
            self.app_token_file,
        )

    def check_secrets(self, home: Path) -> None:
        self.bot_secret(home)
        self.app_secret(home)

    def check_own_fields(self) -> None:
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: Slack drops no repeats")

    def check_may_pair(self, address: str) -> None:
        if not ADDRESS.fullmatch(address):
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
