"""The kind `webhook`: its section of the configuration, and what is checked of it.

What sends is in :mod:`vigil.channels.webhook_sender`: only delivery has the libraries for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import msgspec

from ..checks import Check, fail, of_secret, ok, warn
from ..errors import InvalidInput
from ..fields import secrets
from ..fields.secrets import Secret
from ..net import ssrf
from ..net.endpoint import shown_endpoint
from .contract import Channel, ChannelContext, Sender

_ADVICE: Final = (
    "correct it: url, ports and allow_private; secret or secret_file, whsec_ and 24 to 64 bytes as "
    "base64"
)


class Webhook(Channel, frozen=True, kw_only=True, tag="webhook"):
    """A receiver of signed HTTP requests (Standard Webhooks).

    Delivery checks it at start. At most 8 concurrent requests per channel and replica.
    """

    url: str
    """http or https, without user name; public unless `allow_private`."""
    secret: str = ""
    """`whsec_` and base64 of 24 to 64 bytes."""
    secret_file: str = ""
    """Instead: a file with it; relative to the home."""
    is_idempotent: bool = True
    ports: tuple[Annotated[int, msgspec.Meta(ge=1, le=65535)], ...] = (80, 443)
    """Ports allowed in `url`."""
    allow_private: bool = False
    """Allow this machine and private networks, never the broker's port."""

    def sender(self, context: ChannelContext) -> Sender:
        from .webhook_sender import WebhookSender

        rules = ssrf.Rules(
            ports=self.ports, ports_never=context.ports_never, allow_private=self.allow_private
        )
        ssrf.target_of(self.url, rules)
        secret = secret_of(self, context.home)
        return WebhookSender(self.url, secret, rules, context.clock, timeout_s=self.timeout_s)

    def examine(self, home: Path) -> Check:
        rules = ssrf.Rules(ports=self.ports, allow_private=self.allow_private)
        try:
            target = ssrf.target_of(self.url, rules)
            secret_of(self, home)
        except InvalidInput as error:
            return fail(str(error), _ADVICE)
        where = f"{target.scheme}://{shown_endpoint(target.host, target.port)}"
        if (found := of_secret(home, self.secret_file)) is not None:
            return found
        if target.scheme == "http" and not self.allow_private:
            return warn(f"{where} is not encrypted", "use https: messages are people's own")
        return ok(where)


def secret_of(one: Webhook, home: Path) -> Secret:
    """Return the secret that signs what goes over a channel.

    Raises:
        InvalidInput: there is none, or two, or it has another form, or its file can't be read.
    """
    secret = secrets.of_section("secret", one.secret, one.secret_file, home)
    secrets.check_standard("secret_file" if one.secret_file else "secret", secret)
    return secret
