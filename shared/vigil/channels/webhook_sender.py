"""What sends a webhook: a message as a signed HTTP request (Standard Webhooks).

Each try has the same id and the same bytes, so a receiver can drop repeats; only timestamp and
signature are new. Redirects are not followed. Of an answer only status, Retry-After and Location
count; its body is read a little and forgotten. Neither the URL nor the secret gets into a reason
or a log: both may let somebody in.

Source: https://www.standardwebhooks.com
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import msgspec
from standardwebhooks import Webhook

from ..clock import Clock
from ..contracts import Instant, Said
from ..net.client import FAILURES, guarded_client, why_failed
from ..net.guard import GuardedTransport, Resolve
from ..net.ssrf import RequestRefused, Rules
from .answers import Answer, NotTaken, Unclear, answer_of

BODY_BYTES_MAX: Final = 64 * 1024
"""How much of an answer's body is read."""
DRAIN_S: Final = 1.0
"""How long reading it may take: the status has said all that counts."""
SENT: Final = "http11.send_request_headers.started"
"""The moment from which on the receiver may have something."""
HEADERS: Final = {
    "content-type": "application/json",
    "accept": "*/*",
    "connection": "close",
}


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
        self._timeout_s = timeout_s
        self._client = guarded_client(
            GuardedTransport(rules, resolve, tls=tls), timeout=timeout_s, headers=HEADERS
        )

    def __repr__(self) -> str:
        return f"WebhookSender({urlsplit(self._url).hostname!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        body = body_of(said, seq)
        is_sent = False

        async def trace(event: str, _: dict[str, Any]) -> None:
            nonlocal is_sent
            is_sent = is_sent or event == SENT

        def failure(reason: str, *, is_final: bool = False) -> Answer:
            if is_sent:
                return Unclear(reason=reason)
            return NotTaken(reason=reason, is_final=is_final)

        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._request(said.id, body, trace)
        except TimeoutError:
            return failure(f"no answer within {self._timeout_s:g} s")
        except RequestRefused as error:
            return failure(f"the URL {error.reason}", is_final=True)
        except FAILURES as error:
            return failure(why_failed(error))
        await _drain(response)
        return self._answer(response)

    async def _request(self, webhook_id: str, body: bytes, trace: Any) -> httpx2.Response:
        """Send it -> the answer's head, its body still to be read."""
        request = self._client.build_request(
            "POST",
            self._url,
            content=body,
            headers=self._signature(webhook_id, body, self._clock.now()),
            extensions={"trace": trace},
        )
        return await self._client.send(request, stream=True)

    def _answer(self, response: httpx2.Response) -> Answer:
        return answer_of(
            response.status_code,
            response.reason_phrase,
            retry_after=response.headers.get("retry-after"),
            location_host=_host_of(response.headers.get("location")),
            now=self._clock.now(),
        )

    def _signature(self, webhook_id: str, body: bytes, now: datetime) -> dict[str, str]:
        return {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(webhook_id, now, body.decode()),
        }

    async def close(self) -> None:
        await self._client.aclose()


async def _drain(response: httpx2.Response) -> None:
    """Let the receiver finish a short answer; what it says, and how it ends, is nobody's matter."""
    size = 0
    with contextlib.suppress(TimeoutError, httpx2.HTTPError, OSError):
        try:
            async with asyncio.timeout(DRAIN_S):
                async for chunk in response.aiter_raw():
                    size += len(chunk)
                    if size >= BODY_BYTES_MAX:
                        break
        finally:
            await response.aclose()


def _host_of(location: str | None) -> str | None:
    """Return the host of a redirect, and nothing else of it."""
    if location is None:
        return None
    try:
        host = urlsplit(location).hostname
    except ValueError:
        return "an unreadable place"
    return "a path of its own" if host is None else host[:100]
