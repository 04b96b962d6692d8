"""A connection to a server that speaks MCP: its tools, and its prompts as tools.

What a server wants of a person (elicitation), or of a model if the configuration lets it (sampling;
else it's declined, and said before it asks), is handed to whoever called; by the protocol of 2025 a
call is held open for it. A program that was given folders may ask which (roots). What a server says
for a log is in ours. That its tools or prompts have changed is only a reason to look.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, TypeVar

import mcp_types as types
import structlog
from mcp import Client
from mcp.client.extension import advertise
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import Discriminator, Tag, TypeAdapter, ValidationError

from vigil import __version__
from vigil.contracts.tools import ServerAnswer, ServerQuestion
from vigil.errors import Unavailable, VigilError

from ...tools.source import CallTask, OnProgress
from ..connection import (
    LIST_AGAIN_S,
    LISTED_MAX,
    KeptConnection,
    McpRefusal,
    McpSessionEnded,
    McpUnclear,
    Wire,
)
from ..ended import SESSION_ENDED
from ..pace import ServerLog
from ..tools import PromptTool, shortened
from ..web import GONE, LOST, OURS, UNREACHABLE
from . import tasks
from .held import HeldCall, HeldCalls
from .prompts import result_of, texts_of, tool_of
from .tasks import CreatedTask, FollowedTask
from .wanted import response_of, wanted_of

log = structlog.get_logger("vigil.executor.mcp")
for _name in ("mcp.client", "mcp.shared.jsonrpc_dispatcher"):
    # What goes wrong is told here, in a line; the SDK tells it, too, with tracebacks and with what
    # the server wrote, as often as the server likes.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


def _is_task(raw: object) -> bool:
    return isinstance(raw, dict) and raw.get("resultType") == "task"


INFO: Final = types.Implementation(name="vigil", version=__version__)
Answer = types.CallToolResult | types.InputRequiredResult
_ANSWERS: Final[TypeAdapter[Answer | CreatedTask]] = TypeAdapter(
    Annotated[
        Annotated[Answer, Tag("other")] | Annotated[CreatedTask, Tag("task")],
        Discriminator(lambda raw: "task" if _is_task(raw) else "other"),
    ]
)
_PROMPTED: Final[TypeAdapter[types.GetPromptResult | types.InputRequiredResult]] = TypeAdapter(
    types.GetPromptResult | types.InputRequiredResult
)
Request = types.CallToolRequest | types.GetPromptRequest
NOT_SAMPLED: Final = (
    "its server wanted a model's answer before it went on, and got none; it did not go on"
)
_CHANGES: Final = (types.ToolListChangedNotification, types.PromptListChangedNotification)
P = TypeVar("P")
T = TypeVar("T")
Roots = Callable[[], list[types.Root]]


class McpConnection(KeptConnection[Client]):
    """A server that speaks MCP; `roots` tells which folders it was given, and
    `sampling_tokens` how long an answer of a model it may have (0: it has none)."""

    def __init__(
        self, *args: Any, roots: Roots | None = None, sampling_tokens: int = 0, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._roots = roots
        self._sampling_tokens = sampling_tokens
        self._held = HeldCalls()
        self._ending: set[asyncio.Task[None]] = set()
        self._prompts: dict[str, str] = {}
        """What its server calls those that are listed as tools, by that name."""

    # ------------------------------------------------------------ calls

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        timeout_s: float,
        answered: ServerAnswer | None = None,
        on_progress: OnProgress | None = None,
        task: CallTask | None = None,
    ) -> Any:
        """Call a tool. One that did not run since the session had ended is called in the next; one
        that is done as a task is waited for."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + timeout_s
        answered_task = "" if answered is None else tasks.id_of(answered.state)
        known = (task and task.id) or answered_task
        if known:
            given = answered if answered_task else None
            return await self._followed(known, task, until_s, on_progress, answered=given)
        found = await self._made(tool, arguments, until_s, answered, on_progress)
        if not isinstance(found, CreatedTask):
            return found
        return await self._followed(found.task_id, task, until_s, on_progress, first=found)

    async def _followed(
        self,
        id_: str,
        task: CallTask | None,
        until_s: float,
        on_progress: OnProgress | None,
        *,
        first: CreatedTask | None = None,
        answered: ServerAnswer | None = None,
    ) -> Any:
        """Wait for the end of a task, and tell its server if nobody waits any more."""
        followed = FollowedTask(self._there, id_, on_progress)
        if task is None or len(id_) > tasks.ID_LENGTH_MAX:
            await followed.cancel()
            raise McpRefusal("it answered with a task that can't be followed")
        try:
            async with asyncio.timeout_at(until_s):
                if not task.id:
                    with contextlib.suppress(Unavailable):  # then a crash is `ambiguous`
                        await task.begun(id_)
                if answered is not None:
                    if (response := response_of(answered)) is None:
                        await followed.cancel()
                        raise McpRefusal(NOT_SAMPLED)
                    # Who had the call before, and is no more, may have answered.
                    if not task.id or await followed.still_wants(answered.name):
                        await followed.answer(answered.name, response)
                return await followed.end(first)
        except TimeoutError:
            await followed.cancel()
            raise McpUnclear("the task there did not end in time; it was told to stop") from None
        except MCPError as error:
            raise self._kind_of(error) from error
        except asyncio.CancelledError:
            if task.is_withdrawn():
                await followed.cancel()
            raise

    async def _made(
        self,
        tool: str,
        arguments: dict[str, Any],
        until_s: float,
        answered: ServerAnswer | None,
        on_progress: OnProgress | None,
    ) -> Any:
        loop = asyncio.get_running_loop()
        timeout_s = max(0.0, until_s - loop.time())
        if answered is not None and self._held.is_of(answered.state):
            held = self._held.go_on(answered)
            if held is None:
                raise McpUnclear("the connection ended while the person was asked")
            held.on_progress = on_progress
            return await self._sent(held, timeout_s)
        request = self._request(tool, arguments, answered)
        try:
            return await self._call(request, timeout_s, on_progress)
        except McpSessionEnded:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until_s):
                    await self._is_tried.wait()
        return await self._call(request, max(0.0, until_s - loop.time()), on_progress)

    def wanted(
        self, asked: Any, given: dict[str, Any], before: ServerAnswer | None
    ) -> ServerQuestion | None:
        """Return what the person, or a model, is to answer; None: nobody answers, and its server is
        told so."""
        found = wanted_of(asked, given, before, self._sampling_tokens)
        if found is None:
            self._held.let_go(asked.request_state)
            if task := tasks.id_of(asked.request_state):
                ending = asyncio.create_task(FollowedTask(self._there, task).cancel())
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)
        return found

    def _request(
        self, tool: str, arguments: dict[str, Any], answered: ServerAnswer | None
    ) -> Request:
        params: types.CallToolRequestParams | types.GetPromptRequestParams
        request: Request
        if (prompt := self._prompts.get(tool)) is not None:
            params = types.GetPromptRequestParams(name=prompt, arguments=texts_of(arguments))
            request = types.GetPromptRequest(params=params)
        else:
            params = types.CallToolRequestParams(name=tool, arguments=arguments)
            request = types.CallToolRequest(params=params)
        if answered is not None:
            response = response_of(answered)
            if response is None:  # by the protocol of 2026 a server isn't told so
                raise McpRefusal(NOT_SAMPLED)
            params.input_responses = {answered.name: response}
            params.request_state = answered.state
        return request

    async def _call(
        self, request: Request, timeout_s: float, on_progress: OnProgress | None
    ) -> Any:
        client = self._there()
        kind: Any = _ANSWERS if isinstance(request, types.CallToolRequest) else _PROMPTED
        # Not `Client.call_tool`: it runs the server's own schema of results, patterns and all, over
        # what the server answers.
        call = self._held.begin(
            lambda told: client.session.send_request(request, kind, progress_callback=told),
            on_progress,
        )
        return await self._sent(call, timeout_s)

    async def _sent(self, call: HeldCall, timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                found = await call.next()
        except TimeoutError:
            self._list_soon()
            raise McpUnclear(f"there was no answer within {timeout_s:g} s") from None
        except MCPError as error:
            raise self._kind_of(error) from error
        except ValidationError as error:
            raise McpRefusal("what it answered is no result by the protocol") from error
        return result_of(found) if isinstance(found, types.GetPromptResult) else found

    def _kind_of(self, error: MCPError) -> VigilError:
        """Tell the three kinds of failure apart, and look after the connection.

        A server can send any code with any text. What it says is outside content, so only a
        refusal tells its words; the other kinds are told in ours.
        """
        code, text = error.error.code, shortened(error.error.message, 2000)
        is_ours = error.error.data == OURS
        if code == GONE and is_ours:
            self._ended()
            return McpSessionEnded(SESSION_ENDED)
        if code == types.HEADER_MISMATCH:
            self._list_soon()
            return Unavailable(SESSION_ENDED)
        if code == UNREACHABLE and is_ours:
            self._list_soon()
            return Unavailable(text)
        if code == types.CONNECTION_CLOSED or (code == LOST and is_ours):
            self._list_soon()
            why = f" ({text})" if is_ours else ""
            return McpUnclear(f"the connection ended while it ran{why}")
        return McpRefusal(text)

    # ------------------------------------------------------------ holding it

    def _connected(self, wire: Wire) -> Client:
        return Client(
            wire.connect(),
            cache=None,
            client_info=INFO,
            extensions=[advertise(tasks.EXTENSION)],
            message_handler=self._hear,
            sampling_callback=self._held.sampled if self._sampling_tokens else None,
            elicitation_callback=self._held.asked,
            logging_callback=ServerLog(self._name, "mcp.said").take,
            list_roots_callback=self._listed_roots if self._roots else None,
        )

    @contextlib.asynccontextmanager
    async def _beside(self, client: Client) -> AsyncIterator[None]:
        listening = asyncio.create_task(self._subscribe(client))
        try:
            yield
        finally:
            await self._held.close()
            await _end(listening)

    async def _listed_roots(self, context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=self._roots() if self._roots else [])

    async def _list(self, client: Client, within_s: float) -> None:
        there = client.server_capabilities
        found: list[types.Tool] = []
        prompts: list[PromptTool] = []
        async with asyncio.timeout(within_s):
            # One that says nothing of tools may have some all the same.
            if there.tools is not None or there.prompts is None:
                found = await _pages(client.list_tools, lambda page: page.tools)
            if there.prompts is not None:
                prompts = await self._list_prompts(client)
        names = {one.name for one in found}
        self._prompts = {one.name: one.prompt for one in prompts if one.name not in names}
        await self._on_listed([*found, *prompts], _facts(client))

    async def _list_prompts(self, client: Client) -> list[PromptTool]:
        """Look which prompts there are; a server that can't tell has its tools all the same."""
        try:
            found = await _pages(client.list_prompts, lambda page: page.prompts)
        except MCPError as error:
            if error.error.code == types.CONNECTION_CLOSED or error.error.data == OURS:
                raise
            reason = shortened(error.error.message, 300)
        except ValidationError as error:
            reason = shortened(str(error), 300)
        else:
            return [tool_of(one) for one in found]
        log.warning("no prompts", action="mcp.prompts", server=self._name, reason=reason)
        return []

    # ------------------------------------------------------------ changes

    async def _hear(self, message: object) -> None:
        if isinstance(message, _CHANGES):
            self._wake.set()

    async def _subscribe(self, client: Client) -> None:
        """Ask to be told of changes, where the protocol wants to be asked."""
        while True:
            try:
                has_prompts = client.server_capabilities.prompts is not None
                async with client.listen(
                    tools_list_changed=True, prompts_list_changed=has_prompts
                ) as changes:
                    async for _ in changes:
                        self._wake.set()
            except ListenNotSupportedError:
                return  # it tells unasked
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                log.debug("no subscription", action="mcp.listen", error=str(error))
            await asyncio.sleep(LIST_AGAIN_S)


async def _end(task: asyncio.Task[None]) -> None:
    """End a task. Once isn't always enough: the SDK may raise its own error in the place of our
    cancelling, when the connection ends at the same time."""
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=0.1)


async def _pages(list_: Callable[..., Awaitable[P]], of: Callable[[P], Sequence[T]]) -> list[T]:
    """List all pages, as far as anybody looks. A server that names a page twice goes around in a
    circle: what it has was told by then."""
    found: list[T] = []
    cursor: str | None = None
    named: set[str] = set()
    while True:
        page: Any = await list_(cursor=cursor)
        found += of(page)
        cursor = page.next_cursor
        if cursor is None or cursor in named or len(found) >= LISTED_MAX:
            return found[:LISTED_MAX]
        named.add(cursor)


def _facts(client: Client) -> dict[str, str]:
    server = client.server_info
    name = "" if server is None else shortened(f"{server.name} {server.version}", 100)
    return {"server": name, "protocol": client.protocol_version}
