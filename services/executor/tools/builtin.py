"""The executor's own tools: shell, read_file, write_file, http_get (SPEC P-6)."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from vigil.clock import Clock
from vigil.contracts import Risk, Shelf, Tool
from vigil.errors import InvalidInput
from vigil.net.guard import Resolve
from vigil.net.ssrf import WEB_PORTS, Rules
from vigil.runtime import Context
from vigil.settings.config import Config, Settings

from ..sandbox.choice import Choice, choose
from ..workspace.room import Room
from ..workspace.workspace import Workspace
from . import files
from .arguments import (
    ARGUMENTS,
    HttpGet,
    ReadFile,
    Shell,
    WriteFile,
    check,
    description_of,
    schema_of,
)
from .fetch import Fetcher
from .shell import Commands
from .source import Call, Told

log = structlog.get_logger("vigil.executor")

SOURCE: Final = "builtin"
FILE_S: Final = 10.0
END_S: Final = 10.0
"""How long what a command started may take to end, and a page to be read."""
RISK: Final[dict[str, Risk]] = {
    "shell": "external",
    "read_file": "read",
    "write_file": "write",
    "http_get": "external",
}
IDEMPOTENT: Final = frozenset({"read_file", "write_file", "http_get"})


class Builtin:
    """The source of the executor's own tools.

    Args:
        choice: which sandbox commands run in.
        rules: what http_get may reach; None: public addresses at the ports of the web.
        resolve: None: the system is asked.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        choice: Choice,
        *,
        rules: Rules | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        config = settings.config
        self.choice = choice
        self._config = config
        self._root = settings.workspaces
        self._shelf = shelf_of(choice, config, clock)
        sandbox = choice.sandbox()
        self.room = Room(settings)
        self._keeping: asyncio.Task[None] | None = None
        self._commands = None if sandbox is None else Commands(sandbox, config.executor, self.room)
        self._fetcher = Fetcher(
            rules or Rules(ports=WEB_PORTS),
            bytes_max=config.executor.http_bytes_max,
            timeout_s=config.executor.http_timeout_s,
            resolve=resolve,
        )

    @classmethod
    async def open(cls, context: Context) -> Builtin:
        """Find out which sandbox works here, and have the tools ready."""
        choice = await choose(context.settings.config.executor)
        log.info(
            "sandbox chosen", action="executor.sandbox", kind=choice.kind,
            is_offered=choice.is_offered, reasons=choice.reasons,
        )  # fmt: skip
        rules = Rules(ports=WEB_PORTS, ports_never=context.bus.broker_ports)
        builtin = cls(context.settings, context.clock, choice, rules=rules)
        keeping = builtin.room.run(context.warnings)
        builtin._keeping = asyncio.create_task(keeping, name="executor-room")
        return builtin

    @property
    def shelf(self) -> Shelf:
        return self._shelf

    async def run(self, call: Call) -> Told:
        """Run one of the tools to its end.

        Raises:
            InvalidInput: the arguments are no good.
            Unavailable: it surely did not run.
        """
        name = call.tool.name
        if name not in ARGUMENTS:
            raise InvalidInput("tool", f"{name!r} is not one of the executor's own")
        arguments = check(ARGUMENTS[name], call.input)
        if isinstance(arguments, HttpGet):
            return await self._fetcher.run(arguments, call)
        workspace = Workspace(self._root, self._config.scope_of(call.key.agent, call.key.user))
        await asyncio.to_thread(workspace.make)
        match arguments:
            case ReadFile():
                return await asyncio.to_thread(files.read, workspace, arguments, call)
            case WriteFile():
                return await asyncio.to_thread(files.write, workspace, arguments, call, self.room)
            case Shell() if self._commands is not None:
                return await self._commands.run(workspace, arguments, call)
        return Told(content=f"not run: {self._shelf.problem}", is_error=True)

    async def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        await self._fetcher.close()


def shelf_of(choice: Choice, config: Config, clock: Clock) -> Shelf:
    """Return what is offered: everything, or all but commands and why."""
    names = [name for name in ARGUMENTS if name != "shell" or choice.is_offered]
    facts: dict[str, str] = {"sandbox": choice.kind}
    if choice.reasons:
        facts["sandbox_because"] = "; ".join(choice.reasons)
    return Shelf(
        source=SOURCE,
        at=clock.now(),
        tools=tuple(tool_of(name, config) for name in names),
        problem=choice.problem and f"shell is not offered: {choice.problem}",
        facts=facts,
    )


def tool_of(name: str, config: Config) -> Tool:
    """Return how a tool is shown and run."""
    timeout_s = {
        "shell": config.executor.shell_timeout_s + END_S,
        "http_get": config.executor.http_timeout_s + END_S,
    }
    return Tool(
        name=name,
        description=description_of(ARGUMENTS[name]),
        input_schema=schema_of(ARGUMENTS[name]),
        risk=RISK[name],
        timeout_s=timeout_s.get(name, FILE_S),
        output_bytes_max=config.executor.output_bytes_max,
        is_idempotent=name in IDEMPOTENT,
    )
