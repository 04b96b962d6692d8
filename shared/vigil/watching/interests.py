"""What a cycle of an agent is to keep up with, and when: `looks` of its configuration, and its role
(LOOPS L-7, FLOW F-13). Pure.

https://a.example/    a page        search:nats releases    what a search finds
feed:https://…        a feed        mcp:SERVER__TOOL        what a tool answers

They are written as what a row may watch, and searches. The person named them, so a cycle may look
there to the letter whatever it read before: nothing is in them that a model put there. Each is due
by the clock, since the last cycle that was told of it and didn't fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from ..contracts.board import WatchedFeed, WatchedTool, WatchedUrl
from ..errors import ConfigError, InvalidInput
from ..facts.shape import words_of
from ..facts.wanted import WantedFact, read_wanted
from ..texts.glyphs import is_printable
from .watched import check_watched, watched_of

INTERESTS_MAX: Final = 50
LENGTH_MAX: Final = 500
"""Characters of one."""
SEARCH: Final = "search:"
TOOL: Final = "mcp:"
TOLD: Final = (
    "To keep up with, as the person named it. Have each looked at by `research` with that line, "
    "and nothing else, as its task; what begins with mcp: you call yourself. That needs no leave "
    "at any time. What gives no answer is put off:"
)

FACTS: Final = (
    "Before you end, call `report_facts` once with what you found of these; leave out what you "
    "didn't look at, or don't know:"
)

ROLE: Final = "what your role says is yours"
"""How a cycle is told that its role is due; nothing else is written like that."""


class ScheduledInterest(Protocol):
    """One with when it is due (`vigil.settings.sections.InterestSection`)."""

    @property
    def what(self) -> str: ...

    @property
    def every_s(self) -> int | None: ...

    @property
    def hours(self) -> str: ...

    @property
    def facts(self) -> Mapping[str, str]: ...


class _At(NamedTuple):
    """One that says nothing of it."""

    what: str
    every_s: int | None = None
    hours: str = ""
    facts: Mapping[str, str] = MappingProxyType({})


class Interest(NamedTuple):
    """What an agent looks after, and when."""

    what: str
    """Its line as it is written, or `ROLE`."""
    every_s: int
    """How often; 0: never by the clock."""
    hours: str = ""


def interests_of(
    interests: Sequence[str | ScheduledInterest], *, every_s: int, has_role: bool, role_every_s: int
) -> tuple[Interest, ...]:
    """Return what an agent looks after, the role first.

    Args:
        every_s: of one that says nothing else.
        has_role: whether a person wrote what its role is.

    >>> interests_of(["search:tea"], every_s=60, has_role=False, role_every_s=0)
    (Interest(what='search:tea', every_s=60, hours=''),)
    """
    named = (_At(one) if isinstance(one, str) else one for one in interests)
    role = [Interest(ROLE, role_every_s)] if has_role else []
    return (*role, *(Interest(one.what, one.every_s or every_s, one.hours) for one in named))


def lines_of(interests: Sequence[str | ScheduledInterest]) -> tuple[str, ...]:
    """Return them without when they are due."""
    return tuple(interest if isinstance(interest, str) else interest.what for interest in interests)


def check_interests(section: str, interests: Sequence[str | ScheduledInterest]) -> None:
    """Check what an agent is to keep up with.

    Raises:
        ConfigError: naming the section, which of them, and the reason.
    """
    if len(interests) > INTERESTS_MAX:
        raise ConfigError(f"[{section}]: looks: must be at most {INTERESTS_MAX}")
    named = lines_of(interests)
    for interest in named:
        try:
            _check(interest)
            if named.count(interest) > 1:
                raise InvalidInput("looks", "is there twice")
        except InvalidInput as error:
            raise ConfigError(f"[{section}]: looks: {interest[:100]!r}: {error.reason}") from error
    try:
        facts_of(interests)
    except InvalidInput as error:
        raise ConfigError(f"[{section}]: looks: {error}") from error


def facts_of(interests: Sequence[str | ScheduledInterest]) -> dict[str, WantedFact]:
    """Return the facts that cycles tell of them. Raises: InvalidInput: they don't fit.

    >>> from vigil.settings.sections import InterestSection
    >>> list(facts_of([InterestSection(what="search:tea", facts={"is_new": "yes_no"})]))
    ['is_new']
    """
    named: dict[str, str] = {}
    for interest in interests:
        for name, text in ({} if isinstance(interest, str) else interest.facts).items():
            if name in named:
                raise InvalidInput(f"facts.{name[:40]}", "is named twice")
            named[name] = text
    found = read_wanted(named)
    for name, one in found.items():
        if one.where:
            raise InvalidInput(f"facts.{name[:40]}", "is told by a cycle: leave out `at`")
    return found


def _check(interest: str) -> None:
    if len(interest) > LENGTH_MAX or not is_printable(interest) or interest != interest.strip():
        raise InvalidInput("looks", f"must be one line of at most {LENGTH_MAX} characters")
    if interest.startswith(SEARCH):
        if not interest.removeprefix(SEARCH).strip():
            raise InvalidInput("looks", "must say what is to be searched for")
        return
    watched = watched_of(interest)
    if not isinstance(watched, WatchedUrl | WatchedFeed | WatchedTool):
        raise InvalidInput("looks", "must be an address, feed:, search: or mcp:SERVER__TOOL")
    check_watched(watched)


def described(interests: Sequence[str | ScheduledInterest]) -> str:
    """Return what a cycle is told of them.

    >>> print(described(("search:tea",)).splitlines()[-1])
    - search:tea
    >>> described(())
    ''
    """
    lines = (
        "\n".join((TOLD, *(f"- {interest}" for interest in lines_of(interests))))
        if interests
        else ""
    )
    asked = [
        f"- of {one.what}: {'; '.join(f'{name}: {text}' for name, text in _shapes(one).items())}"
        for one in interests
        if not isinstance(one, str) and one.facts
    ]
    return "\n".join((lines, "", FACTS, *asked)) if asked else lines


def _shapes(interest: ScheduledInterest) -> dict[str, str]:
    return {name: words_of(one.shape) for name, one in read_wanted(interest.facts).items()}
