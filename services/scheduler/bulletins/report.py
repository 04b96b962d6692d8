"""What a bulletin says, written down without a model (SPEC C-2, LOOPS L-18). Pure.

It's made of what may be trusted: memories, tasks and goals that no content from outside had a part
in. Of all others it has the numbers, so nothing that an outsider wrote gets into a prompt by it.

How things stand is always told by these rules, and costs nothing when it changes. What is known
stands below: listed here, or put into words by a model that was given the material. The digest is
of the material without its order and without what only the time changes: who compares two of them
knows whether a model would be told anything new.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from vigil.contracts import BoardTask
from vigil.contracts.board import BoardGoal, CycleLedger
from vigil.memory import sources
from vigil.memory.questions import MemoryView
from vigil.settings.cortex import BulletinSection
from vigil.tasks.lifecycle import OPEN
from vigil.timetable.cycles import KIND
from vigil.words.amounts import count_of

WORDS_MAX: Final = 500
"""Of a bulletin without a model (SPEC C-2)."""
SHORT_WORDS_MAX: Final = 150
MATERIAL_WORDS_MAX: Final = 6_000
"""What a model is given at most: some 8,000 tokens."""
LINE_LENGTH_MAX: Final = 200
"""Characters of a memory, or of a title."""
MATERIAL_LINE_LENGTH_MAX: Final = 600
NAMED_MAX: Final = 5
"""Tasks of a status, and sources, that are named."""
OUTSIDE_FOR: Final = timedelta(hours=24)
"""What came from outside is counted for so long."""
OWN_SOURCE: Final = f"cortex:{KIND}"
"""Of what cycles keep; their reports are summaries, and no bulletin is made of those."""
EMPTY: Final = "Nothing is known yet: there are no memories, tasks or goals."
SECTIONS: Final = (
    ("Identity", "identity", "identity"),
    ("Preferences", "preference", "preferences"),
    ("Decisions", "decision", "decisions"),
    ("Important", "", "important"),
    ("Facts", "fact", "facts"),
    ("Events", "event", "events"),
    ("Observations", "observation", "observations"),
    ("Recent", "", "recent"),
)
"""Heading, type of memory (empty: any), and the setting that says how many."""
AS_CONFIGURED: Final = BulletinSection()


class BulletinInput(NamedTuple):
    """What a bulletin is made of."""

    recent: Sequence[MemoryView] = ()
    """The newest memories first."""
    important: Sequence[MemoryView] = ()
    """The most important first."""
    tasks: Sequence[BoardTask] = ()
    goals: Sequence[BoardGoal] = ()
    cycles: CycleLedger | None = None
    """How the agent keeps up by itself; None: it doesn't."""


class BulletinText(msgspec.Struct, frozen=True, kw_only=True):
    """A bulletin in words."""

    status: str
    text: str
    """With the status at most 500 words."""
    short: str
    is_empty: bool
    material: str
    """What a model is given to put into words; empty: there is nothing."""
    digest: str
    """Of what of it a text is made of; empty: of nothing."""

    @property
    def whole(self) -> str:
        return "\n".join(part for part in (self.status, self.text) if part)


def report(
    known: BulletinInput, now: datetime, shown: BulletinSection = AS_CONFIGURED
) -> BulletinText:
    """Write a bulletin.

    Args:
        shown: how much of each kind.

    >>> from datetime import UTC
    >>> report(BulletinInput(), datetime(2026, 11, 20, tzinfo=UTC)).text
    'Nothing is known yet: there are no memories, tasks or goals.'
    """
    work = [*_tasks(known.tasks), *_outside(known.recent, now)]
    lines = _known(known, shown, LINE_LENGTH_MAX)
    status = [*work, *_keeping_up(known.cycles)]
    if not work and not lines:
        return BulletinText(
            status="\n".join(status), text=EMPTY, short=EMPTY, is_empty=True, material="", digest=""
        )
    room = WORDS_MAX - _count(status)
    material = _known(known, shown, MATERIAL_LINE_LENGTH_MAX)
    return BulletinText(
        status="\n".join(status),
        text=_within(lines, room),
        short=_within([*status, *lines], SHORT_WORDS_MAX),
        is_empty=False,
        material=_within(material, MATERIAL_WORDS_MAX),
        digest=_digest(material),
    )


def _digest(material: list[str]) -> str:
    if not material:
        return ""
    told = "\n".join(sorted(line for line in material if line.startswith("- ")))
    return hashlib.sha256(told.encode()).hexdigest()


