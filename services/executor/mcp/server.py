"""One configured MCP server, or another program's agent, as a source of tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import mcp_types as types
import msgspec
import structlog

from vigil.background.end import end_tasks
from vigil.circuits import Circuits
from vigil.contracts import Shelf, Tool
from vigil.errors import ConfigError, Unavailable
from vigil.oauth.bearer import Bearer
from vigil.runtime import Context
from vigil.settings.servers import McpServer, ToolServer
from vigil.trust import sources as trust
from vigil.words.rule import fields_of

from ..sandbox.choice import Choice
from ..tools.source import Call, Registrar, ToolOutput
from ..workspace.disk import Disk
from . import pins as pins_of
from . import tools as tools_of
from .agents.connection import A2aConnection, AgentWay
from .client.connection import McpConnection
from .connection import KeptConnection, McpRefusal, McpUnclear, Wire
from .loans import Loans
from .pace import ServerLog
from .pin_bucket import Pinning
from .pins import Sorted
from .program import guard_of, program_of, roots_of
from .stdio import StdioWire
from .tools import OfferedTool
from .web import WebWire, endpoint_of

log = structlog.get_logger("vigil.executor.mcp")

FAILED_MAX: Final = 2
"""Connections in a row that may fail before its tools are taken off the shelf."""
CONNECTIONS_MAX: Final = 3
"""The same, before its circuit opens (SPEC C-5)."""
AMBIGUOUS: Final = (
    "ambiguous: {reason}. Nobody knows whether {tool} did what it was asked to; look before you "
    "ask again."
)
WANTED_OTHERWISE: Final = (
    "Its server wants something first that it does not get here, so it did not go on."
)
ANOTHER: Final = "{tool} is no longer what it was when it was offered; it did not run"


class ServerTools:
    """A server, its tools, and what of them may be offered."""

    def __init__(
        self,
        name: str,
        config: ToolServer,
        context: Context,
        registrar: Registrar,
        pinning: Pinning,
        choice: Choice,
        disk: Disk,
    ) -> None:
        self.name = name
        self.config = config
        self._context = context
        self._registrar = registrar
        self._pinning = pinning
        self._choice = choice
        self._room = disk
        self._circuits = Circuits.of(context, patience_s=config.timeout_s)
        self._circuit = f"mcp:{name}"
        self._telling: set[asyncio.Task[None]] = set()
        self._loans: Loans | None = None
        way = (name, self._open, self._listed, self._lost)
        patience: dict[str, Any] = {"start_s": config.start_timeout_s, "late": _late(name, config)}
        self._connection: KeptConnection[Any] = (
            McpConnection(
                *way, roots=roots_of(config), sampling_tokens=config.sampling_tokens, **patience
            )
            if isinstance(config, McpServer)
            else A2aConnection(*way, **patience)
        )
        self._task: asyncio.Task[None] | None = None
        self._found: tuple[OfferedTool, ...] = ()
        self._unfit: tuple[str, ...] = ()
        self._sorted = Sorted()
        self._wire_names: dict[str, str] = {}
        self._facts: dict[str, str] = {}
        self._problem = "not connected yet"
        self._shelf = self._made()
        self.is_settled = asyncio.Event()
        """Set once it was listed, or could not be reached, for the first time."""

    @property
    def shelf(self) -> Shelf:
        return self._shelf

    def start(self) -> None:
        """Begin to connect."""
        self._registrar.set(self)
        self._task = asyncio.create_task(self._connection.run(), name=f"mcp-{self.name}")

    async def close(self) -> None:
        """End the connection, and the program with all that it started."""
        if self._task is not None:
            self._connection.stop()
            await end_tasks(self._task)

    # ------------------------------------------------------------ the way there

    def _open(self, on_end: Callable[[], None]) -> Wire:
        """Make a way to it. Raises: ConfigError, ever again until it is configured otherwise."""
        config = self.config
        if config.url or not isinstance(config, McpServer):
            ports_never = self._context.bus.broker_ports
            endpoint = endpoint_of(config, self._context.settings.home, ports_never)
            if isinstance(config, McpServer):
                return WebWire(endpoint, on_end, bearer=self._bearer())
            return AgentWay(endpoint)
        sandbox = self._choice.sandbox()
        if sandbox is None:
            raise ConfigError(self._choice.problem)
        program = program_of(self.name, config, self._context.settings, sandbox)
        self._loans = Loans(config, self._context.settings)
        said = ServerLog(self.name, "mcp.stderr")
        kind = self._choice.kind
        guard = partial(guard_of, self.name, self._context.settings, self._room, kind)
        return StdioWire(program, said, on_end, self._loans.running, guard)

    def _bearer(self) -> Bearer:
        return Bearer(
            self._context.settings.home,
            self.name,
            self.config.url,
            allow_private=self.config.allow_private,
            ports_never=self._context.bus.broker_ports,
            now_s=lambda: self._context.clock.now().timestamp(),
        )

    # ------------------------------------------------------------ what it offers

    async def _listed(self, listed: Sequence[types.Tool], facts: dict[str, str]) -> None:
        bytes_max = self._context.settings.config.executor.output_bytes_max
        # In a thread: checking the schemas of somebody who means no good takes seconds.
        found, unfit = await asyncio.to_thread(
            tools_of.offers, self.name, self.config, listed, output_bytes_max=bytes_max
        )
        if self._pinning.of(self.name) is None and found:
            now = self._context.clock.now()
            await self._pinning.create(pins_of.first_sight(self.name, found, now))
        if self._problem:
            await self._circuits.recovered(self._circuit)
            log.info("connected", action="mcp.connected", server=self.name, tools=len(found))
        self._found, self._unfit, self._problem = found, unfit, ""
        self._facts = facts
        self.restock()
        self.is_settled.set()

    def _lost(self, reason: str, failed: int) -> None:
        self._problem = reason
        if failed >= FAILED_MAX:
            self._found = ()
        if failed == CONNECTIONS_MAX:
            telling = asyncio.create_task(self._circuits.trip(self._circuit, reason))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)
        self.restock()
        self.is_settled.set()

    def restock(self) -> None:
        """Make the shelf anew: what it offers, or what is approved of it, has changed."""
        before = {held.name: held.digest for held in self._sorted.held}
        pins = self._pinning.of(self.name)
        self._sorted = Sorted() if pins is None else pins_of.sort(self._found, pins)
        self._wire_names = {offer.tool.name: offer.wire for offer in self._sorted.kept}
        for held in self._sorted.held:
            if before.get(held.name) != held.digest:
                log.warning(
                    "a tool is not what was approved",
                    action="mcp.held",
                    server=self.name,
                    tool=held.name,
                    digest=held.digest,
                    pinned=held.pinned,
                )
        shelf = self._made()
        if msgspec.structs.replace(shelf, at=self._shelf.at) != self._shelf:
            self._shelf = shelf
            self._registrar.set(self)

    def _made(self) -> Shelf:
        held = self._sorted.held
        waiting = [f"{len(held)} held back until a person approves"] if held else []
        problems = [*([self._problem] if self._problem else []), *self._unfit, *waiting]
        return Shelf(
            source=self.name,
            at=self._context.clock.now(),
            tools=tuple(offer.tool for offer in self._sorted.kept),
            held=held,
            problem="; ".join(problems),
            facts=self._facts | {"state": "not connected" if self._problem else "connected"},
        )

    # ------------------------------------------------------------ calls

    async def run(self, call: Call) -> ToolOutput:
        """Run one of its tools. Raises: Unavailable."""
        if not self._loans or not self.config.is_trusted:
            return await self._run(call)
        begun = await asyncio.to_thread(self._loans.begin, is_tainted=call.is_tainted)
        try:
            output = await self._run(call)
        finally:
            has_seen = await asyncio.to_thread(self._loans.end, begun)
        return msgspec.structs.replace(output, is_tainted=output.is_tainted or has_seen)

    async def _run(self, call: Call) -> ToolOutput:
        tool = call.tool
        wire_name = self._wire_names.get(tool.name)
        if wire_name is None or self._offered(tool.name) != tool.digest:
            return ToolOutput(content=ANOTHER.format(tool=tool.name), is_error=True)
        try:
            result = await self._asked(wire_name, call, tool.timeout_s)
        except McpRefusal as error:
            return ToolOutput(
                content=str(error),
                is_error=True,
                is_tainted=not self.config.is_trusted,
                origin=trust.of_server(self.name),
            )
        except McpUnclear as error:
            return self._unclear(tool, error)
        if isinstance(result, types.InputRequiredResult):
            return self._wanting(call, result)
        bytes_max = self._context.settings.config.gateway.attachment_bytes_max
        content, files = await asyncio.to_thread(tools_of.described, result, bytes_max)
        return ToolOutput(
            content=content,
            is_error=result.is_error,
            is_tainted=not self.config.is_trusted,
            # What it was lent may hold what others wrote: then it's trusted by configuration alone.
            origin="" if self._loans else trust.of_server(self.name),
            files=files,
            fields=fields_of(result.structured_content),
        )

    def _wanting(self, call: Call, asked: types.InputRequiredResult) -> ToolOutput:
        """Return what a server wants of the person, or of a model, for whoever can ask."""
        wanted = self._connection.wanted(asked, call.input, call.answered)
        return ToolOutput(
            content=WANTED_OTHERWISE,
            is_error=True,
            is_tainted=wanted is not None and not self.config.is_trusted,
            wanted=wanted,
        )

    async def _asked(self, tool: str, call: Call, timeout_s: float) -> Any:
        """Ask the server, unless its circuit is open: a refusal is an answer, silence is none."""
        passed = await self._circuits.enter(self._circuit)
        try:
            result = await self._connection.call(
                tool, call.input, timeout_s, call.answered, call.on_progress, call.task
            )
        except McpRefusal:
            await self._circuits.succeeded(passed)
            raise
        except (McpUnclear, Unavailable) as error:
            await self._circuits.failed(passed, str(error))
            raise
        except BaseException:
            await self._circuits.unsaid(passed)
            raise
        await self._circuits.succeeded(passed)
        return result

    def _offered(self, name: str) -> str:
        return next((t.digest for t in self._shelf.tools if t.name == name), "")

    def _unclear(self, tool: Tool, error: McpUnclear) -> ToolOutput:
        """Answer what nobody knows. Raises: Unavailable, if it may run again."""
        if tool.is_idempotent:
            raise Unavailable(str(error)) from error
        return ToolOutput(content=AMBIGUOUS.format(reason=error, tool=tool.name), is_error=True)


def _late(name: str, config: ToolServer) -> str:
    """Return which settings to look at when a server doesn't answer in time."""
    if not isinstance(config, McpServer):
        return f" (`start_timeout_s` of [a2a.{name}])"
    offline = "; it has no network, see `network`" if config.command and not config.network else ""
    return f" (`start_timeout_s` of [mcp.{name}]{offline})"
