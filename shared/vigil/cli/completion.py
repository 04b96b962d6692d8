"""What a shell offers after TAB, beside commands and options: sessions, timers, agents.

A shell waits for it while a person types, so it takes 0.3 s at most, and says nothing rather than
something wrong: a Vigil that isn't there, a wrong setting, a full disk all look like "no idea".
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import Final

import typer

from vigil.sdk.client import Client, connect
from vigil.settings import config
from vigil.subjects import SessionKey

PATIENCE_S: Final = 0.3
OFFERED_MAX: Final = 100


def session_keys(incomplete: str) -> list[str]:
    """Offer the keys of one's own sessions."""
    return _within(_sessions, incomplete)


def timer_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the open timers of the session that was named before."""
    # With an option that has no value yet, arguments are still unsorted.
    key = context.params.get("key") or next(iter(context.args), None)
    return _within(lambda: _timers(str(key)), incomplete) if key else []


def approval_ids(incomplete: str) -> list[str]:
    """Offer the requests that wait for a verdict."""
    return _within(_approvals, incomplete)


def agents(incomplete: str) -> list[str]:
    """Offer the agents that have a folder in this home."""
    return _within(_agents, incomplete)


def job_ids(incomplete: str) -> list[str]:
    """Offer the newest of one's own jobs."""
    return _within(lambda: (job["id"] for job in _client().jobs()), incomplete)


def skills(incomplete: str) -> list[str]:
    """Offer the skills that there are."""
    return _within(lambda: (s["name"] for s in _client().skills()["skills"]), incomplete)


def _sessions() -> Iterable[str]:
    return (session["session_key"] for session in _client().sessions())


def _timers(key: str) -> Iterable[str]:
    found = _client().timers(str(SessionKey.parse(key)))
    return (timer["timer_id"] for timer in found["timers"])


def _approvals() -> Iterable[str]:
    return (approval["id"] for approval in _client().approvals())


def _agents() -> Iterable[str]:
    folders = config.load().agents.iterdir()
    return sorted(folder.name for folder in folders if folder.is_dir())


def _client() -> Client:
    return connect(config.load())


def _within(find: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """Return what `find` yields in time and that begins so; whatever happens, nothing is raised.

    In a thread of its own, which ends with the process: a name server may take its time, too.
    """
    found: list[str] = []

    def look() -> None:
        with contextlib.suppress(Exception):
            for name in find():
                if name.startswith(incomplete):
                    found.append(name)
                if len(found) >= OFFERED_MAX:
                    return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return list(found)
