"""Rows of the timetable as HTTP has them: what is asked for, and what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from vigil.board.kept import FACTS, ROWS, KeptBoard, Revision
from vigil.contracts import (
    Instant,
    TimetableRow,
)
from vigil.contracts.board import (
    AfterSchedule,
    ChainOn,
    ChosenSchedule,
    CronWork,
    Misfire,
    RowMaker,
    Schedule,
    Watched,
    kind_of,
)
from vigil.facts.shown import HOOK, shapes_of, wanted_of
from vigil.facts.wanted import FactsBody, of_work, read_wanted
from vigil.subjects import PartText, Scope
from vigil.teams import TEAM
from vigil.timetable import edit
from vigil.timetable.schedule import INSTANTS_SHOWN, upcoming, words_of

from ..http.wire import Answer, RequestBody
from ..insight.facts import FactView, views_of
from ..state.edge import Edge


class RowBody(
    RequestBody, frozen=True, kw_only=True, rename={"agent_id": "agentId", "user_id": "userId"}
):
    """A new row. Due by one of `cron`, `interval_s`, `at`, `after`, `on_fact` and `calendar`."""

    name: str
    """One line, of at most 100 characters."""
    prompt: str = ""
    """What is to be done, in at most 8,000 characters: who does it knows nothing else."""
    skill: str = ""
    """The name of a skill by which it is done; with one the prompt may be absent."""
    cron: str = ""
    """A cron expression of five fields, or six with seconds first; or `@daily` and its like."""
    interval_s: int | None = None
    soonest_s: int | None = None
    """With `interval_s`: its runs may choose when the next is, from so long after their end on."""
    latest_s: int | None = None
    """The same: and at most so long after."""
    at: str = ""
    """An instant, as `2026-12-01T08:00Z`, or a time on the clocks of `zone`: `2026-12-01T09:00`."""
    after: str = ""
    """The id of a row, of the same agent: due at each end of a run of that, with its result."""
    after_on: ChainOn | None = None
    """Which ends of its runs count; absent: `success`."""
    on_fact: str = ""
    """Due when a fact is another, if that is news: `SOURCE.FACT`, of a row or hook by its name, as
    `build.status` or `hook:build.status`; without `.FACT` when any of its facts is."""
    calendar: str = ""
    """Due before events of that calendar begin, and moved as they are."""
    event: str = ""
    """Of that the one with this id, or its first 8 digits; absent: each that has a time."""
    before_s: int | None = None
    """By so much; absent: as they begin."""
    zone: str = ""
    """IANA name; absent: the time zone of who makes it, whatever that becomes."""
    misfire: Misfire = "latest"
    """What becomes of what was missed: none, the `latest`, or `all` is run."""
    grace_s: int | None = None
    """How late the latest is still run; absent: half a period, 2 min to 2 h."""
    active_hours: str = ""
    """``HH:MM-HH:MM``: outside them nothing is run."""
    jitter_s: int = 0
    may_overlap: bool = False
    runs_once: bool = False
    is_stateful: bool = False
    target: str = ""
    """The conversation that is told the result, by its key, or a channel by its name; absent: the
    home."""
    timeout_s: int = 120
    model: str = ""
    """Who answers, as settings name models; absent: as with other jobs."""
    daily_tokens: int = 0
    """What all of it may take a day; absent: as configured."""
    watch: Watched | None = None
    """It is run only if that has changed, and is shown the difference."""
    facts: FactsBody = msgspec.field(default_factory=dict)
    """What its runs tell in a closed form: name -> shape, as `one_of[passing, failing]`, and behind
    it `at WHERE` if looks tell it, and `news RULE`; at most 8."""
    agent_id: PartText = "vigil"
    user_id: PartText | None = None
    """Absent: yours."""
    why: str = ""


class RowChange(RequestBody, frozen=True, kw_only=True):
    """What is to be changed; the rest stays as it is."""

    name: str | None = None
    prompt: str | None = None
    skill: str | None = None
    """Empty: none."""
    cron: str | None = None
    interval_s: int | None = None
    soonest_s: int | None = None
    latest_s: int | None = None
    at: str | None = None
    after: str | None = None
    after_on: ChainOn | None = None
    on_fact: str | None = None
    calendar: str | None = None
    event: str | None = None
    before_s: int | None = None
    zone: str | None = None
    """Empty: its owner's, whatever that becomes."""
    misfire: Misfire | None = None
    grace_s: int | None = None
    active_hours: str | None = None
    jitter_s: int | None = None
    may_overlap: bool | None = None
    runs_once: bool | None = None
    is_stateful: bool | None = None
    target: str | None = None
    """Empty: the home."""
    timeout_s: int | None = None
    model: str | None = None
    """Empty: as with other jobs."""
    daily_tokens: int | None = None
    """0: as configured."""
    watch: Watched | UnsetType | None = UNSET
    """null: nothing any more."""
    facts: FactsBody | None = None
    """All of them; empty: none."""
    is_enabled: bool | None = None
    """False: it is paused."""
    why: str = ""


