"""The kind `webhook`: its section of the configuration, and what is checked of it.

What sends is in :mod:`vigil.channels.webhook_sender`: only delivery has the libraries for it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec

from ..errors import InvalidInput
from ..net import ssrf
from ..observe.checks import Check, fail, ok, others_can_read, warn
from .contract import Channel, ChannelContext, Sender

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - a prefix, not a secret
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64
"""What the specification of Standard Webhooks asks for."""
_ADVICE: Final = (
    "correct it: url, ports and allow_private; secret or secret_file, whsec_ and 24 to 64 bytes as "
    "base64"
)


class Webhook(Channel, frozen=True, kw_only=True, tag="webhook"):
    """A receiver of signed HTTP requests (Standard Webhooks)."""

    url: str
    secret: str = ""
    """`whsec_…`, or `secret_file`."""
    secret_file: str = ""
    is_idempotent: bool = True
    """It drops repeats of a `webhook-id`, as Standard Webhooks asks."""
    ports: tuple[Annotated[int, msgspec.Meta(ge=1, le=65535)], ...] = (80, 443)
    allow_private: bool = False
    """Let it reach this machine and private networks: for receivers of one's own."""

    def sender(self, context: ChannelContext) -> Sender:
        from .webhook_sender import WebhookSender

        rules = ssrf.Rules(
            ports=self.ports, ports_never=context.ports_never, allow_private=self.allow_private
        )
        ssrf.target_of(self.url, rules)
        secret = secret_of(self, context.home)
        return WebhookSender(self.url, secret, rules, context.clock, timeout_s=self.timeout_s)

    def examine(self, name: str, home: Path) -> Iterator[Check]:
        rules = ssrf.Rules(ports=self.ports, allow_private=self.allow_private)
        try:
            target = ssrf.target_of(self.url, rules)
            secret_of(self, home)
        except InvalidInput as error:
            yield fail(name, str(error), _ADVICE)
            return
        path = home / Path(self.secret_file).expanduser()
        where = f"{target.scheme}://{target.host}:{target.port}"
        if self.secret_file and others_can_read(path):
            yield warn(name, f"others can read {path}", f"chmod 600 {path}")
        elif target.scheme == "http" and not self.allow_private:
            yield warn(name, f"{where} is not encrypted", "use https: messages are people's own")
        else:
            yield ok(name, where)


def secret_of(one: Webhook, home: Path) -> str:
    """Return the secret that signs what goes over a channel.

    Raises:
        InvalidInput: there is none, or two, or it has another form, or its file can't be read.
    """
    if one.secret and one.secret_file:
        raise InvalidInput("secret", "is given twice: leave it or secret_file away")
    if one.secret_file:
        return check_secret("secret_file", _read(home / Path(one.secret_file).expanduser()))
    if not one.secret:
        raise InvalidInput("secret", "is missing: whsec_ and some base64, or secret_file")
    return check_secret("secret", one.secret)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise InvalidInput("secret_file", f"{path}: {reason}") from error


def check_secret(field: str, text: str) -> str:
    """Return `text` if it's a secret of Standard Webhooks; it's never part of an error.

    >>> check_secret("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")[:6]
    'whsec_'

    Raises:
        InvalidInput: it has another form, or the wrong length.
    """
    if not text.startswith(SECRET_PREFIX):
        raise InvalidInput(field, f"must begin with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(field, f"must be base64 after {SECRET_PREFIX}") from error
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        reason = f"must stand for {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes, has {len(key)}"
        raise InvalidInput(field, reason)
    return text
