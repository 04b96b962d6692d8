"""One agent, asked by the A2A SDK. Imports the SDK: only `connection` imports this, as it connects.

An agent is asked not to keep the connection open: it tells the task that it made, which is then
looked at until it is over. So a call outlives a connection that is lost meanwhile, and a task that
nobody waits for any more is cancelled there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
import httpx2
import mcp_types as types
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
)
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, TransportProtocol
from a2a.utils.errors import A2AError
from google.protobuf import json_format

from vigil.backoff import Backoff
from vigil.errors import Unavailable, VigilError
from vigil.net.client import guarded_client
from vigil.net.guard import GuardedTransport

from ..connection import McpRefusal, McpUnclear
from ..tools import shortened
from ..web import CONNECT_S, McpEndpoint
from . import answers
from .web import GuardedWay, NoAnswer, NotSent, origin_of

for _name in ("a2a", "httpx"):
    # They tell whole cards and URLs; what goes wrong is told here, in a line.
    logging.getLogger(_name).setLevel(logging.CRITICAL)

PAUSES: Final = Backoff(0.1, 5.0)
"""Pauses between looks at a task that isn't over."""
CANCEL_S: Final = 5.0
_BINDINGS: Final[list[str]] = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON]
_FAILURES: Final = (
    *(A2AError, httpx.HTTPError, json_format.Error),
    *(AttributeError, LookupError, RecursionError, TypeError, ValueError),
)
"""Of the SDK, for what can't be reached, or is no answer by the protocol."""
_CLIENT_ERRORS: Final = range(400, 500)
SIGN_IN: Final = "put its token into a file, as 'Authorization: Bearer TOKEN', for headers_file"


class AgentClient:
    """An agent whose card was read."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        base = url.removesuffix(AGENT_CARD_WELL_KNOWN_PATH)
        self._url = url
        self._resolver = A2ACardResolver(http, base)
        self._config = ClientConfig(
            httpx_client=http, streaming=False, supported_protocol_bindings=_BINDINGS
        )
        self._card = AgentCard()
        self._client: Client | None = None

    async def read_card(self) -> tuple[list[types.Tool], dict[str, str]]:
        """Read its card -> its tools, and facts. Raises: Unavailable."""
        try:
            card = await self._resolver.get_agent_card()
        except _FAILURES as error:
            raise Unavailable(_problem(error)) from error
        own = [one for one in card.supported_interfaces if self._is_own(one.url)]
        if not own:
            raise Unavailable("its card names no way to it by JSON-RPC or HTTP at its own host")
        if self._client is None or card != self._card:
            here = AgentCard()
            here.CopyFrom(card)
            del here.supported_interfaces[:]
            here.supported_interfaces.extend(own)
            try:
                self._client = ClientFactory(self._config).create(here)
            except ValueError as error:
                raise Unavailable("its card names no way to it by JSON-RPC or HTTP") from error
            self._card = card
        return answers.tools_of(card), answers.facts_of(card, own[0].protocol_version)

    def _is_own(self, url: str) -> bool:
        return origin_of(url) == origin_of(self._url)

    async def ask(self, skill: str, given: dict[str, Any], timeout_s: float) -> Any:
        """Have it do something -> a `CallToolResult`. Raises: as `KeptConnection.call`."""
        if self._client is None:
            raise Unavailable("it is not connected")
        begun: list[Task] = []
        try:
            async with asyncio.timeout(timeout_s):
                return await self._asked(self._client, _request(skill, given), begun)
        except TimeoutError:
            await self._cancel(self._client, begun)
            raise McpUnclear(f"there was no answer within {timeout_s:g} s") from None
        except asyncio.CancelledError:
            await self._cancel(self._client, begun)
            raise
        except _FAILURES as error:
            raise _kind_of(error) from error

    async def _asked(
        self, client: Client, request: SendMessageRequest, begun: list[Task]
    ) -> types.CallToolResult:
        async for answer in client.send_message(request):
            if answer.HasField("message"):
                return answers.result_of(answer.message)
            begun.append(answer.task)
        (task,) = begun
        polls = 0
        while not answers.is_over(task):
            polls += 1
            await asyncio.sleep(PAUSES.after(polls))
            try:
                task = await client.get_task(GetTaskRequest(id=begun[0].id))
            except A2AClientError as error:
                if not isinstance(_cause(error), NotSent | NoAnswer):
                    raise McpUnclear("it no longer tells of the task that it began") from error
            except A2AError as error:
                raise McpUnclear("it no longer tells of the task that it began") from error
        return answers.result_of(task)

    async def _cancel(self, client: Client, begun: list[Task]) -> None:
        """Tell it that nobody waits any more; whether it hears that is its own affair."""
        if begun:
            with contextlib.suppress(TimeoutError, *_FAILURES):
                async with asyncio.timeout(CANCEL_S):
                    await client.cancel_task(CancelTaskRequest(id=begun[0].id))


@contextlib.asynccontextmanager
async def opened(endpoint: McpEndpoint) -> AsyncIterator[AgentClient]:
    """Return an agent that is reached as the section says."""
    async with (
        guarded_client(
            GuardedTransport(endpoint.rules),
            timeout=httpx2.Timeout(CONNECT_S, read=endpoint.silence_s),
            headers=endpoint.headers,
        ) as client,
        httpx.AsyncClient(
            transport=GuardedWay(client, endpoint.url), timeout=httpx.Timeout(None), trust_env=False
        ) as http,
    ):
        yield AgentClient(http, endpoint.url)


def _request(skill: str, given: dict[str, Any]) -> SendMessageRequest:
    """Return what is sent. A2A has no field for a skill, so it's named beside the words."""
    message = Message(
        message_id=uuid.uuid4().hex,
        role=Role.ROLE_USER,
        parts=[Part(text=answers.text_of(given.get("message", "")))],
        context_id=answers.text_of(given.get("context_id", "")),
        task_id=answers.text_of(given.get("task_id", "")),
    )
    message.metadata.update({"skillId": skill})
    return SendMessageRequest(
        message=message, configuration=SendMessageConfiguration(return_immediately=True)
    )


def _cause(error: BaseException) -> BaseException:
    """Return why the SDK failed: its own words may quote an answer, or the URL."""
    return error.__cause__ or error


def _problem(error: BaseException) -> str:
    cause = _cause(error)
    if isinstance(cause, NotSent | NoAnswer):
        return str(cause)
    if isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
        hint = f": it wants to know who asks; {SIGN_IN}" if status in (401, 403) else ""
        return f"it answered HTTP {status}{hint}"
    return "what it answers is nothing by A2A"


def _kind_of(error: Exception) -> VigilError:
    """Tell apart what surely wasn't done, what nobody knows, and a refusal in the agent's words."""
    cause = _cause(error)
    if isinstance(cause, NotSent):
        return Unavailable(str(cause))
    if isinstance(cause, httpx.HTTPStatusError):
        is_refusal = cause.response.status_code in _CLIENT_ERRORS
        return McpRefusal(_problem(error)) if is_refusal else McpUnclear(_problem(error))
    if isinstance(cause, NoAnswer):
        return McpUnclear(str(cause))
    if isinstance(error, A2AError) and not isinstance(error, A2AClientError):
        return McpRefusal(shortened(str(error), 2000))
    return McpRefusal("what it answered is nothing by A2A")
