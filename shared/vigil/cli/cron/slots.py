"""How `vigil cron history` shows what became of each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vigil.words.amounts import number_of

from .. import tables
from ..tables import Column

REASON_LENGTH_MAX: Final = 60
HOW: Final = {
    "manual": " by hand",
    "chained": " after another",
    "goal": " for a goal",
    "scheduled": "",
}
"""What had a run begin, as is said of its end."""


def _slot(one: Mapping[str, Any]) -> str:
    """Say what became of a slot, or of several.

    >>> _slot({"state": "missed", "count": 3, "trigger": "scheduled"})
    'missed (3)'
    >>> _slot({"state": "ran", "count": 1, "trigger": "chained"})
    'ran after another'
    """
    how = HOW[one["trigger"]]
    return f"{one['state']}{how}" + (f" ({one['count']})" if one["count"] > 1 else "")


def _cost(one: Mapping[str, Any]) -> str:
    """Say what a run took.

    >>> _cost({"tokens": 12_345, "micro_usd": 1_200}), _cost({"tokens": 0, "micro_usd": 0})
    ('12,345 tokens, $0.0012', '')
    >>> _cost({"tokens": 1, "micro_usd": 0})
    '1 token'
    """
    tokens = f"{one['tokens']:,} {number_of(one['tokens'], 'token')}" if one["tokens"] else ""
    return f"{tokens}, ${one['micro_usd'] / 1e6:.4f}" if one["micro_usd"] else tokens


def _facts(one: Mapping[str, Any]) -> str:
    """Say which facts a run told.

    >>> _facts({"facts": {"ci": "failing"}, "facts_left_out": {"open": "it wasn't told"}})
    'ci=failing; left out: open'
    """
    facts = ", ".join(f"{name}={value}" for name, value in one["facts"].items())
    left = ", ".join(one["facts_left_out"])
    return "; ".join(filter(None, (facts, left and f"left out: {left}")))


SLOTS: Final = (
    Column("DUE", "due_at", is_instant=True),
    Column("STATE", _slot),
    Column("DELIVERY", lambda one: one["arrival"] or one["delivery"]),
    Column("COST", _cost),
    Column("SESSION", "session"),
    Column("FACTS", _facts),
    Column("REASON", lambda one: tables.short(one["reason"], REASON_LENGTH_MAX)),
)
