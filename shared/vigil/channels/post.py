"""One request to an address that others named: sent to where it may go, and what came of it.

Redirects are not followed. Of an answer only status, Retry-After and Location count; its body is
read a little and forgotten. Neither the URL nor a header gets into a reason or a log: both may let
somebody in.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from ..clock import Clock
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
HEADERS: Final = {"accept": "*/*", "connection": "close"}


class GuardedPost:
    """Sends requests within rules.

    Args:
        timeout_s: for a whole try, from the look-up of the name to the status.
        resolve: None: the system is asked.
        tls: whom to trust; None: whom the system trusts.
    """

    def __init__(
        self,
        rules: Rules,
        clock: Clock,
        *,
        timeout_s: float,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._client = guarded_client(
            GuardedTransport(rules, resolve, tls=tls), timeout=timeout_s, headers=HEADERS
        )

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Try once; never raises but when cancelled."""
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
                response = await self._request(url, body, headers, trace)
        except TimeoutError:
            return failure(f"no answer within {self._timeout_s:g} s")
        except RequestRefused as error:
            return failure(f"the URL {error.reason}", is_final=True)
        except FAILURES as error:
            return failure(why_failed(error))
        await _drain(response)
        return self._answer(response)

    async def _request(
        self, url: str, body: bytes, headers: Mapping[str, str], trace: Any
    ) -> httpx2.Response:
        """Send it -> the answer's head, its body still to be read."""
        request = self._client.build_request(
            "POST", url, content=body, headers=headers, extensions={"trace": trace}
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
