"""From an entry of the timetable's ledger to the signal that it gives, if any. Pure.

Why a run failed may be a model's words, so that isn't copied: `subject` leads to the row, and the
session to what it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from ..contracts import SignalSource, SlotEntry, decode_slot
from ..contracts.board import SlotState, Work
from ..errors import InvalidInput
from ..minds import KIND as MIND
from ..registry import covering
from ..subjects import Scope
from ..timetable import cycles
from .draft import Signals

RUNS: Final[dict[SlotState, tuple[str, str]]] = {
    "running": ("cron.started", "A job of the timetable began"),
    "ran": ("cron.completed", "A job of the timetable ran"),
    "late": ("cron.completed", "A job of the timetable ran late"),
    "failed": ("cron.failed", "A job of the timetable failed"),
    "missed": ("cron.missed", "A job of the timetable was missed"),
}
CYCLES: Final[dict[SlotState, tuple[str, str]]] = {
    "running": ("autonomy.started", "The agent began a cycle"),
    "ran": ("autonomy.finished", "A cycle of the agent's ended"),
    "late": ("autonomy.finished", "A cycle of the agent's ended, late"),
    "failed": ("autonomy.finished", "A cycle of the agent's failed"),
    "skipped": ("autonomy.skipped", "There was nothing for a cycle to do"),
}
WORDS: Final[Mapping[str, Mapping[SlotState, tuple[str, str]]]] = covering(
    "signals of a kind of row",
    {
        "cron": RUNS,
        cycles.KIND: CYCLES,
        "bulletin": {},
        "maintenance": {},
        "mail": {},
        MIND: {},
    },
    (str(work.__struct_config__.tag) for work in get_args(Work)),
)
"""Kind of row -> what is told of its slots. Bulletins, looks of a mind and what maintenance writes
give signals of their own."""


def read(source: SignalSource, subject: str, data: bytes) -> tuple[Signals, SlotEntry]:
    """Decode an entry. Raises: InvalidInput, it can't be read or is another row's."""
    entry = decode_slot(data)
    _, agent, owner, row = subject.split(".")
    if entry.row != row:
        raise InvalidInput("subject", f"{subject!r} is not that of {entry.row}")
    return Signals(Scope.of(agent, owner), source, entry.session or None), entry


def emit(signals: Signals, entry: SlotEntry) -> None:
    """Tell what became of a slot."""
    kind, text = WORDS.get(cycles.kind_of(entry), RUNS).get(entry.state, ("", ""))
    if not kind:
        return
    report = entry.report
    if entry.state == "running" and entry.tries:
        text = f"{text} again, as no model had answered"
    signals.add(
        kind,
        entry.at,
        text,
        caused_by=None,
        subject=entry.row,
        state=entry.state,
        due_at=entry.due_at,
        count=entry.count if entry.count > 1 else None,
        is_by_hand=entry.is_by_hand or None,
        reason=entry.reason if entry.state in ("skipped", "missed") else None,
        found=len(report.found) if report is not None else None,
        deferred=len(report.deferred) if report is not None else None,
    )
