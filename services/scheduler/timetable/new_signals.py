"""What is new for an agent, counted from its signals (SPEC C-7, LOOPS L-3).

No model is asked, and no text of anybody's is read: signals are counted by kind. What cycles did
themselves isn't new to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from vigil.bus.bus import Bus, Message
from vigil.contracts import decode_signal
from vigil.errors import InvalidInput
from vigil.memory import sources
from vigil.subjects import Scope, signals_of

STREAM: Final = "SIGNALS"
KINDS: Final = (
    "approval.decided",
    "budget.exhausted",
    "cron.failed",
    "error.event",
    "error.model",
    "fact.changed",
    "job.completed",
    "job.failed",
    "memory.saved",
    "message.ambiguous",
    "message.failed",
    "task.completed",
    "task.failed",
    "task.ready",
    "task.shelved",
)
"""What a cycle is told of."""
FACT: Final = "fact.changed"
OWN: Final = ("_autonomy", "_mind")
"""Begin the threads of what the cortex does by itself."""
READ_MAX: Final = 5_000
"""Signals that one look reads; the rest is for the next one."""


class NewSignals(NamedTuple):
    """What there was since a place of SIGNALS."""

    through: int
    """All up to there was looked at."""
    counts: tuple[tuple[str, int], ...] = ()
    """By kind, and of memories by where they come from."""


async def read(
    bus: Bus,
    whose: Scope,
    since: int,
    kinds: Sequence[str] = KINDS,
    *,
    name: Callable[[Message], str] | None = None,
) -> NewSignals:
    """Count what is new, of all kinds in one pass: what is stored meanwhile is for the next look.

    Args:
        since: all up to there was told.
        name: says as what one counts, empty: not at all; None: as cycles count.

    Raises:
        Unavailable: the broker is away.
    """
    newest = await bus.get_last(STREAM, signals_of(whose.owner, agent=whose.agent))
    if newest is None or newest.seq <= since:
        return NewSignals(since)
    filters = [signals_of(whose.owner, agent=whose.agent, kind=kind) for kind in kinds]
    signals = await bus.read(STREAM, filters, since + 1, limit=READ_MAX)
    found = Counter(each for each in map(name or name_of, signals) if each)
    through = signals[-1].seq if signals else since
    if len(signals) < READ_MAX:
        through = max(through, newest.seq)
    return NewSignals(through, tuple(sorted(found.items())))


def name_of(message: Message) -> str:
    """Return as what a signal counts; empty: it is of our own making, or can't be read."""
    try:
        signal = decode_signal(message.data)
    except InvalidInput:
        return ""
    if message.subject.rpartition(".")[2].startswith(OWN):
        return ""
    source = signal.data.get("source", "")
    if source == sources.OWN:
        return ""
    if signal.kind == FACT:
        return signal.text  # values out of closed sets, and a name that the person gave
    named = sources.named(source)
    return f"{signal.kind} ({named})" if named else signal.kind
