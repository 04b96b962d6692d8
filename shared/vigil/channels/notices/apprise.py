"""The kind `apprise`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ... import distribution
from ...checks import Check, fail, of_secret, ok
from ...errors import InvalidInput
from ...fields import secrets
from ..asked import AskedField
from ..contract import Channel, ChannelContext, Sender

_ADVICE: Final = "see docs/notices.md"


class AppriseWay(Channel, frozen=True, kw_only=True, tag="apprise"):
    """One of the many ways that the library Apprise knows, for one person: out only."""

    asked = (AskedField("url", "A URL of Apprise's", is_secret=True),)

    url_file: str
    """A file with one URL of Apprise's, which has secrets in it; relative to the home."""
    user: str
    """Whose it is: messages for anybody else aren't sent there."""
    timeout_s: float = 30.0
    """Per attempt."""

    def sender(self, context: ChannelContext) -> Sender:
        self.check_fields()
        from .apprise_sender import AppriseSender

        return AppriseSender(self, self.url(context.home), context.console_url)

    def url(self, home: Path) -> str:
        """Return where it leads. Raises: InvalidInput."""
        found = secrets.of_file("url_file", self.url_file, home)
        if not found or len(found.split()) != 1:
            raise InvalidInput("url_file", "must hold one URL, and nothing else")
        return found

    def check_fields(self) -> None:
        """Check what can be told by the section alone. Raises: InvalidInput."""
        if find_spec("apprise") is None:
            raise InvalidInput("kind", f"needs apprise: {distribution.command_for('apprise')}")
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: Apprise doesn't tell repeats")

    def examine(self, home: Path) -> Check:
        if (found := of_secret(home, self.url_file)) is not None:
            return found
        try:
            self.check_fields()
            scheme = self.url(home).partition(":")[0]
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        return ok(f"{self.user}'s, by {scheme}")