class RowView(Answer, frozen=True, kw_only=True):
    """A row."""

    id: str
    owner: str
    agent_id: str
    kind: str
    """What it runs: a person's `cron` job, or what the system keeps up by itself."""
    name: str
    prompt: str
    skill: str
    schedule: Schedule
    when: str
    """The schedule, in words."""
    next_at: tuple[Instant, ...]
    """The next five instants, without jitter: of a row whose runs choose them the next one, of one
    that follows another none."""
    zone: str
    has_owners_zone: bool
    """Whether nobody named it: it moves with its owner."""
    misfire: Misfire
    grace_s: int | None
    active_hours: str
    jitter_s: int
    may_overlap: bool
    runs_once: bool
    is_stateful: bool
    target: str
    timeout_s: int
    model: str
    daily_tokens: int
    watch: Watched | None
    facts: tuple[FactView, ...]
    is_enabled: bool
    is_removed: bool
    made_by: RowMaker
    session_key: str
    made_at: Instant
    runs: int
    failures: int
    """Of its newest runs, one after the other."""
    running: int
    revision: int


class RowRevision(Answer, frozen=True, kw_only=True):
    """One state that a row was in, and who made it so."""

    revision: int
    at: Instant
    when: str
    is_enabled: bool
    is_removed: bool
    by: str
    why: str


class RowDetail(RowView, frozen=True, kw_only=True):
    """A row, and how it came to be as it is."""

    history: tuple[RowRevision, ...]
    """The oldest first; of more than 64 the newest."""


class RowListing(Answer, frozen=True, kw_only=True):
    """Rows, by name."""

    rows: tuple[RowView, ...]


# ---------------------------------------------------------------- made and changed


def row_of(
    wanted: RowBody,
    owner: str,
    id_: str,
    zone: str,
    now: datetime,
    followed: Mapping[str, str],
) -> TimetableRow:
    """Return a new row. Raises: InvalidInput: there is no such schedule.

    Args:
        followed: what `on_fact` says, as `facts.followed` reads it.
    """
    work = CronWork(
        prompt=wanted.prompt,
        skill=wanted.skill,
        is_stateful=wanted.is_stateful,
        target=wanted.target,
        timeout_s=wanted.timeout_s,
        model=wanted.model,
        daily_tokens=wanted.daily_tokens,
        watch=wanted.watch,
        **of_work(read_wanted(wanted.facts)),
    )
    return TimetableRow(
        id=id_,
        owner=owner,
        agent=wanted.agent_id,
        name=wanted.name,
        work=work,
        schedule=edit.schedule_of(asdict(wanted) | dict(followed), zone),
        misfire=wanted.misfire,
        grace_s=wanted.grace_s,
        active_hours=wanted.active_hours,
        zone=zone,
        has_owners_zone=not wanted.zone and owner != TEAM,
        jitter_s=wanted.jitter_s,
        may_overlap=wanted.may_overlap,
        runs_once=wanted.runs_once,
        is_ordered=True,
        made_at=now,
        scheduled_at=now,
    )


