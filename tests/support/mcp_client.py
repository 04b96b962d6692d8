"""MCP servers of a test: the client's side on a real broker, with the executor's own rights."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from services.executor.config import ExecutorLimits
from services.executor.mcp.manager import Servers
from services.executor.mcp.server import ServerTools
from services.executor.sandbox.choice import Choice, choose
from services.executor.tools.run import Running
from services.executor.tools.source import Call, ToolOutput, ToolSource
from services.executor.workspace.disk import Disk
from tests.support.stack import settings_of, some_broker
from vigil import runtime
from vigil.bus.kv import KeyValue
from vigil.contracts import Shelf, Tool
from vigil.contracts.tools import ServerAnswer
from vigil.runtime import Context
from vigil.settings.config import Settings
from vigil.settings.sections import Executor
from vigil.subjects import SessionKey

PACKAGES: Final = Path(sys.prefix) / "mcp" / "node_modules" / "@modelcontextprotocol"
NASTY: Final = Path(__file__).parents[1] / "mcp_servers" / "nasty.py"
KEY: Final = SessionKey("ann", "vigil", "t1")
SETTLED_S: Final = 90.0


def node() -> str:
    """Return node; skip the test where it, or what `make test` installs for it, is missing."""
    found = shutil.which("node")
    if found is None or not PACKAGES.exists():
        pytest.skip("needs node, npm, and the reference servers that `make test` installs")
    return found


def script(server: str) -> str:
    """Return a reference server's file; skip the test where `make test` has yet to install it."""
    found = PACKAGES / f"server-{server}" / "dist" / "index.js"
    if not found.exists():
        pytest.skip(f"needs {server}, which `make test` installs")
    return str(found)


async def sandbox(*, is_off: bool = False) -> Choice:
    """Return the sandbox that works here; skip the test if there is none."""
    found = await choose(Executor(sandbox="off" if is_off else "auto"))
    if not is_off and not found.is_offered:
        pytest.skip(found.problem)
    return found


def nasty(*args: str, **config: Any) -> dict[str, Any]:
    """Return the section of the nasty server."""
    return {"command": sys.executable, "args": ["-S", str(NASTY), *args], **config}


class Shelves:
    """Where the servers make themselves known; what H1's registry would publish."""

    def __init__(self) -> None:
        self.sources: dict[str, ToolSource] = {}
        self.history: list[Shelf] = []
        self._changed = asyncio.Event()

    def set(self, source: ToolSource) -> None:
        self.sources[source.shelf.source] = source
        self.history.append(source.shelf)
        self._change()

    def remove(self, name: str) -> None:
        self.sources.pop(name, None)
        self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def settled(self) -> None:
        """Wait for those that a busy machine keeps from being listed in the executor's own time."""
        async with asyncio.timeout(SETTLED_S):
            for source in list(self.sources.values()):
                if isinstance(source, ServerTools):
                    await source.is_settled.wait()

    async def until(self, name: str, holds: Callable[[Shelf], object]) -> Shelf:
        """Wait until the shelf of a server is as wanted."""
        async with asyncio.timeout(30):
            while True:
                changed = self._changed
                source = self.sources.get(name)
                if source is not None and holds(source.shelf):
                    return source.shelf
                await changed.wait()

    async def until_gone(self, name: str) -> None:
        async with asyncio.timeout(30):
            while name in self.sources:
                await self._changed.wait()


class Hands:
    """The servers of a home, and a way to call their tools."""

    def __init__(self, context: Context, servers: Servers, shelves: Shelves) -> None:
        self.context = context
        self.servers = servers
        self.shelves = shelves

    def tool(self, name: str) -> Tool:
        source = self.shelves.sources[name.partition("__")[0]]
        return next(tool for tool in source.shelf.tools if tool.name == name)

    async def call(self, name: str, /, **arguments: Any) -> ToolOutput:
        """Run a tool once, as the executor would."""
        return await self.run(self.tool(name), arguments)

    async def run(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        answered: ServerAnswer | None = None,
        **of_call: Any,
    ) -> ToolOutput:
        call = msgspec.structs.replace(self.call_of(tool, arguments, answered), **of_call)
        return await self.source(tool).run(call)

    async def carry_out(self, name: str, /, **arguments: Any) -> ToolOutput:
        """Run a tool as the executor carries a call out: with an answer, whatever happens."""
        running, tool = Running(self.context, ExecutorLimits()), self.tool(name)
        return await running.run(self.source(tool), self.call_of(tool, arguments))

    def source(self, tool: Tool) -> ToolSource:
        return self.shelves.sources[tool.name.partition("__")[0]]

    def call_of(
        self, tool: Tool, arguments: dict[str, Any], answered: ServerAnswer | None = None
    ) -> Call:
        due = datetime.now(UTC) + timedelta(seconds=60)
        return Call(id="f" * 32, key=KEY, tool=tool, input=arguments, due_at=due, answered=answered)

    def pins(self) -> KeyValue:
        return KeyValue(self.context.bus, "PINS")


@contextlib.asynccontextmanager
async def hands(
    home: Path,
    choice: Choice,
    agents: dict[str, dict[str, Any]] | None = None,
    **servers: dict[str, Any],
) -> AsyncIterator[Hands]:
    """Servers, and others' agents, by these sections, on a broker."""
    async with some_broker(home) as broker:
        settings = settings_of(home, mcp=servers, a2a=agents or {})
        async with on(broker.url, settings, choice) as found:
            yield found


@contextlib.asynccontextmanager
async def on(url: str, settings: Settings, choice: Choice) -> AsyncIterator[Hands]:
    """The same on a broker that is there already."""
    made: asyncio.Future[Hands] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def serve(context: Context) -> None:
        shelves = Shelves()
        servers = Servers(context, shelves, choice, Disk(context.settings))
        try:
            await servers.start()
            await shelves.settled()
            made.set_result(Hands(context, servers, shelves))
            await done.wait()
        finally:
            await servers.close()

    task = asyncio.create_task(runtime.run("executor", settings, url, serve=serve))
    await asyncio.wait((task, made), return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    try:
        yield made.result()
    finally:
        done.set()
        await task
