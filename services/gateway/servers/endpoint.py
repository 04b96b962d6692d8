"""/api/servers: the MCP servers and others' agents of this home's vigil.toml, for admins: how each
is and what it gets to see; added, switched and removed while everything runs, by what `vigil mcp`
and `vigil a2a` do it with.

The executor follows the file. What it runs is told without what may be secret: of a command line
the program's name, of a URL the host, of variables their names.
"""

from __future__ import annotations

from pathlib import Path as File
from typing import Annotated, Final, Literal

import msgspec
import structlog
from fastapi import Depends, Path, Response

from vigil.bus.kv import KeyValue
from vigil.contracts import Shelf
from vigil.edits import toml_sections
from vigil.errors import InvalidInput
from vigil.fields.secrets import is_key
from vigil.local import command_lines, mcp_servers
from vigil.oauth import kept as oauth
from vigil.settings.config import Settings
from vigil.settings.servers import A2aAgent, McpServer, ToolServer
from vigil.subjects import check_part
from vigil.trust import pins
from vigil.words.nearest import meant

from ..callers import Admin, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import PART_SCHEMA, Answer, RequestBody
from ..state.edge import Edge
from ..work.tools import shelves
from ..written_settings import WRITING, read_settings, written

log = structlog.get_logger("vigil.gateway")

Risk = Literal["read", "write", "external", "destructive"]
Speaks = Literal["mcp", "a2a"]
"""What is spoken with a server, and the table of vigil.toml that it is in."""
ServerName = Annotated[
    str, msgspec.Meta(max_length=32, pattern=r"^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$")
]
KnownName = Annotated[str, Path(description="NAME of [mcp.NAME]", json_schema_extra=PART_SCHEMA)]
PairName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Of a variable or a header, in a file with one ``NAME=value`` or ``Name: value`` a line."""
PairValue = Annotated[str, msgspec.Meta(pattern=r"^[!-~]([ -~]*[!-~])?$")]


class ServerView(Answer, frozen=True, kw_only=True):
    """A server of tools, or another program's agent; what it gets to see, and what it offers."""

    name: str
    speaks: Speaks
    state: str
    """`connected`, `not connected`, `not started`, `off`, or `not configured`."""
    problem: str
    """What is wrong with it; empty: nothing."""
    sign_in: str = ""
    """`signed in`, or why a sign-in (OAuth) is good no more; empty: nobody has signed in."""
    wants_sign_in: bool = False
    """Whether it lets nobody in who hasn't signed in."""
    runs: str
    """The name of its program, or the host that it's asked at."""
    is_program: bool
    network: bool
    """Whether the program may reach the network."""
    folders: tuple[str, ...]
    """That the program may read and write."""
    folders_read: tuple[str, ...]
    """That it may only read."""
    variables: tuple[str, ...]
    """The names of variables that it's given."""
    has_secrets: bool
    """Whether it's given headers or variables of a file."""
    risk: str
    sampling_tokens: int = 0
    """Tokens of an answer that it may have a model give; 0: none."""
    tools: tuple[str, ...]
    held: int
    """Tools that aren't offered before an admin approves them."""


class ServerList(Answer, frozen=True, kw_only=True):
    """The MCP servers and others' agents there are, by name."""

    servers: tuple[ServerView, ...]


class ServerWanted(RequestBody, frozen=True, kw_only=True):
    """A server to be added: a program, or a URL."""

    name: ServerName
    """Its tools become NAME__tool."""
    speaks: Speaks = "mcp"
    """`a2a`: it's another program's agent, whose skills become the tools."""
    command: tuple[str, ...] = ()
    """A program that speaks MCP over stdio, with its arguments; it runs in the sandbox."""
    url: str = ""
    """A server over streamable HTTP, instead; of an agent, where its card is."""
    token: str = ""
    """Sent to the URL as `Authorization: Bearer`; kept in a file of its own."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables for the program; not for secrets."""
    headers: dict[PairName, PairValue] = msgspec.field(default_factory=dict)
    """Headers that are sent to the URL; not for secrets."""
    secrets: dict[PairName, PairValue] = msgspec.field(default_factory=dict)
    """Variables or headers that are; kept in a file of their own."""
    folders: tuple[str, ...] = ()
    """Folders that the program may read and write."""
    folders_read: tuple[str, ...] = ()
    """Folders that it may only read."""
    network: bool = False
    """Whether the program may reach the network."""
    allow_private: bool = False
    """Whether the URL may lead to this machine or its network."""
    risk: Risk = "external"
    """Of its tools."""


