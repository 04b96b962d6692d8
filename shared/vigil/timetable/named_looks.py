"""What a cycle of an agent is to keep up with: `looks` of its configuration (LOOPS L-7). Pure.

https://a.example/    a page        search:nats releases    what a search finds
feed:https://…        a feed        mcp:SERVER__TOOL        what a tool answers

They are written as what a row may watch, and searches. The person named them, so a cycle may look
there to the letter whatever it read before: nothing is in them that a model put there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..contracts.board import WatchedFeed, WatchedTool, WatchedUrl
from ..errors import ConfigError, InvalidInput
from .watched import check_watched, watched_of

LOOKS_MAX: Final = 50
LENGTH_MAX: Final = 500
"""Characters of one."""
SEARCH: Final = "search:"
TOOL: Final = "mcp:"
TOLD: Final = (
    "To keep up with, as the person named it. Have each looked at by `research` with that line, "
    "and nothing else, as its task; what begins with mcp: you call yourself. That needs no leave "
    "at any time. What gives no answer is put off:"
)


def check_looks(section: str, looks: Sequence[str]) -> None:
    """Check what an agent is to keep up with.

    Raises:
        ConfigError: naming the section, which of them, and the reason.
    """
    if len(looks) > LOOKS_MAX:
        raise ConfigError(f"[{section}]: looks: must be at most {LOOKS_MAX}")
    for look in looks:
        try:
            _check(look)
            if looks.count(look) > 1:
                raise InvalidInput("looks", "is there twice")
        except InvalidInput as error:
            raise ConfigError(f"[{section}]: looks: {look[:100]!r}: {error.reason}") from error


def _check(look: str) -> None:
    if len(look) > LENGTH_MAX or not look.isprintable() or look != look.strip():
        raise InvalidInput("looks", f"must be one line of at most {LENGTH_MAX} characters")
    if look.startswith(SEARCH):
        if not look.removeprefix(SEARCH).strip():
            raise InvalidInput("looks", "must say what is to be searched for")
        return
    watched = watched_of(look)
    if not isinstance(watched, WatchedUrl | WatchedFeed | WatchedTool):
        raise InvalidInput("looks", "must be an address, feed:, search: or mcp:SERVER__TOOL")
    check_watched(watched)


def told(looks: Sequence[str]) -> str:
    """Return what a cycle is told of them.

    >>> print(told(("search:tea",)).splitlines()[-1])
    - search:tea
    >>> told(())
    ''
    """
    return "\n".join((TOLD, *(f"- {look}" for look in looks))) if looks else ""
