"""What a shell offers after TAB, beside commands, options and choices: sessions, timers, agents.

A shell waits for it while a person types, so it takes 0.3 s at most, and says nothing rather than
something wrong: a Vigil that isn't there, a wrong setting, a full disk all look like "no idea".
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import Final

import typer

from vigil.sdk.client import connect
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.subjects import SessionKey

PATIENCE_S: Final = 0.3
OFFERED_MAX: Final = 100
Find = Callable[[Settings], Iterable[str]]


def _offering(find: Find) -> Callable[[str], list[str]]:
    def offer(incomplete: str) -> list[str]:
        return _within(find, incomplete)

    return offer


session_keys: Final = _offering(lambda s: (one["session_key"] for one in connect(s).sessions()))
approval_ids: Final = _offering(lambda s: (one["id"] for one in connect(s).approvals()))
job_ids: Final = _offering(lambda s: (one["id"] for one in connect(s).jobs()))
skills: Final = _offering(lambda s: (one["name"] for one in connect(s).skills()["skills"]))
agents: Final = _offering(lambda s: sorted(one.name for one in s.agents.iterdir() if one.is_dir()))


def timer_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the open timers of the session that was named before."""
    # With an option that has no value yet, arguments are still unsorted.
    key = context.params.get("key") or next(iter(context.args), None)

    def find(settings: Settings) -> Iterable[str]:
        found = connect(settings).timers(str(SessionKey.parse(str(key))))
        return (timer["timer_id"] for timer in found["timers"])

    return _within(find, incomplete) if key else []


def _within(find: Find, incomplete: str) -> list[str]:
    """Return what `find` yields in time and that begins so; whatever happens, nothing is raised.

    In a thread of its own, which ends with the process: a name server may take its time, too.
    """
    found: list[str] = []

    def look() -> None:
        with contextlib.suppress(Exception):
            for name in find(config.unread()):
                if name.startswith(incomplete):
                    found.append(name)
                if len(found) >= OFFERED_MAX:
                    return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return list(found)
