"""Calls that a server does as tasks: it answers with an id, which is asked for until it's over.

The id is told to whoever called before anything else is done, so that another one may look after
the task if this one is no more: it outlives lost connections, and crashes here.

Source: the extension io.modelcontextprotocol/tasks of MCP 2026-07-28 (SEP-2663).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final, Literal

import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from vigil.errors import Unavailable

from ...tools.source import OnProgress
from ..connection import McpRefusal, McpUnclear
from ..tools import shortened
from ..web import OURS

EXTENSION: Final = "io.modelcontextprotocol/tasks"
STATE: Final = "task:"
"""Before the id of a task, in the place of the state that a server wants to be given back."""
PAUSE_MS: Final = 1000
PAUSE_MS_MIN: Final = 100
PAUSE_MS_MAX: Final = 30_000
ID_LENGTH_MAX: Final = 500
CANCEL_S: Final = 2.0
NO_SUCH: Final = (types.INVALID_PARAMS, types.METHOD_NOT_FOUND)
"""Codes of errors that say that there is no such task; after any other one it's asked for again."""
CANCELLED: Final = "its server cancelled it"
UNKNOWN: Final = "its server knows nothing of it any more"
STRANGE: Final = "what it tells of the task is nothing by the protocol"


class TaskState(types.Result):
    """How a task is."""

    task_id: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    poll_interval_ms: int | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, types.InputRequest] | None = None


class CreatedTask(TaskState):
    """What a call came to: a task, which goes on."""

    result_type: Literal["task"] = "task"


class _OfTask(types.RequestParams):
    task_id: str


class _Update(_OfTask):
    input_responses: dict[str, Any]


class _Get(types.Request[_OfTask, Literal["tasks/get"]]):
    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"


class _Cancel(types.Request[_OfTask, Literal["tasks/cancel"]]):
    name_param = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"


class _Updating(types.Request[_Update, Literal["tasks/update"]]):
    name_param = "taskId"
    method: Literal["tasks/update"] = "tasks/update"


_RESULT: Final[TypeAdapter[types.CallToolResult]] = TypeAdapter(types.CallToolResult)


def id_of(state: str | None) -> str:
    """Return the task that an answer is for; empty: none.

    >>> id_of("task:7f"), id_of("opaque"), id_of(None)
    ('7f', '', '')
    """
    return state[len(STATE) :] if state is not None and state.startswith(STATE) else ""


class FollowedTask:
    """One task, asked for until it is over.

    Args:
        there: gives what speaks to the server. Raises: Unavailable, it isn't connected.
    """

    def __init__(
        self, there: Callable[[], Client], id_: str, on_progress: OnProgress | None = None
    ) -> None:
        self._there = there
        self._id = id_
        self._on_progress = on_progress
        self._pause_ms = PAUSE_MS

    async def end(self, first: TaskState | None = None) -> Any:
        """Wait for its end -> its result, or what it wants first (`InputRequiredResult`).

        Args:
            first: how it was when it was made.

        Raises:
            McpRefusal, McpUnclear: it failed, or was cancelled; nobody knows.
        """
        state = first
        while True:
            if state is not None and (found := await self._outcome(state)) is not None:
                return found
            await asyncio.sleep(self._pause_ms / 1000)
            state = await self._asked()

    async def answer(self, name: str, response: types.InputResponse) -> None:
        """Give it what it wanted. Raises: Unavailable, MCPError; McpUnclear, whether it has it."""
        given = {name: response.model_dump(by_alias=True, mode="json", exclude_none=True)}
        request = _Updating(params=_Update(task_id=self._id, input_responses=given))
        try:
            await self._there().session.send_request(request, types.EmptyResult)
        except ValidationError as error:
            raise McpUnclear(STRANGE) from error

    async def still_wants(self, name: str) -> bool:
        """Return whether it waits for what it wanted by that name, which it gives once in its life;
        also, where nobody can tell. Raises: McpUnclear."""
        state = await self._asked()
        return state is None or name in (state.input_requests or {})

    async def cancel(self) -> None:
        """Tell its server that nobody waits for it any more, if that can be told at once."""
        with contextlib.suppress(Unavailable, MCPError, ValidationError, TimeoutError):
            async with asyncio.timeout(CANCEL_S):
                request = _Cancel(params=_OfTask(task_id=self._id))
                await self._there().session.send_request(request, types.EmptyResult)

    async def _asked(self) -> TaskState | None:
        """Ask how it is; None: its server is away, or can't tell now."""
        try:
            request = _Get(params=_OfTask(task_id=self._id))
            return await self._there().session.send_request(request, TaskState)
        except Unavailable:
            return None
        except MCPError as error:
            if error.error.code in NO_SUCH and error.error.data != OURS:
                raise McpUnclear(UNKNOWN) from error
            return None
        except ValidationError as error:
            raise McpUnclear(STRANGE) from error

    async def _outcome(self, state: TaskState) -> Any:
        """Return what it came to; None: it goes on."""
        wanted_ms = PAUSE_MS if state.poll_interval_ms is None else state.poll_interval_ms
        self._pause_ms = min(max(wanted_ms, PAUSE_MS_MIN), PAUSE_MS_MAX)
        match state.status:
            case "completed":
                try:
                    return _RESULT.validate_python(state.result or {}, by_name=False)
                except ValidationError as error:
                    raise McpRefusal("what it came to is no result by the protocol") from error
            case "failed":
                said = (state.error or {}).get("message") or state.status_message
                raise McpRefusal(shortened(str(said or "it failed"), 2000))
            case "cancelled":
                raise McpRefusal(CANCELLED)
            case "input_required":
                return types.InputRequiredResult(
                    result_type="input_required",
                    input_requests=state.input_requests,
                    request_state=f"{STATE}{self._id}",
                )
            case "working":
                if self._on_progress is not None and state.status_message:
                    await self._on_progress(0.0, None, state.status_message)
                return None
