"""What sends a webhook: a message as a signed HTTP request (Standard Webhooks).

Each try has the same id and the same bytes, so a receiver can drop repeats; only timestamp and
signature are new. How a request goes out is in :mod:`.post`.

Source: https://www.standardwebhooks.com
"""

from __future__ import annotations

import ssl
from datetime import datetime
from urllib.parse import urlsplit

import msgspec
from standardwebhooks import Webhook

from ..clock import Clock
from ..contracts import Instant, Said
from ..net.guard import Resolve
from ..net.ssrf import Rules
from .answers import Answer
from .post import GuardedPost


class MessageSent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="message.sent"):
    """The body of a request. `id` is also the header ``webhook-id``."""

    id: str
    session_key: str
    seq: int
    """The message's place in the log: sort by it, a retry may come after later messages."""
    text: str
    at: Instant
    caused_by: str
    """The id of the event that it is about."""
    tag: str | None = None
    is_autonomous: bool = False
    """Nobody asked for it just now."""
    is_tainted: bool = False
    """It descends from untrusted content: show its links, don't follow them."""


def body_of(said: Said, seq: int) -> bytes:
    """Return the body of a message: the same bytes for each try."""
    return msgspec.json.encode(
        MessageSent(
            id=said.id,
            session_key=said.session_key,
            seq=seq,
            text=said.text,
            at=said.at,
            caused_by=said.caused_by,
            tag=said.tag,
            is_autonomous=said.is_autonomous,
            is_tainted=said.is_tainted,
        )
    )


class WebhookSender:
    """One receiver.

    Args:
        secret: ``whsec_…``, checked already.
        timeout_s: for a whole try, from the look-up of the name to the status.
        resolve: None: the system is asked.
        tls: whom to trust; None: whom the system trusts.
    """

    def __init__(
        self,
        url: str,
        secret: str,
        rules: Rules,
        clock: Clock,
        *,
        timeout_s: float,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._url = url
        self._signer = Webhook(secret)
        self._clock = clock
        self._post = GuardedPost(rules, clock, timeout_s=timeout_s, resolve=resolve, tls=tls)

    def __repr__(self) -> str:
        return f"WebhookSender({urlsplit(self._url).hostname!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        body = body_of(said, seq)
        signed = self._signature(said.id, body, self._clock.now())
        return await self._post.send(self._url, body, signed)

    def _signature(self, webhook_id: str, body: bytes, now: datetime) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "webhook-id": webhook_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(webhook_id, now, body.decode()),
        }

    async def close(self) -> None:
        await self._post.close()
