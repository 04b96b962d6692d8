"""A connection that is kept up: made, listed, tended, made anew.

One task holds it, because the SDK's client belongs to the task that entered it; calls come from
others. Of what kind it is, and what is said over it, others fill in.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import mcp_types as types
import structlog
from pydantic import ValidationError

from vigil.backoff import Backoff
from vigil.contracts.tools import ServerAnswer, ServerQuestion
from vigil.errors import Unavailable, VigilError
from vigil.texts.trouble import reason_of

from ..tools.source import CallTask, OnProgress
from .tools import shortened

log = structlog.get_logger("vigil.executor.mcp")

LIST_S: Final = 20.0
"""For a list of its tools, but for the first."""
LIST_AGAIN_S: Final = 60.0
"""After so long its tools are listed without being asked to: a look whether it is still there."""
LIST_PAUSE_S: Final = 0.2
LIST_PAUSE_FACTOR: Final = 4
"""After a look nothing is listed for so many times as long as it took."""
LISTED_MAX: Final = 2000
PAUSES: Final = Backoff(0.5, 60.0)
STEADY_S: Final = 30.0
"""A connection that held so long was a good one: the next pause is short again."""


class Wire(Protocol):
    """A way to a server."""

    @property
    def problem(self) -> str:
        """Why it is no more; empty: it is, or nobody knows."""
        ...

    def connect(self) -> AbstractAsyncContextManager[Any]:
        """Open it; what the SDK calls a transport."""
        ...


class McpUnclear(VigilError):
    """A call was sent, and nobody knows whether it was done."""


class McpSessionEnded(Unavailable):
    """A call was refused because its session is no more: it surely did not run."""


class McpRefusal(VigilError):
    """The server refused a call, or its answer can't be used. The text is partly the server's."""


C = TypeVar("C")
"""What speaks the protocol."""
Open = Callable[[Callable[[], None]], Wire]
"""Make a way to the server; what it is given is to be called when the way ends by itself."""
OnListed = Callable[[Sequence[types.Tool], dict[str, str]], Awaitable[None]]
OnLost = Callable[[str, int], None]
"""Is told why there is no connection, and how many in a row have failed."""


class KeptConnection(ABC, Generic[C]):
    """What is asked for tools, of whatever kind. `run` keeps it up until it is cancelled.

    Args:
        start_s: for its start and its first words: some fetch themselves first.
        late: why one may be late, for whoever reads that it was.
    """

    def __init__(
        self,
        name: str,
        open_: Open,
        on_listed: OnListed,
        on_lost: OnLost,
        *,
        start_s: float = 60.0,
        late: str = "",
    ) -> None:
        self._name = name
        self._start_s = start_s
        self._late = late
        self._open = open_
        self._on_listed = on_listed
        self._on_lost = on_lost
        self._client: C | None = None
        self._has_ended = asyncio.Event()
        self._is_stopping = False
        self._was_connected = False
        self._wake = asyncio.Event()
        self._is_tried = asyncio.Event()
        """Whether it has been tried to connect since the last connection ended."""

    @abstractmethod
    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        timeout_s: float,
        answered: ServerAnswer | None = None,
        on_progress: OnProgress | None = None,
        task: CallTask | None = None,
    ) -> Any:
        """Call a tool, once -> its result (`CallToolResult`), or what it wants first
        (`InputRequiredResult`).

        Args:
            answered: what the person, or a model, answered to that: the call goes on.
            on_progress: is told how far it is.
            task: what is known of it as a task; None: it can't be done as one.

        Raises:
            Unavailable, McpUnclear, McpRefusal: it surely did not run; nobody knows; it said no.
        """

    def wanted(
        self, asked: Any, given: dict[str, Any], before: ServerAnswer | None
    ) -> ServerQuestion | None:
        """Return what is to be found out first; None: it doesn't get that, and no call is held.

        Args:
            asked: what the call came to.
            given: the arguments of the call.
            before: what was answered to what was wanted last.
        """
        return None

    @abstractmethod
    def _connected(self, wire: Wire) -> AbstractAsyncContextManager[C]:
        """Open the way, and what speaks the protocol over it."""

    @abstractmethod
    async def _list(self, client: C, within_s: float) -> None:
        """Look what there is, and hand it on. Raises: whatever keeps it from that."""

    @contextlib.asynccontextmanager
    async def _beside(self, client: C) -> AsyncIterator[None]:
        """Do what else is to be done while it is connected."""
        yield

    async def _hold(self, wire: Wire) -> None:
        """Be connected until it ends. Raises: whatever ended it, always."""
        async with (
            asyncio.timeout(self._start_s) as patience,
            self._connected(wire) as client,
        ):
            await self._list(client, self._start_s)
            patience.reschedule(None)
            self._client = client
            self._was_connected = True
            self._is_tried.set()
            async with self._beside(client):
                try:
                    await self._tend(partial(self._list, client, LIST_S))
                finally:
                    self._client = None
                    self._is_tried.clear()

    def _there(self) -> C:
        """Return what is connected. Raises: Unavailable."""
        if self._client is None or self._has_ended.is_set():
            raise Unavailable("it is not connected")  # the reason may be in the server's words
        return self._client

    def _list_soon(self) -> None:
        """Have it listed soon: it may be gone, or stuck, or another one now."""
        self._wake.set()

    def stop(self) -> None:
        """Connect no more, and let go of what there is; to be called before `run` is cancelled.

        Cancelling alone gets lost where the connection ends at the same time.
        """
        self._is_stopping = True
        self._ended()
        self._is_tried.set()

    async def run(self) -> None:
        """Connect, again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        failed = 0
        while not self._is_stopping:
            begun = loop.time()
            self._has_ended.clear()
            self._was_connected = False
            wire: Wire | None = None
            try:
                wire = self._open(self._ended)
                await self._hold(wire)
            except Exception as error:
                reason = (wire and wire.problem) or self._reason(error)
            if not self._was_connected:
                self._is_tried.set()
            failed = 1 if loop.time() - begun > STEADY_S else failed + 1
            problem = f"not connected: {reason}"
            log.warning(
                "no connection", action="mcp.lost", server=self._name, reason=reason, failed=failed
            )
            self._on_lost(problem, failed)
            if not self._is_stopping:
                await asyncio.sleep(PAUSES.after(failed))

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError) and not self._was_connected:
            return f"it did not answer in time, within {self._start_s:g} s{self._late}"
        return _words(error)

    def _ended(self) -> None:
        self._has_ended.set()
        self._is_tried.clear()
        self._wake.set()

    async def _tend(self, list_: Callable[[], Awaitable[None]]) -> None:
        """List its tools again whenever it may have changed. Raises: Unavailable, it ended."""
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LIST_AGAIN_S):
                    await self._wake.wait()
            self._wake.clear()
            if self._has_ended.is_set():
                raise Unavailable("the connection ended")
            begun = loop.time()
            await list_()
            # One that changes all the time, or offers what takes long to look at, waits its turn.
            pause_s = LIST_PAUSE_FACTOR * (loop.time() - begun)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(max(LIST_PAUSE_S, pause_s), LIST_AGAIN_S)):
                    await self._has_ended.wait()


def _words(error: BaseException) -> str:
    """Return why a connection failed, in a line: of a group the first that says anything."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return shortened(f"what it lists is no list of tools: {place}: {first['msg']}", 300)
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} is not there"
    return shortened(reason_of(error), 300)
