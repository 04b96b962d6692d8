"""Why a slot wasn't run, or had no good end: in words, as the ledger has them. Pure."""

from __future__ import annotations

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
AWAY: Final = frozenset((POLICY, TOO_LATE, TOO_MANY, FOLDED))
"""Of what no scheduler decided in time."""
