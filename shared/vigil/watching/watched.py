"""What a row may watch: how a person writes it, and what is refused (LOOPS L-3). Pure.

https://a.example/      a page or document         files:notes/**/*.md     files of the workspace
feed:https://…          a feed, RSS or Atom        command:df -h /         what a command writes
                                                   mcp:SERVER__TOOL        what a tool answers
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final, Protocol, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from ..contracts import Shelf, Tool
from ..contracts.board import (
    Watched,
    WatchedCommand,
    WatchedFeed,
    WatchedFiles,
    WatchedTool,
    WatchedUrl,
)
from ..errors import InvalidInput
from ..net.ssrf import Rules, target_of
from ..subjects import Scope
from ..tasks.check import check_text
from ..teams import Teams, owner_of
from ..texts.pointer import parts_of

PUBLIC: Final = Rules()
"""Where a watcher may look."""
COMMAND_LENGTH_MAX: Final = 4_000
GLOB_LENGTH_MAX: Final = 500
GLOB_NAMES_MAX: Final = 32
TOOL_LENGTH_MAX: Final = 64
ARGUMENTS_BYTES_MAX: Final = 8_000
READ: Final = "read"
"""The class of tools that may be asked without anybody there."""
NONE: Final = "none"
"""How a person says that nothing is watched any more."""
BUILTIN: Final = "builtin"
SHELL: Final = "shell"
"""Of the executor's own tools the one that a command takes."""
NOBODY: Final = "needs somebody who ordered it"

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def source_of(watch: Watched) -> str:
    """Return what is watched, without its kind.

    >>> source_of(WatchedFeed(url="https://a.example/feed"))
    'https://a.example/feed'
    """
    match watch:
        case WatchedUrl(url=source) | WatchedFeed(url=source):
            return source
        case WatchedFiles(glob=source):
            return source
        case WatchedCommand(command=source):
            return source
        case WatchedTool(tool=source):
            return source
        case _:
            assert_never(watch)


def words_of(watch: Watched) -> str:
    """Return what is watched as a person writes it; `watched_of` reads it.

    >>> words_of(WatchedUrl(url="https://a.example/")), words_of(WatchedFiles(glob="*.md"))
    ('https://a.example/', 'files:*.md')
    """
    kind = str(type(watch).__struct_config__.tag)
    return source_of(watch) if isinstance(watch, WatchedUrl) else f"{kind}:{source_of(watch)}"


def watched_of(
    text: str, pointer: str | None = None, arguments: dict[str, Any] | None = None
) -> Watched:
    """Read what is to be watched as a person writes it; whether it may be is looked at later.

    Raises:
        InvalidInput: a pointer or arguments go with none of that kind.

    >>> watched_of("mcp:tracker__open", "/count")
    WatchedTool(tool='tracker__open', arguments={}, pointer='/count')
    >>> watched_of("files:*.md", "/count")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: pointer: tells what counts of a page or of a tool's answer
    """
    kind, _, source = text.partition(":")
    if kind != "mcp" and arguments is not None:
        raise InvalidInput("arguments", "are those of a tool: mcp:SERVER__TOOL")
    if kind in ("feed", "files", "command") and pointer:
        raise InvalidInput("pointer", "tells what counts of a page or of a tool's answer")
    match kind:
        case "feed":
            return WatchedFeed(url=source)
        case "files":
            return WatchedFiles(glob=source)
        case "command":
            return WatchedCommand(command=source)
        case "mcp":
            return WatchedTool(tool=source, arguments=arguments or {}, pointer=pointer or "")
        case _:
            return WatchedUrl(url=text, pointer=pointer or "")


def wanted_watch(
    text: str, pointer: str | None, arguments: dict[str, Any] | None
) -> Watched | UnsetType:
    """Read what a row is to watch; `UNSET`: nothing any more. Raises: InvalidInput."""
    if text != NONE:
        return watched_of(text, pointer, arguments)
    if pointer or arguments:
        raise InvalidInput("watch", "says that nothing is watched; leave the rest out")
    return UNSET


def what_of(watch: Watched) -> str:
    """Return what tells one watched thing from another.

    >>> what_of(WatchedUrl(url="https://a.example/", pointer="/version"))
    'https://a.example/ /version'
    >>> what_of(WatchedFeed(url="https://a.example/")).partition(":")[0]
    'feed'
    """
    if isinstance(watch, WatchedUrl):
        return f"{watch.url} {watch.pointer}"
    kind = type(watch).__struct_config__.tag
    return f"{kind}:{hashlib.sha256(_encode(watch)).hexdigest()}"


