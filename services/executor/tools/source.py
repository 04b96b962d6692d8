"""The seam between the executor and whatever has tools: the executor itself, and MCP servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Protocol

import msgspec

from vigil.attachments.examine import examined
from vigil.contracts import Attachment, Grant, Shelf, Tool
from vigil.contracts.tools import ServerAnswer, ServerQuestion
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey
from vigil.trust.kept import TrustedSources

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Is told how much is done, of how much if that is known, and in words."""


class CallTask(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a call that is done as a task by whoever does it."""

    id: str = ""
    """Its id there, if the call was begun before: it's to be looked after, and not made again."""
    begun: Callable[[str], Awaitable[None]]
    """Is to be told that id, once there is one."""
    is_withdrawn: Callable[[], bool]
    """Whether nobody waits for it any more; else who stops waiting may come back."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call that is to be run, once."""

    id: str
    """The effect's: the same for every try."""
    key: SessionKey
    tool: Tool
    input: dict[str, Any]
    """As the model gave it, or a person edited it; the source checks it."""
    due_at: datetime
    """When nobody waits for it any more; aware UTC."""
    is_tainted: bool = False
    """Decided by a loop that descends from untrusted content (SPEC X-3)."""
    may_replace: bool = True
    """Whether it may take the place of what content from outside had no part in."""
    grant: Grant | None = None
    """The standing grant without which it would not run: it mustn't do more than that says."""
    answered: ServerAnswer | None = None
    """What the person, or a model, answered to what its server wanted: it goes on with that."""
    task: CallTask | None = None
    """None: it can't be done as one."""
    on_progress: OnProgress | None = None
    """Is told how far it is, as often as the source likes."""


class OutputFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that came of a call."""

    about: Attachment
    data: bytes


def output_file(name: str, data: bytes, bytes_max: int) -> OutputFile:
    """Take a file. Raises: InvalidInput, it isn't one that anybody is shown."""
    if len(data) > bytes_max:
        raise InvalidInput("file", f"has {len(data)} bytes; at most {bytes_max}")
    return OutputFile(about=examined(name, data), data=data)


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call."""

    content: str
    """At most `Tool.output_bytes_max` in UTF-8; who runs it cuts it."""
    is_error: bool = False
    is_tainted: bool = False
    """Holds content from outside."""
    origin: str = ""
    """The one source that all such content in it is from, as a person may trust it
    (`vigil.trust`); empty: none, or another had a part."""
    files: tuple[OutputFile, ...] = ()
    """Images, PDF files and texts that came with it: whoever thinks may be shown them."""
    fields: tuple[str, ...] = ()
    """Tokens of the whole fields of what it answered as data (`vigil.words.rule.fields_of`)."""
    wanted: ServerQuestion | None = None
    """What its server wants first, of the person or of a model."""


def is_outside(output: ToolOutput, whose: Scope, trusted: TrustedSources) -> bool:
    """Whether a result counts as from outside for its owner, who may trust where it is from."""
    return output.is_tainted and not trusted.has(whose, output.origin)


class ToolSource(Protocol):
    """Whoever has tools. It is started with the executor and closed with it."""

    @property
    def shelf(self) -> Shelf:
        """What it offers at present."""
        ...

    async def run(self, call: Call) -> ToolOutput:
        """Run one of its tools to its end, within `call.tool.timeout_s`.

        A cancelled task ends the call and all that it started, before it returns.

        Raises:
            InvalidInput: the arguments are no good; the model is told field and reason.
            Unavailable: it surely did not run; it may be tried again.
        """
        ...

    async def close(self) -> None:
        """End whatever it runs."""
        ...


class Registrar(Protocol):
    """Where sources are made known; the registry of the executor is one."""

    def set(self, source: ToolSource) -> None:
        """Offer what is on the shelf of a source, in place of what it offered before.

        To be called again whenever its shelf has changed.
        """
        ...

    def remove(self, name: str) -> None:
        """Offer nothing of that source any more; harmless if there is none."""
        ...
