"""What the types don't say of sections with a name of their own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..contracts.calls.caller import CALLER
from ..errors import ConfigError, InvalidInput
from ..facts.hooked import read_hooked
from ..subjects import SessionKey
from ..teams import TEAM, check_user
from ..watching.interests import check_interests
from ..watching.watched import check_watched, watched_of
from ..words.nearest import meant_field
from . import mailboxes, sites
from .grants import mistakes as grant_mistakes
from .hours import hours_of
from .sections import Agent, Hook, InterestSection, WatchSection
from .servers import A2aAgent, McpServer

if TYPE_CHECKING:
    from .config import Config

_PUBLIC: Final = re.compile(
    r"(https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?)((?:/[A-Za-z0-9_-][A-Za-z0-9._~-]*)*)/?",
    re.ASCII,
)
TOOL_MARGIN_S: Final = 15.0
"""How much longer than a tool may take a session waits for its result."""
_OWN_PATHS: Final = frozenset(
    {"a2a", "api", "calendar", "channels", "console", "hooks", "mcp", "v1"}
    | {"asyncapi.json", "healthz", "metrics", "openapi.json", "readyz"}
)
"""What paths of the gateway begin with."""


class PublicUrl(msgspec.Struct, frozen=True, kw_only=True):
    """Where people reach the gateway through a proxy; all empty: nobody says."""

    origin: str = ""
    host: str = ""
    root: str = ""
    """The path that it has there: /vigil."""

    @property
    def url(self) -> str:
        """Return it whole, without a slash at its end."""
        return self.origin + self.root


def read_public_url(text: str) -> PublicUrl:
    """Take `gateway.public_url` apart. Raises: InvalidInput.

    >>> read_public_url("https://home.example/vigil/")
    PublicUrl(origin='https://home.example', host='home.example', root='/vigil')
    >>> read_public_url("")
    PublicUrl(origin='', host='', root='')
    """
    if not text:
        return PublicUrl()
    found = _PUBLIC.fullmatch(text)
    if found is None:
        wanted = "must be as https://home.example/vigil, with the host in lower case"
        raise InvalidInput("public_url", wanted)
    origin, host, root = found.groups()
    first = root[1:].partition("/")[0]
    if first in _OWN_PATHS:
        raise InvalidInput("public_url", f"the path can't begin with /{first}, as one of Vigil's")
    return PublicUrl(origin=origin, host=host, root=root)


def unusable(raw: Any, place: str = "") -> Iterator[str]:
    r"""Yield what holds a NUL: no path, argument, variable or header can.

    >>> list(unusable({"sites": {"x": {"token_command": ["cat", "a\0b"]}}, "nats": {"url": ""}}))
    ['sites.x.token_command[1]: must not contain a NUL character']
    """
    match raw:
        case dict():
            for name, value in raw.items():
                shown = name.replace("\0", "\\0")
                yield from unusable(name, f"{place}{shown}")
                yield from unusable(value, f"{place}{shown}.")
        case list():
            for number, value in enumerate(raw):
                yield from unusable(value, f"{place.removesuffix('.')}[{number}].")
        case str() if "\0" in raw:
            yield f"{place.removesuffix('.')}: must not contain a NUL character"


def placed(problems: Iterable[str], place: str, shown: str, kind: Any) -> Iterator[str]:
    """Yield problems with the section that they are in, and the field that is near.

    Args:
        place: the section, as `mcp.wiki`.
        shown: how a problem of its types shows that, as `mcp[...]`.
        kind: the type of the section, or of a section of sections.

    >>> list(placed(["Expected `str` - at `$.mcp[...].url`", "url: x"], "mcp.a", "mcp[...]", str))
    ['Expected `str` - at `$.mcp.a.url`', '[mcp.a]: url: x']
    """
    for problem in problems:
        told = problem.replace(f"`$.{shown}", f"`$.{place}", 1)
        is_told = any(mark in told for mark in (f"[{place}]", f"$.{place}", f"{place}."))
        yield f"{'' if is_told else f'[{place}]: '}{told}{meant_field(told, kind)}"


def check_hook(name: str, hook: Hook) -> None:
    """Check whom a hook tells, and which facts. Raises: ConfigError, InvalidInput."""
    SessionKey.of(hook.user, hook.agent, hook.thread or "main")
    try:
        read_hooked(hook.facts)
    except InvalidInput as error:
        raise ConfigError(f"[hooks.{name}]: {error}") from error


def check_agent(section: str, agent: Agent) -> None:
    """Check what the types don't say of what an agent keeps up with, and of who is in a team.

    Raises:
        ConfigError: naming the section, the field and the reason.
    """

    def wrong(reason: str) -> ConfigError:
        return ConfigError(f"[{section}]: {reason}")

    check_interests(section, agent.looks)
    for interest in agent.looks:
        if isinstance(interest, InterestSection):
            try:
                hours_of(interest.hours)
            except InvalidInput as error:
                raise wrong(f"looks: {interest.what[:100]!r}: {error.reason}") from error
    if agent.kind == "personal":
        if agent.members:
            raise wrong("members: go with kind = 'team'")
        return
    if section == "agent":
        raise wrong("kind: a team has an agent of its own, in [agents.NAME]")
    if not agent.members:
        raise wrong("members: must not be empty for kind = 'team'")
    for name in agent.members:
        try:
            check_user(name)
        except InvalidInput as error:
            raise wrong(f"members: {name!r}: {error.reason}") from error
        if agent.members.count(name) > 1:
            raise wrong(f"members: {name!r} is there twice")


MCP_NAME_LENGTH_MAX: Final = 32
"""Of a server: with it and two underscores begin the names of its tools, which have 64."""


def check_servers(servers: Mapping[str, McpServer], agents: Mapping[str, A2aAgent]) -> None:
    """Check what the types don't say of sections ``[mcp.NAME]`` and ``[a2a.NAME]``. Raises:
    ConfigError."""
    for name, server in servers.items():
        check_mcp(name, server)
    for name, agent in agents.items():
        _check_source("a2a", name)
        if not agent.url:
            raise ConfigError(f"[a2a.{name}]: set url")


def _check_source(table: str, name: str) -> None:
    """Check the name of whoever has tools. Raises: ConfigError."""

    def wrong(reason: str) -> ConfigError:
        return ConfigError(f"[{table}.{name}]: {reason}")

    if len(name) > MCP_NAME_LENGTH_MAX:
        raise wrong(f"its name may have at most {MCP_NAME_LENGTH_MAX} characters")
    if "__" in name or name != name.strip("_"):
        raise wrong("its name may not begin or end with '_' or contain '__'")
    if name == "builtin":
        raise wrong("that is the name of Vigil's own tools")
    if name == CALLER:
        raise wrong("that is the name of the tools that programs bring along")


def check_mcp(name: str, server: McpServer) -> None:
    """Check what the types don't say of a section ``[mcp.NAME]``.

    Raises:
        ConfigError: naming the section and the reason.
    """

    def wrong(reason: str) -> ConfigError:
        return ConfigError(f"[mcp.{name}]: {reason}")

    _check_source("mcp", name)
    if bool(server.command) == bool(server.url):
        raise wrong("set either command or url")
    for_a_url = server.headers or server.headers_file or server.allow_private or server.client_id
    if server.command and for_a_url:
        raise wrong(
            "headers, headers_file, client_id and allow_private go with url, not with command"
        )
    for_a_command = (
        server.args
        or server.env
        or server.env_file
        or server.folders
        or server.folders_read
        or server.network
    )
    if server.url and for_a_command:
        raise wrong(
            "args, env, env_file, folders, folders_read and network go with command, not url"
        )
    if any(not one or "=" in one for one in server.env):
        raise wrong("env: a variable has a name, and no = in it")


def check_watch(sections: Mapping[str, WatchSection]) -> None:
    """Check what the types don't say of sections ``[watch.NAME]``.

    Raises:
        ConfigError: naming the section, the field and the reason.
    """
    for name, section in sections.items():
        try:
            check_watched(watched_of(section.source))
            if section.source.startswith("mcp:"):
                raise InvalidInput("source", "is a tool's answer: say is_trusted in [mcp.NAME]")
        except InvalidInput as error:
            raise ConfigError(f"[watch.{name}]: {error}") from error


def contradictions(config: Config) -> list[str]:
    """List what can't be together, though each may be alone."""
    found = [
        f"person.channel {person.channel!r} is no [channels.NAME]"
        for person in (config.person, *config.people.values())
        if person.channel not in ("", "socket", *config.channels)
    ]
    found += [
        f"[{kind}.{name}]: user must be {TEAM!r} with the agent of a team, and with no other"
        for kind, sections in (("hooks", config.hooks), ("calendars", config.calendars))
        for name, one in sections.items()
        if (one.user == TEAM) != (one.agent in config.teams)
    ]
    if config.approvals.expires_s >= config.retention.system_days * 86_400:
        found.append(
            "approvals.expires_s must be less than retention.system_days: a worker that asks would "
            "be forgotten before"
        )
    both = sorted({*config.mcp} & {*config.a2a})
    found += [f"a2a.{name}: there is an [mcp.{name}]; take another name" for name in both]
    found += sites.repeated(config.sites)
    found += mailboxes.contradictions(config.mailboxes, config.teams)
    found += grant_mistakes(config.grants, config.teams)
    timeouts_s = {
        "executor.shell_timeout_s": config.executor.shell_timeout_s,
        "executor.http_timeout_s": config.executor.http_timeout_s,
        **{f"mcp.{name}.timeout_s": server.timeout_s for name, server in config.mcp.items()},
        **{f"a2a.{name}.timeout_s": agent.timeout_s for name, agent in config.a2a.items()},
    }
    # A worker tells nothing while it waits for a tool, nor for a while before.
    longest_s = config.sessions.worker_timeout_s - config.sessions.status_every_s - TOOL_MARGIN_S
    return found + [
        f"{name} may be {longest_s:g} at most with sessions.worker_timeout_s and status_every_s as "
        "they are: a worker that uses it would count as lost"
        for name, timeout_s in timeouts_s.items()
        if timeout_s > longest_s
    ]
