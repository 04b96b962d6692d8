"""Cycles: an agent keeps up with the world for a person, if anything is new (SPEC C-7)."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from vigil.contracts import SlotEntry, Start, TimetableRow
from vigil.contracts.board import AutonomyWork, CycleLedger, EverySchedule, OpenRun
from vigil.contracts.events import SessionLimits
from vigil.errors import WrongLastSequence
from vigil.facts.wanted import rules_of_wanted, shapes_of_wanted
from vigil.settings.config import Config
from vigil.subjects import Scope
from vigil.watching import interests
from vigil.watching.interests import Interest

from ...bulletins.store import BulletinStore
from .. import cycle, new_signals, system_rows
from ..check_outcome import CheckOutcome
from ..known import KnownRow
from ..new_signals import NewSignals
from ..row_kind import CheckContext, RowKind

FIRST_AFTER: Final = timedelta(seconds=90)
"""A person who just began is not to pay for a cycle before the first answers are there."""
TEMPLATE: Final = Path(__file__).resolve().parents[4] / "prompts" / "en" / "identity" / "ROLE.md"
"""What the role of a new agent says."""
BY_HAND: Final = "This cycle was asked for by hand."


def row_of(config: Config, whose: Scope, zone: str, now: datetime) -> TimetableRow:
    """Return the row by which an agent keeps up for a person."""
    interval_s = config.cortex.autonomy_interval_secs
    facts = interests.facts_of(config.agent_of(whose.agent).looks)
    return system_rows.made(
        whose,
        AutonomyWork(
            timeout_s=config.cortex.autonomy_timeout_s,
            facts=shapes_of_wanted(facts),
            news=rules_of_wanted(facts),
        ),
        EverySchedule(interval_s=interval_s),
        zone=zone,
        is_enabled=is_on(config, whose.agent),
        first_at=now + FIRST_AFTER,
        now=now,
    )


def is_on(config: Config, agent: str) -> bool:
    """Whether an agent keeps up by itself, as configured."""
    may = "off" not in (config.agent_of(agent).authority, config.autonomy.authority_max)
    return config.autonomy.enabled and config.cortex.autonomy_enabled and may


class CycleCheck(NamedTuple):
    """What a look came to."""

    signals: NewSignals
    interests: tuple[Interest, ...]


async def _check(
    context: CheckContext, known: KnownRow, _begun: SlotEntry, _now: datetime
) -> CycleCheck:
    found = await new_signals.read(context.bus, known.scope, known.read_seq)
    if not found.counts:
        known.checked_seq = found.through
    agent, cortex = known.scope.agent, context.config.cortex
    there = interests.interests_of(
        context.config.agent_of(agent).looks,
        every_s=cortex.autonomy_look_secs,
        has_role=has_role(context.agents / agent / TEMPLATE.name),
        role_every_s=cortex.autonomy_role_secs,
    )
    return CycleCheck(found, there)


def has_role(file: Path) -> bool:
    """Whether a person wrote what an agent is to look after; so it's taken, too, where the agents'
    files are out of reach."""
    try:
        return file.read_bytes() != TEMPLATE.read_bytes()
    except OSError:
        return True


def _decide(known: KnownRow, begun: SlotEntry, seen: object, now: datetime) -> CheckOutcome | None:
    if not isinstance(seen, CycleCheck):
        return None
    entry = cycle.decided(known.row, begun, known.ledger, seen.signals, now, seen.interests)
    return CheckOutcome(entry)


async def _prepare(context: CheckContext, known: KnownRow, run: OpenRun) -> CycleLedger:
    """See that there is a bulletin: a cycle is shown one from the first on (SPEC C-3); and return
    what those before it left."""
    bulletins = BulletinStore(context.bus)
    if await bulletins.find(known.scope) is None:
        shown = context.config.bulletin
        with contextlib.suppress(WrongLastSequence):  # its own row's look wrote it
            await bulletins.bring_up(
                known.scope, run.at, shown, keeps_text=True, stands=context.stands
            )
    return known.ledger.cycles or CycleLedger()


def start_of(row: TimetableRow, run: OpenRun, prepared: object, config: Config) -> Start:
    """Begin with what is new, and with what is to be kept up with."""
    cortex = config.cortex
    limits = SessionLimits(
        calls_max=cortex.autonomy_max_turns,
        children_max=cortex.autonomy_max_workers,
        tasks_need_approval=config.tasks.approval or cortex.autonomy_tasks_require_approval,
    )
    parts = (run.change or BY_HAND, interests.described(config.agent_of(row.agent).looks))
    prompt = "\n\n".join(part for part in parts if part)
    since = prepared.ended_at if isinstance(prepared, CycleLedger) else None
    return Start(prompt=prompt, allowance=config.sessions.fan_out_max, limits=limits, since=since)


KIND: Final = RowKind(
    work=AutonomyWork,
    row=row_of,
    start=start_of,
    check=_check,
    decide=_decide,
    must_prepare=lambda _row, _run: True,
    prepare=_prepare,
    quiet=(cycle.NOTHING_NEW, cycle.NOTHING_YET),
)