def _known(known: BulletinInput, shown: BulletinSection, length: int) -> list[str]:
    return [*_goals(known.goals, shown.goals, length), *_memories(known, shown, length)]


# ---------------------------------------------------------------- how things stand


def _tasks(tasks: Sequence[BoardTask]) -> list[str]:
    lines = []
    for status in OPEN:
        there = [one for one in tasks if one.status == status and not one.is_removed]
        if not there:
            continue
        titles = [one.title for one in there if not one.is_tainted]
        lines.append(f"- {status}, {len(there)}: {_named(titles, len(there), 'task_list')}")
    return ["Tasks:", *lines] if lines else []


def _named(titles: list[str], count: int, tool: str) -> str:
    named = [_line(one, LINE_LENGTH_MAX) for one in titles[:NAMED_MAX]]
    hidden = count - len(named)
    if hidden:
        named.append(f"{hidden} more, which `{tool}` has")
    return "; ".join(named)


def _outside(recent: Iterable[MemoryView], now: datetime) -> list[str]:
    """Count what came from outside lately: never its words."""
    lately = [
        one
        for one in recent
        if one.is_tainted and one.created_at >= now - OUTSIDE_FOR and not _is_report(one)
    ]
    if not lately:
        return []
    found = Counter(sources.named(one.source) or "other sources" for one in lately)
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{count} {source}" for source, count in ordered[:NAMED_MAX]]
    left = sum(count for _, count in ordered[NAMED_MAX:])
    if left:
        named.append(count_of(left, "other"))
    since = min(one.created_at for one in lately)
    return [
        f"From outside since {since:%Y-%m-%d %H:%M} UTC, by number alone:",
        f"- {found.total()} memories: {', '.join(named)}. `list_memory` with a source shows them",
    ]


def _keeping_up(cycles: CycleLedger | None) -> list[str]:
    """Tell how the agent keeps up by itself: no words of its reports."""
    if cycles is None or cycles.ended_at is None:
        return []
    told = cycles.report
    found = "" if told is None else f", found {len(told.found)}, put off {len(told.deferred)}"
    again = f"; {len(cycles.rechecks)} to be looked at again" if cycles.rechecks else ""
    return ["Keeping up by itself:", f"- last {cycles.ended_at:%Y-%m-%d %H:%M} UTC{found}{again}"]


# ---------------------------------------------------------------- what is known


def _goals(goals: Sequence[BoardGoal], most: int, length: int) -> list[str]:
    active = [one for one in goals if one.status == "active"]
    if not active:
        return []
    plain = sorted((one for one in active if not one.is_tainted), key=lambda one: -one.priority)
    lines = [f"- {_line(one.description, length)}" for one in plain[:most]]
    hidden = len(active) - len(lines)
    if hidden:
        lines.append(f"- {hidden} more: `goal_list` has them")
    return ["Goals:", *lines]


def _memories(known: BulletinInput, shown: BulletinSection, length: int) -> list[str]:
    recent, important = _trusted(known.recent), _trusted(known.important)
    lines: list[str] = []
    told: set[str] = set()
    for heading, kind, setting in SECTIONS:
        among = recent if heading == "Recent" else important
        fitting = [one for one in among if kind in ("", one.type) and one.id not in told]
        chosen = fitting[: getattr(shown, setting)]
        told.update(one.id for one in chosen)
        if chosen:
            lines += [f"{heading}:", *(_remembered(one, length) for one in chosen)]
    return lines


def _trusted(memories: Iterable[MemoryView]) -> list[MemoryView]:
    return [one for one in memories if not one.is_tainted and not _is_report(one)]


def _is_report(memory: MemoryView) -> bool:
    """Whether it is what a cycle said of itself: of those a bulletin isn't made."""
    return memory.source == OWN_SOURCE and memory.type == "summary"


def _remembered(memory: MemoryView, length: int) -> str:
    at = memory.occurred_at or memory.created_at
    return f"- {at.date().isoformat()}: {_line(memory.content, length)}"


def _line(text: str, length: int) -> str:
    """Put a text on one line, so that it can't pose as a section."""
    joined = " ".join(text.split())
    return joined if len(joined) <= length else joined[: length - 1] + "…"


def _count(lines: Iterable[str]) -> int:
    return sum(len(line.split()) for line in lines)


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
