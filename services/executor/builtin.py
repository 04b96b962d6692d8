"""The executor's own tools: shell, files, http_get, web_search, change_settings (SPEC P-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import structlog

from vigil.background.end import end_tasks
from vigil.bus.bus import Bus
from vigil.clock import Clock
from vigil.contracts import Shelf, Tool
from vigil.errors import InvalidInput
from vigil.mail.servers import missing_libraries
from vigil.net.guard import Resolve
from vigil.net.ssrf import WEB_PORTS, Rules
from vigil.runtime import Context
from vigil.settings.config import Config, Settings
from vigil.subjects import Scope

from .calendars.book import CalendarBook
from .own_tools.http_get import Fetcher
from .own_tools.shell import Commands
from .own_tools.web_search import Searcher
from .sandbox.choice import Choice, choose
from .site_headers import headers_of
from .tools.declaration import ToolContext, declared
from .tools.source import Call, ToolOutput
from .workspace.disk import Disk
from .workspace.workspace import Workspace

if TYPE_CHECKING:
    from .mail.accounts import MailAccounts

log = structlog.get_logger("vigil.executor")

SOURCE: Final = "builtin"


class Builtin:
    """The source of the executor's own tools.

    Args:
        choice: which sandbox commands run in.
        rules: what http_get may reach; None: public addresses at the ports of the web.
        resolve: None: the system is asked.
        offered: gives all tools that are offered, of servers, too.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        choice: Choice,
        bus: Bus,
        *,
        rules: Rules | None = None,
        resolve: Resolve | None = None,
        offered: Callable[[], Iterable[Tool]] = tuple,
    ) -> None:
        config = settings.config
        self.choice = choice
        self._root = settings.workspaces
        self._shelf = shelf_of(choice, config, clock)
        sandbox = choice.sandbox()
        self.disk = Disk(settings)
        self._keeping: asyncio.Task[None] | None = None
        self.commands = None if sandbox is None else Commands(sandbox, config.executor, self.disk)
        self.fetcher = Fetcher(
            rules or Rules(ports=WEB_PORTS),
            bytes_max=config.executor.http_bytes_max,
            timeout_s=config.executor.http_timeout_s,
            sites=headers_of(config.sites, settings.home),
            resolve=resolve,
        )
        self._searcher = Searcher(config.search) if config.search.url else None
        self.calendars = CalendarBook(config.calendars, settings.home)
        self._tool_context = ToolContext(
            open_workspace=self._workspace,
            disk=self.disk,
            commands=self.commands,
            fetcher=self.fetcher,
            searcher=self._searcher,
            calendars=self.calendars if config.calendars else None,
            problem=self._shelf.problem,
            bus=bus,
            clock=clock,
            config=config,
            skills=settings.skills,
            offered=offered,
            mail=mail_accounts(settings, clock),
        )

    @classmethod
    async def open(cls, context: Context, offered: Callable[[], Iterable[Tool]]) -> Builtin:
        """Find out which sandbox works here, and have the tools ready."""
        choice = await choose(context.settings.config.executor)
        log.info(
            "sandbox chosen",
            action="executor.sandbox",
            kind=choice.kind,
            is_offered=choice.is_offered,
            reasons=choice.reasons,
        )
        rules = Rules(ports=WEB_PORTS, ports_never=context.bus.broker_ports)
        about = (context.settings, context.clock, choice, context.bus)
        builtin = cls(*about, rules=rules, offered=offered)
        keeping = builtin.disk.run(context.warnings)
        builtin._keeping = context.beside(keeping, "executor-disk")
        return builtin

    @property
    def shelf(self) -> Shelf:
        return self._shelf

    async def run(self, call: Call) -> ToolOutput:
        """Run one of the tools to its end.

        Raises:
            InvalidInput: the arguments are no good.
            Unavailable: it surely did not run.
        """
        found = declared().get(call.tool.name)
        if found is None:
            raise InvalidInput("tool", f"{call.tool.name!r} is not one of the executor's own")
        return await found.run(call, self._tool_context)

    async def _workspace(self, call: Call) -> Workspace:
        return await self.open_workspace(call.key.scope)

    async def open_workspace(self, whose: Scope) -> Workspace:
        """Return a folder, made if it wasn't there. Raises: Unavailable."""
        workspace = Workspace(self._root, whose)
        await asyncio.to_thread(workspace.make)
        return workspace

    async def close(self) -> None:
        if self._keeping is not None:
            await end_tasks(self._keeping)
        await self.fetcher.close()
        if self._searcher is not None:
            await self._searcher.close()


def mail_accounts(settings: Settings, clock: Clock) -> MailAccounts | None:
    """Return what has mailboxes opened, if there are any; its libraries are an extra."""
    mailboxes = settings.config.mailboxes
    if not mailboxes or missing_libraries():
        return None
    from .mail.accounts import MailAccounts

    return MailAccounts(mailboxes, settings.home, clock)


def shelf_of(choice: Choice, config: Config, clock: Clock) -> Shelf:
    """Return what is offered: everything, or all but commands and why."""
    tools = [
        one
        for one in declared().values()
        if one.is_offered(config) and (choice.is_offered or not one.needs_sandbox)
    ]
    facts: dict[str, str] = {"sandbox": choice.kind}
    if choice.reasons:
        facts["sandbox_because"] = "; ".join(choice.reasons)
    return Shelf(
        source=SOURCE,
        at=clock.now(),
        tools=tuple(one.tool(config) for one in tools),
        problem=choice.problem and f"shell is not offered: {choice.problem}",
        facts=facts,
    )
