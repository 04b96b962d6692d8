"""What a bulletin says, written down without a model (SPEC C-2, LOOPS L-18). Pure.

It's made of what may be trusted: memories, tasks and goals that no content from outside had a part
in. Of all others it has the numbers, so nothing that an outsider wrote gets into a prompt by it.
The same input makes the same text, so who compares two knows whether anything changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from vigil.contracts import BoardTask
from vigil.contracts.board import BoardGoal
from vigil.memory.questions import MemoryView
from vigil.tasks.lifecycle import OPEN
from vigil.timetable.cycles import KIND

WORDS_MAX: Final = 500
"""Of a bulletin (SPEC C-2)."""
SHORT_WORDS_MAX: Final = 150
LINE_LENGTH_MAX: Final = 200
"""Characters of a memory, or of a title."""
NAMED_MAX: Final = 5
"""Tasks of a status, and sources, that are named."""
GOALS_MAX: Final = 10
OUTSIDE_FOR: Final = timedelta(hours=24)
"""What came from outside is counted for so long."""
OWN_SOURCE: Final = f"cortex:{KIND}"
"""Of what cycles report: the bulletin isn't made of that."""
EMPTY: Final = "Nothing is known yet: there are no memories, tasks or goals."
SECTIONS: Final = (
    ("Identity", "identity", 15),
    ("Preferences", "preference", 10),
    ("Decisions", "decision", 10),
    ("Important", "", 10),
    ("Facts", "fact", 15),
    ("Events", "event", 10),
    ("Observations", "observation", 5),
    ("Recent", "", 15),
)
"""Heading, type of memory (empty: any), and how many: the numbers of SPEC C-2."""
_SOURCE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,40}")


class BulletinInput(NamedTuple):
    """What a bulletin is made of."""

    recent: Sequence[MemoryView] = ()
    """The newest memories first."""
    important: Sequence[MemoryView] = ()
    """The most important first."""
    tasks: Sequence[BoardTask] = ()
    goals: Sequence[BoardGoal] = ()


class BulletinText(msgspec.Struct, frozen=True, kw_only=True):
    """A bulletin in words."""

    text: str
    short: str
    is_empty: bool


def report(known: BulletinInput, now: datetime) -> BulletinText:
    """Write a bulletin.

    >>> from datetime import UTC
    >>> report(BulletinInput(), datetime(2026, 11, 20, tzinfo=UTC)).text
    'Nothing is known yet: there are no memories, tasks or goals.'
    """
    work = [*_tasks(known.tasks), *_goals(known.goals), *_outside(known.recent, now)]
    lines = [*work, *_memories(known)]
    if not lines:
        return BulletinText(text=EMPTY, short=EMPTY, is_empty=True)
    return BulletinText(
        text=_within(lines, WORDS_MAX), short=_within(lines, SHORT_WORDS_MAX), is_empty=False
    )


def _tasks(tasks: Sequence[BoardTask]) -> list[str]:
    lines = []
    for status in OPEN:
        there = [one for one in tasks if one.status == status and not one.is_removed]
        if not there:
            continue
        titles = [one.title for one in there if not one.is_tainted]
        lines.append(f"- {status}, {len(there)}: {_named(titles, len(there), 'task_list')}")
    return ["Tasks:", *lines] if lines else []


def _goals(goals: Sequence[BoardGoal]) -> list[str]:
    active = [one for one in goals if one.status == "active"]
    if not active:
        return []
    plain = sorted((one for one in active if not one.is_tainted), key=lambda one: -one.priority)
    lines = [f"- {_line(one.description)}" for one in plain[:GOALS_MAX]]
    hidden = len(active) - len(lines)
    if hidden:
        lines.append(f"- {hidden} more: `goal_list` has them")
    return ["Goals:", *lines]


def _named(titles: list[str], count: int, tool: str) -> str:
    named = [_line(one) for one in titles[:NAMED_MAX]]
    hidden = count - len(named)
    if hidden:
        named.append(f"{hidden} more, which `{tool}` has")
    return "; ".join(named)


def _outside(recent: Iterable[MemoryView], now: datetime) -> list[str]:
    """Count what came from outside lately: never its words."""
    since = now - OUTSIDE_FOR
    found = Counter(
        one.source if _SOURCE.fullmatch(one.source) else "other sources"
        for one in recent
        if one.is_tainted and one.created_at >= since and one.source != OWN_SOURCE
    )
    if not found:
        return []
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count} {source}" for source, count in ordered[:NAMED_MAX]]
    left = sum(count for _, count in ordered[NAMED_MAX:])
    if left:
        named.append(f"{left} others")
    return [
        "From outside in the last 24 hours, by number alone:",
        f"- {found.total()} memories: {', '.join(named)}. `list_memory` with a source shows them",
    ]


def _memories(known: BulletinInput) -> list[str]:
    recent, important = _trusted(known.recent), _trusted(known.important)
    lines: list[str] = []
    told: set[str] = set()
    for heading, kind, most in SECTIONS:
        among = recent if heading == "Recent" else important
        fitting = [one for one in among if kind in ("", one.type) and one.id not in told]
        chosen = fitting[:most]
        told.update(one.id for one in chosen)
        if chosen:
            lines += [f"{heading}:", *(_remembered(one) for one in chosen)]
    return lines


def _trusted(memories: Iterable[MemoryView]) -> list[MemoryView]:
    return [one for one in memories if not one.is_tainted and one.source != OWN_SOURCE]


def _remembered(memory: MemoryView) -> str:
    at = memory.occurred_at or memory.created_at
    return f"- {at.date().isoformat()}: {_line(memory.content)}"


def _line(text: str) -> str:
    """Put a text on one line, so that it can't pose as a section."""
    joined = " ".join(text.split())
    return joined if len(joined) <= LINE_LENGTH_MAX else joined[: LINE_LENGTH_MAX - 1] + "…"


def _within(lines: list[str], words_max: int) -> str:
    """Return as many of the first lines as have so many words, with what is left out told."""
    kept: list[str] = []
    words = 0
    for line in lines:
        words += len(line.split())
        if words > words_max - 5:  # of the line about the rest
            left = sum(one.startswith("- ") for one in lines[len(kept) :])
            if kept and not kept[-1].startswith("- "):
                kept.pop()  # a heading of nothing
            return "\n".join([*kept, f"({left} more left out)"])
        kept.append(line)
    return "\n".join(kept)