class Watching(Protocol):
    """Who watches what, and whether that is trusted (`vigil.settings.sections.WatchSection`)."""

    @property
    def source(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def agent(self) -> str: ...

    @property
    def is_trusted(self) -> bool: ...


def trusts(sections: Iterable[Watching], teams: Teams, whose: Scope, watch: Watched) -> bool:
    """Whether what changes there counts as trusted in the rows of an owner and an agent (L-19)."""
    source = words_of(watch)
    return any(
        one.is_trusted
        and one.source == source
        and Scope(one.agent, owner_of(one.user, one.agent, teams)) == whose
        for one in sections
    )


# ---------------------------------------------------------------- refused


def check_watched(watch: Watched) -> None:
    """Check what can be told from the row alone. Where a name leads, and what a tool may do, is
    found out at each look.

    Raises:
        InvalidInput: it's no public address by its form, no glob, no command, no tool or pointer.
    """
    match watch:
        case WatchedUrl():
            target_of(watch.url, PUBLIC)
            parts_of(watch.pointer)
        case WatchedFeed():
            target_of(watch.url, PUBLIC)
        case WatchedFiles():
            names_of(watch.glob)
        case WatchedCommand():
            text = check_text("command", watch.command, COMMAND_LENGTH_MAX)
            if not text.strip() or "\0" in text:
                raise InvalidInput("command", "must say what is to be run, without null characters")
        case WatchedTool():
            _check_tool(watch)
        case _:
            assert_never(watch)


def _check_tool(watch: WatchedTool) -> None:
    server, _, tool = watch.tool.partition("__")
    if not server or not tool or len(watch.tool) > TOOL_LENGTH_MAX:
        raise InvalidInput("tool", f"{watch.tool[:100]!r} is no tool's name, as SERVER__TOOL")
    if len(_encode(watch.arguments)) > ARGUMENTS_BYTES_MAX:
        raise InvalidInput("arguments", f"must have at most {ARGUMENTS_BYTES_MAX} bytes as JSON")
    parts_of(watch.pointer)


def names_of(glob: str) -> tuple[str, ...]:
    """Take a glob apart, name by name; ``**`` stands for any number of folders.

    Raises:
        InvalidInput: it leads out of the workspace, or is none.

    >>> names_of("notes/**/*.md")
    ('notes', '**', '*.md')
    >>> names_of("../secrets")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: glob: must stay in the workspace: no '..', no '/' to begin with
    """
    if not check_text("glob", glob, GLOB_LENGTH_MAX).strip():
        raise InvalidInput("glob", "must name files of the workspace, as notes/*.md")
    found = tuple(name for name in glob.split("/") if name not in ("", "."))
    if glob.startswith("/") or ".." in found:
        raise InvalidInput("glob", "must stay in the workspace: no '..', no '/' to begin with")
    if not found or "\0" in glob or len(found) > GLOB_NAMES_MAX:
        raise InvalidInput("glob", f"must name files, with at most {GLOB_NAMES_MAX} folders")
    return found


def shelf_of(watch: Watched | None) -> str:
    """Return which source of tools has to offer what is watched; empty: none."""
    match watch:
        case WatchedCommand():
            return BUILTIN
        case WatchedTool(tool=tool):
            return tool.partition("__")[0]
        case _:
            return ""


def check_offered(watch: Watched | None, shelf: Shelf | None) -> None:
    """Check what takes a tool.

    Args:
        shelf: of the source that `shelf_of` names; None: it offers nothing.

    Raises:
        InvalidInput: it isn't offered, or may do more than look.
    """
    tools = () if shelf is None else shelf.tools
    if isinstance(watch, WatchedCommand) and all(one.name != SHELL for one in tools):
        why = shelf.problem if shelf is not None else ""
        raise InvalidInput("command", f"can't be run: {why or 'no executor offers that'}")
    if isinstance(watch, WatchedTool):
        tool_of(watch, tools)


def tool_of(watch: WatchedTool, tools: Iterable[Tool]) -> Tool:
    """Return the tool that is watched, of those that its server offers.

    Raises:
        InvalidInput: there is none of that name, or it may do more than look.
    """
    there = {one.name: one for one in tools}
    found = there.get(watch.tool)
    if found is None:
        names = ", ".join(sorted(one.name for one in there.values() if one.risk == READ))
        reason = f"there is no tool {watch.tool!r} at present; to be watched: {names or 'none'}"
        raise InvalidInput("tool", reason[:1_000])
    if found.risk != READ:
        reason = f"{watch.tool!r} is of class {found.risk!r}; only {READ!r} may be watched"
        raise InvalidInput("tool", reason)
    return found
