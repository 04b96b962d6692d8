"""Why a slot wasn't run, or had no good end: in words, as the ledger has them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .schedule import RUNS_MAX

PAUSED: Final = "the row was paused"
PAUSED_BEFORE: Final = "the row was paused before it could run"
REMOVED: Final = "the row was removed before it could run"
CHANGED: Final = "the schedule was changed before it could run"
HOURS: Final = "outside its active hours"
STILL_RUNNING: Final = "the run before was still going on"
POLICY: Final = "it was missed, and the row skips what it missed"
TOO_LATE: Final = "it was missed by more than the row's grace"
TOO_MANY: Final = f"more than {RUNS_MAX} were missed, and only the newest are run"
FOLDED: Final = "it was missed, and a newer one stands for it"
SET_BACK: Final = "the clock was set back: it goes on by the clock as it is now"
LOST: Final = "its session gave no end in time"
UNANSWERED: Final = "No model answered: "
"""Begins what a run tells that was ended while it waited for a model; then comes why it did."""
REPLACED: Final = "no model had answered, and another run of the row stands for it"
AWAY: Final = frozenset((POLICY, TOO_LATE, TOO_MANY, FOLDED))
"""Of what no scheduler decided in time."""
_MISSED: Final = re.compile(
    r"([0-9]{1,9}) runs? of (.+) (?:was|were) missed while off: (none|one|[0-9]{1,9}) (?:was|were) "
    r"made up for\."
)
_WORDS: Final = {0: "none", 1: "one"}
_NUMBERS: Final = {word: count for count, word in _WORDS.items()}


def missed(name: str, count: int, made_up: int) -> str:
    """Say how many runs of a row were missed, and how many were made up for.

    >>> missed("morning brief", 3, 1)
    '3 runs of morning brief were missed while off: one was made up for.'
    """
    runs = f"1 run of {name} was" if count == 1 else f"{count} runs of {name} were"
    were = "were" if made_up > 1 else "was"
    return f"{runs} missed while off: {_WORDS.get(made_up, made_up)} {were} made up for."


def together(lines: Iterable[str]) -> list[str]:
    """Return lines of a digest; what was missed of one row is said once, where it was first said: a
    machine that sleeps now and then misses some each time.

    >>> together([missed("a", 8, 0), "It rains.", missed("b", 1, 0), missed("a", 2, 1)])[0]
    '10 runs of a were missed while off: one was made up for.'
    """
    told: list[str] = []
    seen: dict[str, tuple[int, int, int]] = {}
    for line in lines:
        of = _MISSED.fullmatch(line)
        if of is None:
            told.append(line)
            continue
        where, count, made_up = seen.get(of[2], (len(told), 0, 0))
        made_up += _NUMBERS[of[3]] if of[3] in _NUMBERS else int(of[3])
        seen[of[2]] = where, count + int(of[1]), made_up
        told[where : where + 1] = [missed(of[2], count + int(of[1]), made_up)]
    return told
