"""What a shell offers after TAB, beside commands, options and choices: whatever has an id or name.

A shell waits for it while a person types, so it takes 0.3 s at most, and says nothing rather than
something wrong: a Vigil that isn't there, a wrong setting, a full disk all look like "no idea".
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import typer

from vigil.local.identity_files import agents_there
from vigil.sdk.calls.kind import KindCalls
from vigil.sdk.client import connect
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.subjects import SessionKey

PATIENCE_S: Final = 0.3
SHORT: Final = 8
"""Digits of an id that tell it from the others."""
OFFERED_MAX: Final = 100
HELP_LENGTH_MAX: Final = 60
Offer = str | tuple[str, str]
"""What is offered, and for shells that show more than that, in words."""
Find = Callable[[Settings], Iterable[Offer]]
Complete = Callable[[str], list[Offer]]


def _offering(find: Find) -> Complete:
    def offer(incomplete: str) -> list[Offer]:
        return _within(find, incomplete)

    return offer


def _begun(things: Iterable[Mapping[str, Any]], words: str) -> Iterator[Offer]:
    """Yield how the id of each thing begins, with a field of it in words."""
    for one in things:
        yield one["id"][:SHORT], " ".join(str(one[words]).split())[:HELP_LENGTH_MAX]


def _word_of(one: Mapping[str, Any], name: str) -> str:
    """Return a thing's name; if a shell would take that for several words, how its id begins."""
    return str(one["id"][:SHORT] if len(one[name].split()) > 1 else one[name])


def named(section: str) -> Complete:
    """Offer the names of a section of sections: `channels`."""
    return _offering(lambda s: sorted(getattr(config.load_right(home=s.home).config, section)))


session_keys: Final = _offering(
    lambda s: (
        (one["session_key"], str(one.get("title") or "")[:HELP_LENGTH_MAX])
        for one in connect(s).sessions()
    )
)
skills: Final = _offering(lambda s: (one["name"] for one in connect(s).skills()["skills"]))
agents: Final = _offering(
    lambda s: agents_there(config.load_right(home=s.home)) if s.agents.is_dir() else ()
)


def of_kind(plural: str, words: str, beside: str = "", path: str = "") -> Complete:
    """Offer the ids of a kind of the board, with the field `words` of each, or whole ones where no
    field says more; or that, a name, with the field `beside`, if there is one."""

    def find(settings: Settings) -> Iterable[Offer]:
        there = KindCalls(connect(settings), plural, path).listed()
        if not words:
            return (one["id"] for one in there)
        if not beside:
            return _begun(there, words)
        return ((_word_of(one, words), one[beside]) for one in there)

    return _offering(find)


def timer_ids(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer the open timers of the session that was named before."""
    # With an option that has no value yet, arguments are still unsorted.
    key = context.params.get("key") or next(iter(context.args), None)

    def find(settings: Settings) -> Iterable[Offer]:
        found = connect(settings).timers(str(SessionKey.parse(str(key))))
        return (timer["timer_id"] for timer in found["timers"])

    return _within(find, incomplete) if key else []


def _within(find: Find, incomplete: str) -> list[Offer]:
    """Return what `find` yields in time and that begins so; whatever happens, nothing is raised.

    In a thread of its own, which ends with the process: a name server may take its time, too.
    """
    found: list[Offer] = []

    def collect() -> None:
        with contextlib.suppress(Exception):
            for one in find(config.unread()):
                name = one if isinstance(one, str) else one[0]
                if name.startswith(incomplete):
                    found.append(one)
                if len(found) >= OFFERED_MAX:
                    return

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return list(found)
