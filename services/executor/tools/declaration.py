"""How a tool of the executor is declared: one function, whose first argument's type is the schema.

    @tool(risk="read", timeout_s=5.0, is_idempotent=True, profiles=("channel", "worker"))
    async def word_count(given: WordCount, call: Call, context: ToolContext) -> ToolOutput: ...

Its name is the function's; what a model reads of it, and of its arguments, is the struct's.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from vigil import registry
from vigil.bus.bus import Bus
from vigil.clock import Clock
from vigil.contracts import Risk, Tool
from vigil.contracts.arguments import Arguments, description_of, schema_of
from vigil.contracts.tools import Aim
from vigil.settings.config import Config

from .arguments import check
from .source import Call, ToolOutput

if TYPE_CHECKING:
    from ..calendars.book import CalendarBook
    from ..mail.accounts import MailAccounts
    from ..workspace.disk import Disk
    from ..workspace.workspace import Workspace


class Fetching(Protocol):
    """Gets pages; `own_tools.http_get` has it."""

    def run(self, given: Any, call: Call, /) -> Awaitable[ToolOutput]: ...


class Commanding(Protocol):
    """Runs commands in a sandbox; `own_tools.shell` has it."""

    def run(self, workspace: Workspace, given: Any, call: Call, /) -> Awaitable[ToolOutput]: ...


class Searching(Protocol):
    """Asks what searches the web; `own_tools.web_search` has it."""

    def run(self, query: str, page: int, /) -> Awaitable[ToolOutput]: ...


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool may use."""

    open_workspace: Callable[[Call], Awaitable[Workspace]]
    """The folder of whoever calls, made if it wasn't there."""
    disk: Disk
    commands: Commanding | None
    """None: no sandbox works here, and no tool that needs one is offered."""
    problem: str
    """Why not; empty: one does."""
    fetcher: Fetching
    searcher: Searching | None
    """None: there is no endpoint to search with."""
    calendars: CalendarBook | None
    """None: none is configured."""
    bus: Bus
    clock: Clock
    config: Config
    skills: Path
    """The folder of all skills."""
    offered: Callable[[], Iterable[Tool]] = tuple
    """Gives all tools that are offered, of servers, too."""
    mail: MailAccounts | None = None
    """None: there are no mailboxes, or what is needed for mail isn't installed."""


OWN_TOOLS: Final = "services.executor.own_tools"
EMPTY: Final[Mapping[str, Aim]] = MappingProxyType({})
Run = Callable[[Any, Call, ToolContext], Awaitable[ToolOutput]]


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, and what is said of it."""

    name: str
    arguments: type[Arguments]
    function: Run
    risk: Risk
    timeout_s: float | Callable[[Config], float]
    is_idempotent: bool
    profiles: tuple[str, ...]
    is_personal: bool
    needs_sandbox: bool
    is_offered: Callable[[Config], bool]
    aims: Mapping[str, Aim]
    other_names: Mapping[str, str]

    def tool(self, config: Config) -> Tool:
        """Return how it is shown and run."""
        timeout_s = self.timeout_s
        return Tool(
            name=self.name,
            description=description_of(self.arguments),
            input_schema=schema_of(self.arguments),
            risk=self.risk,
            timeout_s=timeout_s if isinstance(timeout_s, float) else timeout_s(config),
            output_bytes_max=config.executor.output_bytes_max,
            is_idempotent=self.is_idempotent,
            profiles=self.profiles,
            is_personal=self.is_personal,
            aims=dict(self.aims),
            other_names=dict(self.other_names),
        )

    async def run(self, call: Call, context: ToolContext) -> ToolOutput:
        """Run it to its end.

        Raises:
            InvalidInput: the arguments are no good.
            Unavailable: it surely did not run.
        """
        return await self.function(check(self.arguments, call.input), call, context)


def tool(
    *,
    risk: Risk,
    timeout_s: float | Callable[[Config], float],
    profiles: tuple[str, ...],
    is_idempotent: bool = False,
    is_personal: bool = False,
    needs_sandbox: bool = False,
    is_offered: Callable[[Config], bool] = lambda _config: True,
    aims: Mapping[str, Aim] = EMPTY,
    other_names: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Run], Declaration]:
    """Declare a function to be a tool.

    Args:
        risk: what a call may do.
        timeout_s: after which a call is ended; or what tells it by the configuration.
        profiles: the kinds of sessions that are offered it.
        is_idempotent: whether it may run again after a crash; else such a call is `ambiguous`.
        is_personal: whether only the person's own words may ask for it.
        needs_sandbox: where no sandbox works, it isn't offered.
        is_offered: whether what is configured lets it work.
        aims: what its arguments are for; those that aren't named are who.
        other_names: of arguments: a name that is taken, too, and the one of the schema.
    """

    def declare(function: Run) -> Declaration:
        return Declaration(
            name=function.__name__,
            arguments=registry.arguments_of(function),
            function=function,
            risk=risk,
            timeout_s=timeout_s,
            is_idempotent=is_idempotent,
            profiles=profiles,
            is_personal=is_personal,
            needs_sandbox=needs_sandbox,
            is_offered=is_offered,
            aims=aims,
            other_names=other_names,
        )

    return declare


@functools.cache
def declared() -> dict[str, Declaration]:
    """Return all that the modules of `own_tools` declare, by name."""
    return {one.name: one for one in registry.declared(OWN_TOOLS, Declaration)}
