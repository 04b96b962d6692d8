"""Tools that the executor runs, as it offers them in the bucket TOOLS (SPEC X-1)."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from .base import VERSION_1, Instant, Record

Risk = Literal["read", "write", "external", "destructive"]
"""What a call may do (SPEC G-4): look only; change what is the agent's own; act upon the world
beyond it; do what can't be undone."""
RISKS: Final[tuple[Risk, ...]] = ("read", "write", "external", "destructive")
"""The classes, the least first."""
RISK_MEANINGS: Final[dict[Risk, str]] = {
    "read": "looks at something",
    "write": "changes what is the agent's own",
    "external": "acts upon the world outside",
    "destructive": "can't be undone",
}
"""What a call of such a risk does, for whoever decides on one."""
Aim = Literal["who", "run", "which", "content", "detail"]
"""What an argument is for (FLOW F-6): whom a call reaches or where it goes; what is run; which
thing, amount or day it is about; what it says; or nothing that steers (how many, until when)."""


class Tool(Record, frozen=True, kw_only=True):
    """One tool, as the model sees it and as it is run."""

    name: str
    """``shell``, or ``server__tool`` for one of an MCP server."""
    description: str
    input_schema: dict[str, Any]
    """A JSON Schema object."""
    risk: Risk = "destructive"
    timeout_s: float = 30.0
    """After which a call is ended; the session waits a little longer."""
    output_bytes_max: int = 64 * 1024
    """The most bytes of a result; the rest is cut off, and the result says so."""
    is_idempotent: bool = False
    """Whether it may run again after a crash. If not, such a call ends as `ambiguous`."""
    profiles: tuple[str, ...] = ()
    """The kinds of sessions that are offered it. One of an MCP server names none: it's offered to
    all that take tools of servers."""
    is_personal: bool = False
    """Whether only the person's own words may ask for it: a message of theirs began the loop, and
    content from outside has no part in it."""
    aims: dict[str, Aim] = msgspec.field(default_factory=dict)
    """Argument -> what it is for, with dots for fields of fields; one that isn't named is `who`."""
    is_open: bool = False
    """Whether it opens an address of the model's choice: what that says leaves with the request, so
    that looking isn't all that it does."""
    digest: str = ""
    """SHA-256 of name, description and schema, in hex: what an approval of an MCP tool pins."""
    is_skill: bool = False
    """Whether it returns instructions: a prompt of an MCP server."""
    other_names: dict[str, str] = msgspec.field(default_factory=dict)
    """Other names of arguments that are taken, too -> the name in the schema."""


class ServerQuestion(Record, frozen=True, kw_only=True):
    """What an MCP server wants before a call of its tool ends: of the person (elicitation), or of a
    model (sampling)."""

    message: str
    """What it says to them: a stranger's text."""
    input: dict[str, Any]
    """The arguments of the call."""
    form: dict[str, Any] = msgspec.field(default_factory=dict)
    """The JSON Schema of what they are to fill in; empty: nothing."""
    url: str = ""
    """A page that they are to open; empty: none."""
    name: str = ""
    """What the server calls this request."""
    state: str | None = None
    """What the server wants to be given back, as it is."""
    answered: int = 0
    """How often it got an answer before, in the same call."""
    tokens_max: int = 0
    """The most tokens of the answer that a model is to give to the message; 0: the person is
    asked."""


class ServerAnswer(Record, frozen=True, kw_only=True):
    """What the person said to what an MCP server wanted of them, or a model."""

    action: Literal["accept", "decline"]
    name: str = ""
    """What the server calls the request that this answers."""
    content: dict[str, Any] = msgspec.field(default_factory=dict)
    """What they filled in."""
    state: str | None = None
    """What the server gave to be given back."""
    answered: int = 0
    """How often it has got an answer in this call, with this."""
    text: str | None = None
    """What a model answered; None: the person was asked."""


class AskedOfModel(Record, frozen=True, kw_only=True):
    """What a server wants of a model, while a session answers it."""

    question: ServerQuestion
    risk: Risk
    """The risk class of the tool when its call began."""


class HeldTool(Record, frozen=True, kw_only=True):
    """A tool that isn't offered, because it is no longer what was approved."""

    name: str
    digest: str
    pinned: str
    """The digest that was approved; empty: none was."""
    description: str = ""
    """What it says of itself now, for a person to judge; its beginning, if it is long."""


class Shelf(Record, frozen=True, kw_only=True):
    """What one source offers: the executor itself (``builtin``), or an MCP server by its name."""

    source: str
    at: Instant
    tools: tuple[Tool, ...] = ()
    held: tuple[HeldTool, ...] = ()
    problem: str = ""
    """Why it offers less than it could, in words; empty: all is well."""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """What a person wants to know of it: the sandbox's kind, a server's version."""
    v: int = VERSION_1


class Pin(Record, frozen=True, kw_only=True):
    """That a tool of an MCP server may be offered as long as it is described like this."""

    digest: str
    at: Instant
    by: Literal["first_sight", "operator"] = "first_sight"
    """Who vouched for it: nobody, it was there when the server was first seen; or a person."""
    description: str = ""
    """What it said of itself then, for comparison; its beginning, if it is long."""


class Pins(Record, frozen=True, kw_only=True):
    """What was approved of one MCP server (a KV record of bucket PINS, key = its name)."""

    server: str
    tools: dict[str, Pin] = msgspec.field(default_factory=dict)
    """By the name under which a tool is offered."""
    v: int = VERSION_1
