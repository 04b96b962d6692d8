"""Chat Completions over HTTP: a request goes out, pieces of an answer come in, one call at a time.

What OpenAI's SDK did here, without its 30 MB: one route is used, and a server's words are read as
they came, whatever shape they have. Errors have the names that Anthropic's SDK gives them, so that
`failures` reads both wires.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

import httpx2
import msgspec

from vigil.net.client import FAILURES, USER_AGENT

EVENT_BYTES_MAX: Final = 16 * 2**20
"""Of one piece: some servers send a whole tool call in one."""
END_S_MAX: Final = 1.0
"""How long the end of a stream is waited for once it said that it's over: then the connection is
used again."""
_DONE: Final = "[DONE]"


class APIError(Exception):
    """A server said that it failed, in the middle of a stream; `body`: what it said of that."""

    def __init__(self, message: str, body: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.body = body
        told = body if isinstance(body, dict) else {}
        self.code, self.type = (_text(told.get(name)) for name in ("code", "type"))


class APIConnectionError(APIError):
    """It can't be reached, or the connection was lost before it answered."""


class APITimeoutError(APIConnectionError):
    """It didn't answer in time."""


class APIStatusError(APIError):
    """It answered, and not with success."""

    def __init__(self, message: str, body: object, response: httpx2.Response) -> None:
        super().__init__(message, body)
        self.response = response
        self.status_code = response.status_code


class ChatCompletions:
    """A server's route ``POST /chat/completions``.

    Args:
        base_url: up to and with ``/v1``.
        headers: of each request, beside the key and who we are.
    """

    def __init__(self, base_url: str, api_key: str, headers: Mapping[str, str]) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._client = httpx2.AsyncClient(
            headers={
                "authorization": f"Bearer {api_key}",
                "user-agent": USER_AGENT,
                "content-type": "application/json",
                "accept": "text/event-stream, application/json",
                **headers,
            },
            # A conversation isn't taken to wherever an answer says.
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
        )

    async def close(self) -> None:
        await self._client.aclose()

    @contextlib.asynccontextmanager
    async def asked(
        self, body: Mapping[str, Any], *, timeout_s: float, connect_s: float
    ) -> AsyncIterator[AsyncIterator[Any]]:
        """Ask, and give the pieces of the answer, each an object with the attributes it came with.

        Raises:
            APIConnectionError, APIStatusError: there is no answer.
            APIError: while it is read: the server says that it failed.
        """
        sent = msgspec.json.encode(body)
        timeout = httpx2.Timeout(timeout_s, connect=connect_s)
        request = self._client.build_request("POST", self._url, content=sent, timeout=timeout)
        try:
            response = await self._client.send(request, stream=True)
        except httpx2.TimeoutException as error:
            raise APITimeoutError("no answer in time") from error
        except (*FAILURES, AttributeError) as error:  # the last as in `vigil.net.guard`
            raise APIConnectionError("no connection") from error
        async with contextlib.aclosing(response):
            if not response.is_success:
                raise await _refusal(response)
            yield _pieces(response)


async def _pieces(response: httpx2.Response) -> AsyncIterator[Any]:
    # Some servers name another type, and stream nevertheless; a page of HTML has no events.
    response.headers["content-type"] = "text/event-stream"
    events = aiter(httpx2.EventSource(response, EVENT_BYTES_MAX))
    async for event in events:
        if event.data.startswith(_DONE):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S_MAX):
                    async for _ in events:
                        pass
            return
        if not event.data:
            continue
        told = json.loads(event.data)
        if isinstance(told, dict) and (failed := told.get("error")):
            message = failed.get("message") if isinstance(failed, dict) else None
            raise APIError(message if isinstance(message, str) and message else "failed", failed)
        yield _attributes(told)


async def _refusal(response: httpx2.Response) -> APIStatusError:
    """Return what a status other than success means, with the words of whoever said it."""
    message = f"Error code: {response.status_code}"
    with contextlib.suppress(httpx2.HTTPError):
        await response.aread()
    body: object = response.text.strip() if response.is_stream_consumed else None
    with contextlib.suppress(ValueError, TypeError):
        body = json.loads(str(body))
        body = body.get("error", body) if isinstance(body, dict) else body
        told = body.get("message") if isinstance(body, dict) else None
        if isinstance(told, str) and told:
            message += f" - {told}"
    return APIStatusError(message, body, response)


def _attributes(told: Any) -> Any:
    if isinstance(told, dict):
        return SimpleNamespace(**{key: _attributes(value) for key, value in told.items()})
    return [_attributes(one) for one in told] if isinstance(told, list) else told


def _text(value: object) -> str | None:
    return None if value is None else str(value)