def changed(
    row: TimetableRow,
    wanted: RowChange,
    now: datetime,
    own_zone: str,
    followed: Mapping[str, str],
) -> TimetableRow:
    """Return the row as a person wants it. Raises: InvalidInput.

    Args:
        own_zone: its owner's.
        followed: as of `row_of`.
    """
    # Of most fields null says nothing; of `watch` it does, and to leave it out is to say nothing.
    absent: dict[str, Any] = {"watch": None} if wanted.watch is UNSET else {}
    removed: dict[str, Any] = {"watch": UNSET} if wanted.watch is None else {}
    facts = {} if wanted.facts is None else of_work(read_wanted(wanted.facts))
    given = asdict(wanted) | absent | removed | facts | dict(followed)
    return edit.changed(row, given, now, own_zone)


# ---------------------------------------------------------------- shown


async def _facts(edge: Edge, found: Revision[TimetableRow]) -> dict[str, Any]:
    row = found.entity
    last = await edge.slots.last(Scope(row.agent, row.owner), row.id)
    is_over = row.is_removed or not row.is_enabled or (row.runs_once and last.ledger.runs)
    count = 1 if isinstance(row.schedule, ChosenSchedule) else INSTANTS_SHOWN
    ahead = upcoming(row, edge.clock.now(), last.ledger)
    following = () if is_over else tuple(islice(ahead, count))
    same = {name: getattr(row, name) for name in _SAME}
    return {
        **same,
        **{name: getattr(row.work, name, default) for name, default in _OF_WORK.items()},
        "facts": await _known(edge, row),
        "agent_id": row.agent,
        "kind": kind_of(row.work),
        "when": words_of(row.schedule, await _followed(edge, row)),
        "next_at": following,
        "runs": last.ledger.runs,
        "failures": last.ledger.failures,
        "running": len(last.ledger.running),
        "revision": found.number,
    }


async def _known(edge: Edge, row: TimetableRow) -> tuple[FactView, ...]:
    """Return the facts that a row names, in its order."""
    shapes = shapes_of(row)
    if not shapes:
        return ()
    found = await KeptBoard(edge.bus, FACTS).find([Scope(row.agent, row.owner)], row.id)
    known = None if found is None else found.entity
    return views_of(edge, row.owner, wanted_of(row), known)


async def _followed(edge: Edge, row: TimetableRow) -> str:
    """Return the name of the row that one follows; empty: it follows none."""
    if not isinstance(row.schedule, AfterSchedule):
        return ""
    if row.schedule.hook:
        return f"{HOOK}{row.schedule.hook}"
    board = KeptBoard(edge.bus, ROWS)
    found = await board.find([Scope(row.agent, row.owner)], row.schedule.row)
    return "" if found is None else found.entity.name


_SAME: Final = tuple(
    name
    for name in TimetableRow.__struct_fields__
    if name not in ("agent", "work", "is_ordered", "scheduled_at")
)
_OF_WORK: Final = {
    name: getattr(CronWork(prompt=""), name)
    for name in CronWork.__struct_fields__
    if name not in ("looked", "news")
}
"""What a row does, and what is shown of one that does none of it."""


async def view_of(edge: Edge, found: Revision[TimetableRow]) -> RowView:
    """Return a row as it is now. Raises: Unavailable."""
    return RowView(**await _facts(edge, found))


async def detail_of(edge: Edge, found: Revision[TimetableRow]) -> RowDetail:
    """Return a row with its history."""
    history = [
        RowRevision(
            revision=one.number,
            at=one.at,
            when=words_of(one.entity.schedule, await _followed(edge, one.entity)),
            is_enabled=one.entity.is_enabled,
            is_removed=one.entity.is_removed,
            by=one.change.by,
            why=one.change.why,
        )
        for one in await KeptBoard(edge.bus, ROWS).history(found)
    ]
    return RowDetail(**await _facts(edge, found), history=tuple(history))
