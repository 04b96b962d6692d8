"""What the rehearsal model says after its tools ran, from their results. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from vigil.contracts import Row, TextBlock, ToolResultBlock, ToolUseBlock

from ...model import Situation
from .open_plans import CANCELLING, cancel
from .reply import ABOUT, CALLS_MAX, RESEARCH, SAID_MAX, Reply

THE_PERSONS: Final = "the person's"
_MOVED: Final = re.compile(rf"It comes [^\n]*{THE_PERSONS}[^\n]*(?=: tell them\.)")
"""How a result says that quiet hours or a pause will hold a reminder back."""


def go_on(rows: Sequence[Row], situation: Situation) -> Reply:
    """Say what the tools did, from their results."""
    results: dict[str, ToolResultBlock] = {}
    index = len(rows)
    while index and rows[index - 1].role == "user":
        index -= 1
        results |= {b.tool_use_id: b for b in rows[index].blocks if isinstance(b, ToolResultBlock)}
    calls = [b for b in rows[index - 1].blocks if isinstance(b, ToolUseBlock)] if index else []
    done = [call for call in calls if call.id in results and not results[call.id].is_error]
    cancelled = [call for call in done if call.name == "cancel_followup"]
    if len(cancelled) == CALLS_MAX and situation.follow_ups:
        return cancel(situation)
    parts = [_cancelled(rows)] if cancelled else []
    for tool, words in WORDS.items():
        parts += [words(call.input, results[call.id]) for call in done if call.name == tool]
    parts += [f"That did not work: {r.content[:300]}" for r in results.values() if r.is_error]
    return " ".join(parts) or ABOUT, []


def _scheduled(arguments: dict[str, Any], result: ToolResultBlock) -> str:
    when = f"in {_duration(arguments.get('delay_seconds', 0))}"
    moved = _MOVED.search(result.content)
    other = "" if moved is None else f" {moved[0].replace(THE_PERSONS, 'your')}."
    if not arguments.get("keep"):
        return f"I'll check back {when}.{other}"
    what = str(arguments.get("reason", "")).removeprefix("reminder").removeprefix(": ")
    return (
        f"I'll remind you {when} to {what}.{other}" if what else f"I'll remind you {when}.{other}"
    )


def _saved(arguments: dict[str, Any], _result: ToolResultBlock) -> str:
    return f"I'll remember that {str(arguments.get('content', '')).rstrip('.')}."


def _started(arguments: dict[str, Any], _result: ToolResultBlock) -> str:
    what = str(arguments.get("task", "")).removeprefix(RESEARCH)
    return f"A worker is looking into {what}. I'll tell you what comes of it."


def _found(_arguments: dict[str, Any], result: ToolResultBlock) -> str:
    return f"My memory says: {' '.join(result.content[:SAID_MAX].split())}"


def _cancelled(rows: Sequence[Row]) -> str:
    """Name all that this exchange cancelled, as announced with the calls."""
    announced: list[str] = []
    for row in reversed(rows):
        if row.role == "user" and row.source != "tool":
            break
        announced += [
            b.text.removeprefix(CANCELLING)
            for b in row.blocks
            if isinstance(b, TextBlock) and b.text.startswith(CANCELLING)
        ]
    return f"Cancelled: {', '.join(reversed(announced))}."


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{seconds:g} seconds"


WORDS: Final[dict[str, Callable[[dict[str, Any], ToolResultBlock], str]]] = {
    "schedule_followup": _scheduled,
    "memory_save": _saved,
    "memory_recall": _found,
    "spawn_worker": _started,
}
"""What is said of a call that worked, by its tool; in this order."""
