"""Bulletins: what is known of a person, put into words when it changed (SPEC C-2, LOOPS L-3).

Whether anything changed is told by signals, so a quiet hour costs one look at their stream. What
rules can write is written at the look; a session is begun only if a model would be told something
new. Three sessions that failed, one after the other, are followed by a pause of half an hour, each
further one by one twice as long, up to six hours; what is known is listed until one succeeds.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec.structs import replace

from vigil.backoff import doubled
from vigil.bus.bus import Message
from vigil.contracts import SlotEntry, Start, TimetableRow
from vigil.contracts.board import (
    BulletinBasis,
    BulletinWork,
    EverySchedule,
    Ledger,
    OpenRun,
)
from vigil.settings.config import Config
from vigil.subjects import Scope
from vigil.timetable.cycles import FAILURES_MAX, PAUSE_MAX

from ...bulletins.store import BroughtUp, BulletinStore
from .. import new_signals, system_rows
from ..check_outcome import CheckOutcome, skipped
from ..known import KnownRow
from ..new_signals import NewSignals
from ..row_kind import CheckContext, RowKind

FIRST_AFTER: Final = timedelta(seconds=60)
"""Before the first cycle, which is shown it (SPEC C-3)."""
KINDS: Final = (
    "autonomy.finished",
    "goal.active",
    "goal.archived",
    "goal.completed",
    "goal.failed",
    "goal.paused",
    "memory.forgotten",
    "memory.merged",
    "memory.replaced",
    "memory.saved",
    "task.completed",
    "task.failed",
    "task.proposed",
    "task.ready",
    "task.shelved",
    "task.started",
)
"""Of what a bulletin is made of."""
PAUSE: Final = timedelta(minutes=30)
UNCHANGED: Final = "nothing changed that it is made of"
NOTHING_KNOWN: Final = "nothing is known yet that a model could put into words"
SAME_WORDS: Final = "only numbers changed, and those need no model"
NO_MODEL: Final = "what changed was listed without a model, as configured"
FAILING: Final = (
    "its texts failed, one after the other; it's listed, and one is tried at {at:%H:%M} UTC"
)


class BulletinCheck(NamedTuple):
    """What a look came to."""

    signals: NewSignals
    brought: BroughtUp | None = None
    """None: nothing is new, and nothing was read."""
    has_model: bool = True
    """Whether a model may be asked, as configured."""


def row_of(config: Config, whose: Scope, zone: str, now: datetime) -> TimetableRow:
    """Return the row by which a person's bulletin is kept up to date."""
    interval_s = config.cortex.bulletin_interval_secs
    return system_rows.made(
        whose,
        BulletinWork(),
        EverySchedule(interval_s=interval_s),
        zone=zone,
        is_enabled=True,
        first_at=now + FIRST_AFTER,
        now=now,
        grace_s=interval_s,  # and at each start (SPEC C-2): whatever was missed, it's looked
    )


async def _check(
    context: CheckContext, known: KnownRow, _begun: SlotEntry, now: datetime
) -> object:
    since = known.read_seq
    found = await new_signals.read(context.bus, known.scope, since, KINDS, name=_kind_of)
    if since and not found.counts:
        known.checked_seq = found.through
        return BulletinCheck(found)
    is_failing = known.ledger.failures >= FAILURES_MAX
    brought = await _bring_up(context, known, now, keeps_text=not is_failing)
    return BulletinCheck(found, brought, context.config.cortex.bulletin_synthesis)


def _kind_of(message: Message) -> str:
    return message.subject.split(".", 3)[3].rpartition(".")[0]


async def _bring_up(
    context: CheckContext, known: KnownRow, now: datetime, *, keeps_text: bool = True
) -> BroughtUp:
    config = context.config
    keeps_text = keeps_text and config.cortex.bulletin_synthesis
    bulletins = BulletinStore(context.bus)
    return await bulletins.bring_up(
        known.scope, now, config.bulletin, keeps_text=keeps_text, stands=context.stands
    )


def _decide(known: KnownRow, begun: SlotEntry, seen: object, now: datetime) -> CheckOutcome | None:
    if not isinstance(seen, BulletinCheck):
        return None
    through, until = seen.signals.through, paused_until(known.ledger)
    why = _why_none(seen)
    if why:
        return CheckOutcome(skipped(begun, why, 0 if why == UNCHANGED else through))
    if until is not None and now < until:
        return CheckOutcome(skipped(begun, FAILING.format(at=until)))
    return CheckOutcome(replace(begun, told_seq=through), prepared=seen.brought)


def _why_none(seen: BulletinCheck) -> str:
    """Return why no model is needed; empty: one is."""
    if seen.brought is None:
        return UNCHANGED
    if not seen.brought.said.material:
        return NOTHING_KNOWN
    if seen.brought.is_worded:
        return SAME_WORDS
    return "" if seen.has_model else NO_MODEL


def paused_until(ledger: Ledger) -> datetime | None:
    """Return until when no text is made, since too many failed; None: one may be."""
    failed_at = None if ledger.cycles is None else ledger.cycles.failed_at
    if ledger.failures < FAILURES_MAX or failed_at is None:
        return None
    until: datetime = failed_at + doubled(PAUSE, PAUSE_MAX, ledger.failures - FAILURES_MAX + 1)
    return until


async def _prepare(context: CheckContext, known: KnownRow, run: OpenRun) -> BroughtUp:
    return await _bring_up(context, known, run.at)


def start_of(row: TimetableRow, _run: OpenRun, brought: BroughtUp, config: Config) -> Start:
    """Begin with what may be trusted of what is known, and nothing else (LOOPS L-18)."""
    basis = BulletinBasis(
        digest=brought.said.digest,
        revision=brought.current.number,
        read_at=brought.read_at,
        words_max=config.cortex.bulletin_max_words,
    )
    return Start(prompt=brought.said.material or brought.said.whole, bulletin=basis)


KIND: Final = RowKind(
    work=BulletinWork,
    row=row_of,
    start=start_of,
    check=_check,
    decide=_decide,
    must_prepare=lambda _row, _run: True,
    prepare=_prepare,
    quiet=(UNCHANGED,),
)
