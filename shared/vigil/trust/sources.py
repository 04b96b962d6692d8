"""Sources that a person trusts from now on (FLOW F-15).

A person says so, by name, of one source; no tool and no service but the gateway can. From then on
what comes from exactly that source is no content from outside, for that person and agent. Whoever
takes it in looks here and records what it found, so that what was decided stays decided; a source
that is no longer trusted is as any other from what comes next on. One entry of the bucket CONFIG
each (`vigil.trust.kept`). Pure.

    hook:NAME       what is signed for `[hooks.NAME]`
    bus:NAME        what a program publishes with that credential
    api:USER        what is posted with that person's token
    mcp:NAME        what tools of `[mcp.NAME]` answer
    url:https://…   what exactly that address answers, without a detour
    feed:https://…  what is new in exactly that feed, in rows that watch it
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ..contracts import Instant
from ..contracts.board import Watched, WatchedFeed, WatchedTool, WatchedUrl
from ..errors import InvalidInput
from ..net.ssrf import Rules, target_of
from ..subjects import Scope, token_of

PREFIX: Final = "trust."
SOURCES_MAX: Final = 200
"""That a person trusts with one agent."""
MEANING: Final = (
    "What comes from {source} counts as your own from now on: it may lead the agent to act without "
    "asking, so trust it only if nobody else can write there."
)
_NAMED: Final = re.compile(
    r"((hook|bus|api):[A-Za-z0-9_-]{1,64}|mcp:(?![\w-]*__)[A-Za-z0-9_-]{1,32})", re.ASCII
)
_ADDRESSED: Final = re.compile(r"(url|feed):(.+)", re.DOTALL)


class Trusted(msgspec.Struct, frozen=True, kw_only=True):
    """A source that is trusted."""

    owner: str
    agent: str
    source: str
    at: Instant
    by: str


def of_server(name: str) -> str:
    return f"mcp:{name}"


def of_page(url: str) -> str:
    return f"url:{url}"


def of_feed(url: str) -> str:
    return f"feed:{url}"


def check_source(source: str) -> str:
    """Return a source that may be trusted, as it is. Raises: InvalidInput.

    >>> check_source("hook:ci"), check_source("url:https://example.org/news")
    ('hook:ci', 'url:https://example.org/news')
    >>> check_source("hook:*")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: source: must be hook:, bus:, api: or mcp:NAME, or url: or feed:https://…
    """
    if _NAMED.fullmatch(source):
        return source
    if (found := _ADDRESSED.fullmatch(source)) is None:
        reason = "must be hook:, bus:, api: or mcp:NAME, or url: or feed:https://…"
        raise InvalidInput("source", reason)
    try:
        target = target_of(found[2], Rules())
    except InvalidInput as error:
        raise InvalidInput("source", f"has an address that {error.reason}") from error
    if target.scheme != "https":
        raise InvalidInput("source", "is read without encryption: anybody on the way may write it")
    return source


def key_of(whose: Scope, source: str) -> str:
    """Return where it stands that an owner trusts a source. Sources differ in their hash, so none
    is another's beginning."""
    return f"{of_owner(whose)}{token_of('source', source)}"


def of_owner(whose: Scope) -> str:
    """Return how the entries of an owner and an agent begin."""
    return f"{PREFIX}{token_of('person', whose.owner)}.{whose.agent}."


def named(watch: Watched) -> str:
    """Return the source that a watched thing is; empty: it has no name that is trusted so.

    >>> named(WatchedFeed(url="https://a.example/feed")), named(WatchedUrl(url="https://a.example/"))
    ('feed:https://a.example/feed', 'url:https://a.example/')
    """
    match watch:
        case WatchedUrl(url=url):
            return of_page(url)
        case WatchedFeed(url=url):
            return of_feed(url)
        case WatchedTool(tool=tool):
            return of_server(tool.partition("__")[0])
        case _:
            return ""
