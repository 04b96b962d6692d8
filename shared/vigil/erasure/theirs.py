"""Under which subjects a person's records are: one table for streams, files and logs. Pure.

The broker is asked by the filters themselves; in the bytes of a file, where it can't be asked, the
same filters are looked for as patterns. So a kind of record that gets its line here is swept,
overwritten and looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..contracts.costs import COSTS
from ..errors import InvalidInput
from ..subjects import Scope, check_part, token_of
from ..teams import TEAM

PART: Final = r"[A-Za-z0-9_-]{1,64}"
_SESSION: Final = r"session(?:-\d+)?"
"""The log of sessions may be in several streams, each with a number."""


def filters_of(user: str) -> dict[str, list[str]]:
    """Return where a person's records are, by stream.

    >>> filters_of("ann")["SESSIONS"]
    ['session.*.ann.>']
    """
    check_part("user", user)  # a wildcard would mean everybody
    if user == TEAM:
        raise InvalidInput("user", "is nobody: memories that a team shares have this name")
    return _filters(user, token_of(user))


def _filters(name: str, token: str) -> dict[str, list[str]]:
    return {
        # Before what they started: a session that is gone starts nothing and tells nobody.
        "SESSIONS": [f"session.*.{name}.>"],
        "SYSTEM": [f"system.*.{name}.>"],
        "BOARD": [f"board.*.{name}.>"],
        "SLOTS": [Scope("*", name).slot()],
        "MAILS": [Scope("*", name).mail()],
        "TIMERS": [f"timer.*.*.{name}.>", f"due.*.*.{name}.>"],
        "DEAD": [f"dead.*.*.{name}.>"],
        "EVENTS": [f"event.{name}.>"],
        "UPLOADS": [f"upload.{name}.>"],
        "FILES": [f"file.{name}.>"],
        # Before their signals: those of a record that is gone are never projected again.
        "MEMORIES": [Scope("*", name).everything],
        "SIGNALS": [f"signal.*.{name}.>"],
        "KV_CURSORS": [f"$KV.CURSORS.{token}.>"],
        "KV_LEASES": [f"$KV.LEASES.*.{name}.>"],
        # Of the accounts, only what the instance and its agents spent stays.
        "KV_BUDGETS": [
            f"$KV.BUDGETS.*.{COSTS}.{token}",
            f"$KV.BUDGETS.*.owner.{token}",
            *(f"$KV.BUDGETS.*.{link}.{token}.*" for link in ("cause", "row", "goal")),
        ],
    }


def subjects_of(user: str) -> re.Pattern[bytes]:
    """Return what matches every subject of a person, whole.

    >>> theirs = subjects_of("ann")
    >>> bool(theirs.fullmatch(b"slot.vigil.ann.1f")), bool(theirs.fullmatch(b"slot.vigil.bob.ann"))
    (True, False)
    >>> bool(theirs.fullmatch(b"timer.session.vigil.ann.t1.0f"))
    True
    """
    return _whole(_all(filters_of(user)))


def subjects_of_anybody() -> re.Pattern[bytes]:
    """Return what matches every subject of any person, whole."""
    return _whole(_all(_filters("*", "*")))


def prefixes_of(user: str, part: str) -> list[str]:
    """Return patterns of how each subject of a person begins, up to the name and its dot.

    Args:
        part: matches what stands for a ``*``.
    """
    name = check_part("user", user)
    found: dict[str, None] = {}
    for one in _all(filters_of(user)):
        tokens = one.split(".")
        if name in tokens:
            found[_pattern(tokens[: tokens.index(name)], part)] = None
    return list(found)


def _all(filters: dict[str, list[str]]) -> Iterator[str]:
    for some in filters.values():
        yield from some


def _whole(filters: Iterator[str]) -> re.Pattern[bytes]:
    return re.compile("|".join(_pattern(one.split("."), PART) for one in filters).encode())


def _pattern(tokens: list[str], part: str) -> str:
    known = {"*": part, ">": ".+", "session": _SESSION}
    return r"\.".join(known.get(token) or re.escape(token) for token in tokens)
