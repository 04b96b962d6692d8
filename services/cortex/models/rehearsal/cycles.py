"""What the rehearsal model does in a cycle of an agent, and how it reports on it (SPEC C-7); in a
look of its mind (SPEC G-1); and after a run of the timetable that remembers (J-3). Pure.

It looks at the board, decides nothing, and says that it rehearses: one sees when cycles begin, what
they are told, and where their reports go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from vigil.contracts import Row, ToolUseBlock
from vigil.subjects import SessionKey
from vigil.timetable.cycles import KIND

from .reply import LISTED_MAX, Reply, text_of

REHEARSED: Final = "Rehearsed: until a model is configured, a cycle only counts what is new."
BOARD: Final = "the task board"
LIST: Final = "task_list"
DONE: Final = "I looked at the board."
TOLD: Final = "Rehearsed: an event came in between conversations: {kind}."
_EVENTS: Final = re.compile(r"^An event from .+ \((?:not )?trusted\), (.+):$", re.M)
"""Its content stands behind bars, so nothing in it can pose as one."""
_NEW_POINTS: Final = re.compile(r"^(?:\| )?- (\d+ [a-z]+\.[a-z_]+(?: \([^)\n]*\))?)$", re.M)
"""A count of what is new, behind the bars of a transcript or not."""
_RESULTS: Final = re.compile(r"^\[[^\]\n]+\] the result of the call was:\n\| (.+)$", re.M)


def is_cycle(session: str) -> bool:
    """Whether a session is a cycle of an agent. Empty: whoever tries a model, in none.

    >>> is_cycle("ann:vigil:_autonomy-1f"), is_cycle("ann:vigil:main"), is_cycle("")
    (True, False, False)
    """
    return bool(session) and SessionKey.parse(session).kind == KIND


def step(rows: Sequence[Row]) -> Reply:
    """Look at the board, and end."""
    blocks = [block for row in rows for block in row.blocks]
    if any(isinstance(block, ToolUseBlock) and block.name == LIST for block in blocks):
        return DONE, []
    return "", [(LIST, {})]


def report(rows: Sequence[Row]) -> str:
    """Return the report on a cycle: what it was told is new.

    Args:
        rows: the first one has all that happened in it.
    """
    new = [f"New: {point}" for point in _NEW_POINTS.findall(text_of(rows[0]))][:LISTED_MAX]
    found = [REHEARSED, *new]
    return json.dumps({"checked": [BOARD], "found": found, "deferred": [], "recheck": []})


def extracted(rows: Sequence[Row]) -> str:
    """Return what a run of the timetable came across: how each result that it was shown begins.

    Args:
        rows: the first one has all that happened in it.
    """
    found = dict.fromkeys(_RESULTS.findall(text_of(rows[0])))
    return json.dumps(
        {"memories": [f"Rehearsed: a call said {line}" for line in found][:LISTED_MAX]}
    )


def look(rows: Sequence[Row]) -> str:
    """Return what a look of the mind decides: to tell of each event that came in, and no more.

    Args:
        rows: the first one is the report.
    """
    kinds = _EVENTS.findall(text_of(rows[0]))[:LISTED_MAX]
    replies = [{"type": "respond", "text": TOLD.format(kind=kind)} for kind in kinds]
    decided = replies or [{"type": "no_action"}]
    sure = {"because": "It is rehearsed.", "confidence": 0.9}
    return json.dumps({"decisions": [one | sure for one in decided]})
