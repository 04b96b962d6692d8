"""The kind `ntfy`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ...checks import Check, fail, of_secret, ok, warn
from ...errors import InvalidInput
from ...fields import secrets
from ...net import ssrf
from ..asked import AskedField
from ..contract import Channel, ChannelContext, Sender

_ADVICE: Final = "see docs/notices.md"
TOPIC: Final = re.compile(r"[-_A-Za-z0-9]{1,64}")
PORTS: Final = {"https": 443, "http": 80}


class Ntfy(Channel, frozen=True, kw_only=True, tag="ntfy"):
    """A topic of ntfy, for one person: out only."""

    asked = (
        AskedField("url", "The server", "https://ntfy.sh", is_needed=False),
        AskedField("topic", "The topic: who knows it reads it", is_secret=True),
        AskedField("token", "Access token, if the server wants one", "", True, False),
    )

    url: str = "https://ntfy.sh"
    """Of the server; public unless `allow_private`."""
    topic: str = ""
    """Who knows it reads it: choose one that nobody guesses."""
    topic_file: str = ""
    """Instead: a file with it; relative to the home."""
    token: str = ""
    """An access token of the server, where it asks for one."""
    token_file: str = ""
    """Instead: a file with it; relative to the home."""
    user: str
    """Whose it is: messages for anybody else aren't sent there."""
    console_url: str = ""
    """Where people reach the console, for buttons that lead to it: https://vigil.example; empty:
    as `gateway.public_url` says."""
    allow_private: bool = False
    """Allow this machine and private networks, never the broker's port."""

    def sender(self, context: ChannelContext) -> Sender:
        from .ntfy_sender import NtfySender

        rules = self._rules(context.ports_never)
        self.check_fields(rules)
        return NtfySender(
            self,
            rules,
            context.clock,
            topic=self.own_topic(context.home),
            token=self.own_token(context.home),
            console_url=self.console_url or context.console_url,
        )

    def own_topic(self, home: Path) -> str:
        """Return where it's said. Raises: InvalidInput."""
        found = secrets.of_section("topic", self.topic, self.topic_file, home)
        if not TOPIC.fullmatch(found):
            raise InvalidInput("topic", "may have letters, digits, - and _, 64 at most")
        return found

    def own_token(self, home: Path) -> str:
        """Return with what it may say it; empty: nothing is asked for. Raises: InvalidInput."""
        if not self.token and not self.token_file:
            return ""
        return secrets.of_section("token", self.token, self.token_file, home)

    def _rules(self, ports_never: object = ()) -> ssrf.Rules:
        try:
            parts = urlsplit(self.url)
            port = parts.port or PORTS.get(parts.scheme, 443)
        except ValueError as error:
            raise InvalidInput("url", f"is no address: {error}") from error
        never = (
            tuple(ports_never) if isinstance(ports_never, tuple | list | set | frozenset) else ()
        )
        return ssrf.Rules(ports=(port,), ports_never=never, allow_private=self.allow_private)

    def check_fields(self, rules: ssrf.Rules) -> None:
        """Check what can be told by the section alone. Raises: InvalidInput."""
        ssrf.target_of(self.url, rules)
        if urlsplit(self.url).path not in ("", "/"):
            raise InvalidInput("url", "must be of the server alone: the topic has a field")
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: ntfy drops no repeats")
        if self.console_url and not self.console_url.startswith(("https://", "http://")):
            raise InvalidInput("console_url", "must begin with https://")

    def examine(self, home: Path) -> Check:
        for file in (self.topic_file, self.token_file):
            if (found := of_secret(home, file)) is not None:
                return found
        try:
            self.check_fields(self._rules())
            self.own_topic(home)
            self.own_token(home)
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        host = urlsplit(self.url).hostname
        if urlsplit(self.url).scheme == "http" and not self.allow_private:
            return warn(f"{host} is not encrypted", "use https: messages are people's own")
        return ok(f"{self.user}'s topic at {host}")