class ServerChange(RequestBody, frozen=True, kw_only=True):
    """Switch a server on or off."""

    is_enabled: bool


async def list_servers(edge: Shared, _: Admin) -> Response:
    """List the MCP servers and others' agents: how each is, what it gets to see, and what it
    offers. Needs an admin token."""
    found = await _views(edge)
    return Json(ServerList(servers=tuple(found[name] for name in sorted(found))))


async def add_server(
    edge: Shared, caller: Admin, wanted: Annotated[ServerWanted, Depends(body_of(ServerWanted))]
) -> Response:
    """Add a server to vigil.toml; the executor starts it within a second or two. Needs an admin
    token."""
    name = check_part("name", wanted.name)
    secrets = _lines_of(wanted)
    async with WRITING:
        settings = await read_settings(edge)
        if name in _sections(settings):
            raise Problem(409, f"there is a server {name} already", field="name")
        await written(settings, lambda: _add(settings, wanted, secrets), refused=422)
    log.info("server added", action="gateway.servers", by=caller.user, server=name)
    return Json((await _views(edge))[name], 201)


async def change_server(
    edge: Shared,
    caller: Admin,
    name: KnownName,
    wanted: Annotated[ServerChange, Depends(body_of(ServerChange))],
) -> Response:
    """Switch a server on or off in vigil.toml; its tools go, or come. Needs an admin token."""
    async with WRITING:
        settings = await read_settings(edge)
        known = _section(settings, name)
        if known.is_enabled != wanted.is_enabled:
            await written(
                settings, lambda: _switch(settings, name, to=wanted.is_enabled), refused=422
            )
    on = wanted.is_enabled
    log.info("server switched", action="gateway.servers", by=caller.user, server=name, on=on)
    return Json((await _views(edge))[name])


async def remove_server(
    edge: Shared,
    caller: Admin,
    name: KnownName,
) -> Response:
    """Take a server out of vigil.toml, and forget what was approved of it. Needs an admin token."""
    async with WRITING:
        settings = await read_settings(edge)
        _section(settings, name)
        await written(settings, lambda: _remove(settings, name), refused=422)
        oauth.forget(settings.home, name)
        await KeyValue(edge.bus, pins.BUCKET).delete(name)
    log.info("server removed", action="gateway.servers", by=caller.user, server=name)
    return Response(status_code=204)


async def _views(edge: Edge) -> dict[str, ServerView]:
    settings = await read_settings(edge)
    there = {one.source: one for one in await shelves(edge.bus) if one.source != mcp_servers.OWN}
    sections, home = _sections(settings), settings.home
    names = {*sections, *there}
    return {name: _view(home, name, sections.get(name), there.get(name)) for name in names}


def _sections(settings: Settings) -> dict[str, ToolServer]:
    return {**settings.config.mcp, **settings.config.a2a}


def _view(home: File, name: str, known: ToolServer | None, shelf: Shelf | None) -> ServerView:
    section = known or McpServer()
    program = section if isinstance(section, McpServer) else McpServer(url=section.url)
    sign_in = oauth.state_of(home, name, section.url)
    return ServerView(
        name=name,
        speaks="a2a" if isinstance(section, A2aAgent) else "mcp",
        state=mcp_servers.state_of(known, shelf),
        problem="" if shelf is None else shelf.problem,
        sign_in=sign_in,
        wants_sign_in=bool(shelf is not None and mcp_servers.SIGN_IN in shelf.problem),
        runs=mcp_servers.runs(program),
        is_program=not section.url,
        network=program.network,
        folders=program.folders,
        folders_read=program.folders_read,
        variables=tuple(program.env),
        has_secrets=bool(program.env_file or section.headers_file or section.headers),
        risk=section.risk,
        sampling_tokens=program.sampling_tokens,
        tools=() if shelf is None else tuple(one.name for one in shelf.tools),
        held=0 if shelf is None else len(shelf.held),
    )


