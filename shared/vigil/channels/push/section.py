"""The kind `push`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import msgspec

from ... import distribution
from ...checks import Check, fail, ok, others_can_read, warn
from ...errors import InvalidInput
from ...net.ssrf import RequestRefused, Rules, target_of
from ..contract import Channel, ChannelContext, Sender

_ADVICE: Final = "see docs/console.md#notifications"
_LIBRARIES: Final = ("cryptography", "httpx2")
FIRST_WRITTEN: Final = """
[channels.push]
# Notifications in browsers, with every page closed: who wants them presses a button in the console.
kind = "push"
"""
"""What a first start writes of it, where what it needs is installed, and an upgrade adds."""


class PushChannel(Channel, frozen=True, kw_only=True, tag="push"):
    """Notifications in browsers whose person pressed "Notify me in this browser" (Web Push).

    The key that browsers subscribe for is made once, in `push.pem` of the home.
    """

    contact: str = ""
    """Whom a push service may write to: `mailto:you@example.org`, or an https address. Apple's
    wants one."""
    is_idempotent: bool = True
    """A repeat takes the place of the message, at the push service and in the browser."""
    ports: tuple[Annotated[int, msgspec.Meta(ge=1, le=65535)], ...] = (443,)
    """Ports allowed in the addresses that browsers give."""
    allow_private: bool = False
    """Allow push services on this machine and in private networks, also without https; never the
    broker's port."""

    def sender(self, context: ChannelContext) -> Sender:
        self._check()
        from .sender import PushSender

        return PushSender(self, self.rules(context.ports_never), context)

    def rules(self, ports_never: Collection[int] = ()) -> Rules:
        """Return where requests may go."""
        return Rules(ports=self.ports, ports_never=ports_never, allow_private=self.allow_private)

    def check_endpoint(self, endpoint: str, ports_never: Collection[int] = ()) -> None:
        """Refuse an address that nothing may be sent to. Raises: InvalidInput."""
        try:
            target = target_of(endpoint, self.rules(ports_never))
        except RequestRefused as error:
            raise RequestRefused("endpoint", error.reason) from error
        if target.scheme != "https" and not self.allow_private:
            raise InvalidInput("endpoint", "must begin with https://")

    @property
    def is_announcing(self) -> bool:
        return True

    def _check(self) -> None:
        """Raises: InvalidInput."""
        if missing := missing_libraries():
            raise InvalidInput("kind", missing)
        if self.contact and not self.contact.startswith(("mailto:", "https://")):
            raise InvalidInput("contact", "must begin with mailto: or https://")

    def examine(self, home: Path) -> Check:
        try:
            self._check()
            from .vapid import file_of, key_of

            key_of(home)
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        if others_can_read(file := file_of(home)):
            return warn(f"others can read {file}", f"chmod 600 {file}")
        return ok("browsers that subscribed")


def missing_libraries() -> str:
    """Return what to say if what it needs isn't installed here; empty: it is."""
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    return f"needs {', '.join(missing)}: {distribution.command_for()}" if missing else ""


def push_of(channels: Mapping[str, Channel]) -> tuple[str, PushChannel] | None:
    """Return the first channel of this kind with its name; None: there is none."""
    for name, one in sorted(channels.items()):
        if isinstance(one, PushChannel):
            return name, one
    return None
