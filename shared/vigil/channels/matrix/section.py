"""The kind `matrix`: its section of the configuration, and what is checked of it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ... import distribution
from ...checks import Check, fail, of_secret, ok, warn
from ...errors import InvalidInput
from ...fields import secrets
from ...fields.section import PositiveS
from ..asked import AskedField
from ..contract import Channel, ChannelContext, Listener, Sender

_ADVICE: Final = "see docs/matrix.md"
MATRIX_ID: Final = r"@[^\s:@]{1,200}:[^\s@/]{1,200}"
USER_ID: Final = re.compile(MATRIX_ID)
LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class MatrixAccount(Channel, frozen=True, kw_only=True, tag="matrix"):
    """An account of the agent's own with a server of Matrix. Encrypted rooms it can't read.

    People are written to in, and heard from, rooms with those whom they paired
    (`vigil channels pair`).
    """

    asked = (
        AskedField("homeserver", "Where its server is reached", "https://matrix.example.org"),
        AskedField("user_id", "The account", "@vigil:example.org"),
        AskedField("access_token", "Its access token", is_secret=True),
    )

    homeserver: str
    """Where it is reached: https://matrix.example.org"""
    user_id: str
    """Of the account: @vigil:example.org"""
    access_token: str = ""
    """Of one device, which is kept: by it the server knows a repeat (`vigil channels login`)."""
    access_token_file: str = ""
    """Instead: a file with it; relative to the home. Read again when the server refuses it."""
    name: str = "Vigil"
    """Who begins a message in a room of several with that name speaks to it."""
    agent: str = "vigil"
    """Who is written to."""
    ca_file: str = ""
    """Certificates to trust instead of the system's; relative to the home."""
    sync_s: PositiveS = 30.0
    """How long the server may wait for news before it answers that there are none."""
    is_idempotent: bool = True
    """The server knows what is sent once more for a day, and it's looked for first after that."""
    is_ordered: bool = True
    timeout_s: PositiveS = 30.0
    """Per attempt to send, with all its parts."""
    backoff_cap_s: PositiveS = 3600.0
    """Longest delay, also for what the server asks for."""

    def sender(self, context: ChannelContext) -> Sender:
        self._check(context)
        from .sender import MatrixSender

        return MatrixSender(self, context)

    def listener(self, context: ChannelContext) -> Listener | None:
        self._check(context)
        from .listener import MatrixListener

        return MatrixListener(self, context)

    @property
    def is_answering(self) -> bool:
        return True

    @property
    def carries_files(self) -> bool:
        return True

    @property
    def paired_at(self) -> str:
        return self.user_id

    @property
    def agent_id(self) -> str:
        return self.agent

    def check_may_pair(self, address: str) -> None:
        if not USER_ID.fullmatch(address):
            raise InvalidInput("address", "is no id of a user of Matrix: @name:server")
        if address == self.user_id:
            raise InvalidInput("address", "is the agent's own")

    def token(self, home: Path) -> str:
        """Return what it logs in with. Raises: InvalidInput."""
        return secrets.of_section("access_token", self.access_token, self.access_token_file, home)

    def _check(self, context: ChannelContext) -> None:
        self.check_fields()
        parts = urlsplit(self.homeserver)
        if (parts.port or 0) in context.ports_never:
            raise InvalidInput("homeserver", "is the broker's port")
        self.token(context.home)

    def check_fields(self) -> None:
        """Check what can be told by the section alone. Raises: InvalidInput."""
        if find_spec("nio") is None:
            raise InvalidInput("kind", f"needs matrix-nio: {distribution.command_for('matrix')}")
        try:
            parts = urlsplit(self.homeserver)
            _ = parts.port
        except ValueError as error:
            raise InvalidInput("homeserver", f"is no address: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput("homeserver", "must begin with https://, and name a host")
        if parts.username or parts.query or parts.fragment or parts.path not in ("", "/"):
            raise InvalidInput("homeserver", "must be scheme, host and port, and nothing else")
        if not USER_ID.fullmatch(self.user_id):
            raise InvalidInput("user_id", "is no id of a user of Matrix: @name:server")

    def examine(self, home: Path) -> Check:
        try:
            self.check_fields()
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        if (found := of_secret(home, self.access_token_file)) is not None:
            return found
        try:
            self.token(home)
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        parts = urlsplit(self.homeserver)
        if parts.scheme == "http" and parts.hostname not in LOCAL:
            return warn(f"{self.homeserver} is not encrypted", "use https: the token goes there")
        return ok(f"{self.user_id} at {parts.hostname}")