def known_server(settings: Settings, name: str) -> McpServer:
    """Return the section of an MCP server. Raises: Problem, 404, also of another's agent."""
    found = _section(settings, name)
    if not isinstance(found, McpServer):
        raise Problem(404, f"{name} is an agent, at which nobody signs in", field="name")
    return found


def _section(settings: Settings, name: str) -> ToolServer:
    sections = _sections(settings)
    if name not in sections:
        reason = f"there is no server {name[:64]!r}{meant(name[:64], sorted(sections))}"
        raise Problem(404, reason, field="name")
    return sections[name]


def _secrets_file(home: File, name: str) -> File:
    """Return where a home keeps what a server is let in by."""
    return home / "keys" / f"mcp-{name}"


def _lines_of(wanted: ServerWanted) -> str:
    """Return what is kept in a file of its own, a pair a line; empty: nothing.

    Raises: InvalidInput, naming what can't stand in such a line.
    """
    if wanted.token and not (is_key(wanted.token) and wanted.url):
        raise InvalidInput("token", "must be one word, and belongs to a URL")
    separator = ": " if wanted.url else "="
    for field, given in (("secrets", wanted.secrets), ("headers", wanted.headers)):
        if any("\n" in text for pair in given.items() for text in pair):  # `$` lets one through
            raise InvalidInput(field, "must be a name and a line of ASCII each")
    pairs = wanted.secrets | ({"Authorization": f"Bearer {wanted.token}"} if wanted.token else {})
    return "\n".join(f"{name}{separator}{value}" for name, value in pairs.items())


def _add(settings: Settings, wanted: ServerWanted, secrets: str) -> None:
    # The folder that the gateway happens to be in holds nothing of what is asked for.
    program = command_lines.resolved(wanted.command[:1]) if wanted.command else []
    line = [*program, *wanted.command[1:]]
    kept = _secrets_file(settings.home, wanted.name)
    file = str(kept) if secrets else ""
    values = mcp_servers.section_of(
        command=line[0] if line else "",
        args=line[1:],
        url=wanted.url,
        env=wanted.env,
        folders=wanted.folders,
        folders_read=wanted.folders_read,
        network=wanted.network,
        env_file="" if wanted.url else file,
        headers=wanted.headers,
        headers_file=file if wanted.url else "",
        allow_private=wanted.allow_private,
        risk="" if wanted.risk == McpServer().risk else wanted.risk,
    )
    files = {kept: secrets} if secrets else {}
    toml_sections.add(settings.file, wanted.speaks, wanted.name, values, files)


def _switch(settings: Settings, name: str, *, to: bool) -> None:
    toml_sections.set_value(settings.file, (_table_of(settings, name), name, "is_enabled"), to)


def _remove(settings: Settings, name: str) -> None:
    kept, section = _secrets_file(settings.home, name), _sections(settings)[name]
    is_ours = str(kept) in (section.headers_file, getattr(section, "env_file", ""))
    toml_sections.remove(settings.file, _table_of(settings, name), name, [kept] if is_ours else [])


def _table_of(settings: Settings, name: str) -> Speaks:
    return "a2a" if name in settings.config.a2a else "mcp"


_PATH: Final = "/api/servers"
_ONE: Final = f"{_PATH}/{{name}}"
_REFUSED: Final = (403, 404, 413, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", _PATH, list_servers, {200: ServerList}, (403, 503)),
    Endpoint("POST", _PATH, add_server, {201: ServerView}, (403, 409, 413, 422, 503), ServerWanted),
    Endpoint("PATCH", _ONE, change_server, {200: ServerView}, _REFUSED, ServerChange),
    Endpoint("DELETE", _ONE, remove_server, {204: None}, (403, 404, 422, 503)),
)
