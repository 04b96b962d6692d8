"""What sections of bots of networks have in common."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from ... import distribution
from ...checks import Check, fail, of_secret, ok
from ...errors import InvalidInput
from ...fields.section import PositiveS
from ..contract import Channel, ChannelContext
from .addresses import check_api_url


class ChatBot(Channel, frozen=True, kw_only=True):
    """A bot of a network, which is the agent's own."""

    bot: str = "Vigil"
    """How it's called there: a code is sent to it."""
    api_url: str
    """Where its interface is reached."""
    agent: str = "vigil"
    """Who is written to."""
    is_ordered: bool = True
    timeout_s: PositiveS = 60.0
    """Per attempt to send, with all its parts."""
    backoff_cap_s: PositiveS = 3600.0
    """Longest delay, also for what the server asks for."""

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

    @property
    def library(self) -> str:
        """Return what has to be installed, as it's imported."""
        return "aiohttp"

    @property
    def secret_files(self) -> tuple[str, ...]:
        """Return the files with its secrets that are named."""
        raise NotImplementedError

    def check_secrets(self, home: Path) -> None:
        """Check that its secrets are there, and look like what they are. Raises: InvalidInput."""
        raise NotImplementedError

    def check_own_fields(self) -> None:
        """Check what only this network wants. Raises: InvalidInput."""
        raise NotImplementedError

    def check_fields(self) -> None:
        """Check what can be told by the section alone. Raises: InvalidInput."""
        if find_spec(self.library) is None:
            kind = str(type(self).__struct_config__.tag)
            raise InvalidInput("kind", f"needs {self.library}: {distribution.command_for(kind)}")
        self.check_own_fields()
        if not self.bot.strip():
            raise InvalidInput("bot", "must be the bot's name")
        check_api_url(self.api_url)

    def check(self, context: ChannelContext) -> None:
        """Check what a service needs of it. Raises: InvalidInput."""
        self.check_fields()
        check_api_url(self.api_url, context.ports_never)
        self.check_secrets(context.home)

    def examine(self, home: Path) -> Check:
        advice = f"see docs/{type(self).__struct_config__.tag}.md"
        try:
            self.check_fields()
        except InvalidInput as error:
            return fail(str(error), advice)
        for file in self.secret_files:
            if (found := of_secret(home, file)) is not None:
                return found
        try:
            self.check_secrets(home)
        except InvalidInput as error:
            return fail(str(error), advice)
        return ok(f"{self.bot} at {urlsplit(self.api_url).hostname}")
