"""The kind `desktop`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ... import distribution
from ...checks import Check, fail, ok
from ...errors import InvalidInput
from ...fields.section import PositiveS
from ..contract import Channel, ChannelContext, Sender

_ADVICE: Final = "see docs/notices.md"
UNIX: Final = "unix:"


class Desktop(Channel, frozen=True, kw_only=True, tag="desktop"):
    """Notifications of a desktop on this machine, by D-Bus, for one person: out only."""

    asked = ()

    user: str
    """Whose desktop it is: messages for anybody else aren't shown there."""
    bus: str = ""
    """The address of the desktop's bus, unix:path=…; empty: that of whoever runs delivery."""
    timeout_s: PositiveS = 5.0
    """Per attempt."""

    def sender(self, context: ChannelContext) -> Sender:
        self.check_fields()
        from .desktop_sender import DesktopSender

        return DesktopSender(self, context.console_url)

    def check_fields(self) -> None:
        """Check what can be told by the section alone. Raises: InvalidInput."""
        if find_spec("jeepney") is None:
            raise InvalidInput("kind", f"needs jeepney: {distribution.command_for('desktop')}")
        if self.is_idempotent:
            raise InvalidInput("is_idempotent", "can't be: a desktop drops no repeats")
        if self.bus and not self.bus.startswith(UNIX):
            raise InvalidInput("bus", f"must be a bus of this machine: {UNIX}path=…")

    def examine(self, home: Path) -> Check:
        try:
            self.check_fields()
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        return ok(f"{self.user}'s, by {self.bus or 'the bus of whoever runs delivery'}")
