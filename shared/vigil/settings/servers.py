"""The sections of servers whose tools agents see."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ..fields.section import Section

Risk = Literal["read", "write", "external", "destructive"]


class ToolServer(Section, frozen=True, kw_only=True):
    url: str = ""
    """Where it is, over HTTP; of an MCP server, over streamable HTTP."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers to send."""
    headers_file: str = ""
    """The same, one `Name: value` a line."""
    allow_private: bool = False
    """`url` may be private."""
    is_enabled: bool = True
    """False: ignored."""
    is_trusted: bool = False
    """Results count as trusted."""
    risk: Risk = "external"
    """Of its tools."""
    risks: dict[str, Risk] = msgspec.field(default_factory=dict)
    """Of single tools."""
    aims: dict[str, dict[str, Literal["who", "run", "which", "content", "detail"]]] = msgspec.field(
        default_factory=dict
    )
    """Tool -> argument -> what it is for ([approvals.md](../approvals.md)); others are `who`."""
    open: tuple[str, ...] = ()
    """Tools that open an address of the model's choice, beside those with an argument `url`."""
    idempotent: tuple[str, ...] = ()
    """Tools safe to repeat after a crash; others end as `ambiguous`."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 60.0
    """Per call."""
    start_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 60.0
    """For its start, until it has listed its tools."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<url and headers hidden>)"


class A2aAgent(ToolServer, frozen=True, kw_only=True):
    """Another program's agent, asked by A2A; the agents see each of its skills as `NAME__skill`.

    NAME is as in `[mcp.NAME]`, and none of those. A running executor applies changes. Its `url` is
    where its card is, before `/.well-known/`; it is asked at that host alone.
    """


class McpServer(ToolServer, frozen=True, kw_only=True):
    """An MCP server, whose tools the agents see as `NAME__tool`.

    NAME has up to 32 of `A-Z a-z 0-9 _ -`, no `__`, no `_` at its ends. A running executor
    applies changes.
    """

    command: str = ""
    """MCP program over stdio, in the sandbox; or set `url`."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Its variables."""
    env_file: str = ""
    """The same, one `NAME=value` a line."""
    folders: tuple[str, ...] = ()
    """Folders that it may read and write."""
    folders_read: tuple[str, ...] = ()
    """Folders that it may only read."""
    network: bool = False
    """Network for the program."""
    sampling_tokens: Annotated[int, msgspec.Meta(ge=0, le=32_000)] = 0
    """Tokens of each answer that it may have a model give in the middle of a call (sampling), paid
    by whoever makes the call; 0: none."""
    client_id: str = ""
    """Signing in: our id there, or the https URL of our metadata document; default: we register."""
    client_secret_file: str = ""
    """Its secret, if it has one."""

    def __repr__(self) -> str:
        return f"McpServer(command={self.command!r}, <env, url and headers hidden>)"
