"""Rows of the timetable: what recurs (LOOPS L-1, SPEC J-2). Pure.

Their ledger is kept beside them, and has its own ways in: to run one at once, and what became of
each time. What reckons with schedules takes 20 ms to load, so it's imported where it's used: every
command loads this module.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from ...contracts import Instant, TimetableRow
from ...contracts.board import (
    ChainOn,
    ChosenSchedule,
    CronWork,
    Ledger,
    Misfire,
    RowMaker,
    Schedule,
    SourceFacts,
    Watched,
    kind_of,
)
from ...contracts.board.row import OTHER_NAMES
from ...facts.shown import wanted_of
from ...facts.views import FactView, views_of
from ...facts.wanted import FactsBody, of_work, read_wanted
from ...fields.bodies import Answer, MakingBody, RequestBody
from ...subjects import PartText, Scope
from ...teams import TEAM
from ...timetable import bounds
from ..kind import Revision
from ..outside import (
    BoardKind,
    ChangeOperation,
    EndOperation,
    ListOperation,
    MakeOperation,
    Occasion,
)
from ..recorded import ROWS
from ..row_commands import COMMANDS

# ---------------------------------------------------------------- what comes in and goes out


class RowBody(MakingBody, frozen=True, kw_only=True):
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
    is_enabled: bool = True
    """False: it is paused from the start."""
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


# ---------------------------------------------------------------- what is done


class RowState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a row elsewhere: `Occasion.beside` has it of each that is shown."""

    ledger: Ledger = Ledger()
    facts: SourceFacts | None = None
    zone: str = "UTC"
    """Its owner's."""
    followed: tuple[TimetableRow, ...] = ()
    """The rows that it follows, or followed, as far as they are there."""


def _facts(found: Revision[TimetableRow], occasion: Occasion) -> dict[str, Any]:
    from ...timetable.schedule import INSTANTS_SHOWN, upcoming_runs

    row, state = found.entity, occasion.beside[found.entity.id]
    ledger = state.ledger
    is_over = row.is_removed or not row.is_enabled or (row.runs_once and ledger.runs)
    count = 1 if isinstance(row.schedule, ChosenSchedule) else INSTANTS_SHOWN
    ahead = upcoming_runs(row, occasion.now, ledger)
    return {
        **{name: getattr(row.work, name, default) for name, default in _OF_WORK.items()},
        **_state(row, occasion),
        "facts": views_of(wanted_of(row), state.facts, state.zone, occasion.now),
        "kind": kind_of(row.work),
        "next_at": () if is_over else tuple(islice(ahead, count)),
        "runs": ledger.runs,
        "failures": ledger.failures,
        "running": len(ledger.running),
    }


_OF_WORK: Final = {
    name: getattr(CronWork(prompt=""), name)
    for name in CronWork.__struct_fields__
    if name not in ("looked", "news", "facts")
}
"""What a row does, and what is shown of one that does none of it."""


def _state(row: TimetableRow, occasion: Occasion) -> dict[str, Any]:
    from ...timetable.chain import followed_name
    from ...timetable.schedule import words_of

    followed = followed_name(row, occasion.beside[row.id].followed)
    return {"when": words_of(row.schedule, followed)}


_CARRIED: Final = tuple(
    name for name in RowBody.__struct_fields__ if name in TimetableRow.__struct_fields__
)
"""What a row has as it is asked for."""


def _made(wanted: RowBody, whose: Scope, id_: str, occasion: Occasion) -> TimetableRow:
    from ...timetable.edit import schedule_of

    given = _given(wanted, whose, occasion)
    zone, now = wanted.zone or occasion.zone, occasion.now
    of_work = {name: given[name] for name in CronWork.__struct_fields__ if name in given}
    return TimetableRow(
        **{name: given[name] for name in _CARRIED if name != "zone"},
        id=id_,
        owner=whose.owner,
        agent=whose.agent,
        work=CronWork(**of_work),
        schedule=schedule_of(given, zone, now),
        zone=zone,
        has_owners_zone=not wanted.zone and whose.owner != TEAM,
        is_ordered=True,
        made_at=now,
        scheduled_at=now,
    )


def _changed(row: TimetableRow, wanted: RowChange, occasion: Occasion) -> TimetableRow:
    from ...timetable.edit import changed

    given = _given(wanted, Scope(row.agent, row.owner), occasion)
    # Of most fields null says nothing; of `watch` it does, and to leave it out is to say nothing.
    if wanted.watch is UNSET or wanted.watch is None:
        given["watch"] = None if wanted.watch is UNSET else UNSET
    return changed(row, given, occasion.now, occasion.zone)


def _given(wanted: RowBody | RowChange, whose: Scope, occasion: Occasion) -> dict[str, Any]:
    """Return what is said of a row, by the fields of row, work and schedule. Raises: InvalidInput.

    Args:
        occasion: its `others` are the owner's rows, if it names one whose facts it follows.
    """
    from ...facts.followed import followed_by
    from ...facts.hooked import hooks_for

    given = asdict(wanted)
    if wanted.facts is not None:
        given |= of_work(read_wanted(wanted.facts))
    if wanted.on_fact:
        hooks = hooks_for(occasion.config.hooks, whose)
        given |= followed_by(wanted.on_fact, occasion.others, hooks)
    return given


KIND: Final = BoardKind(
    kept=ROWS,
    called="a row of the timetable",
    plural="rows",
    own_path="/api/cron",
    view=RowView,
    detail=RowDetail,
    state=RowRevision,
    facts=_facts,
    state_facts=_state,
    lists=ListOperation(
        text="List the rows of the timetable that aren't removed.",
        answer=RowListing,
        by="all",
        choices=bool,
        default=False,
        said="Those that the system keeps up, too",
        shows=lambda row, is_all, _: not row.is_removed and (is_all or not row.is_of_system),
        rank=lambda found, _: (found.entity.owner, found.entity.name),
        limit=None,
    ),
    show_text="Show a row with its history; its ETag is its revision.",
    makes=MakeOperation(
        text="Make a row; 422 beyond 100.",
        body=RowBody,
        make=_made,
        other_names=OTHER_NAMES | {"id": "name"},
    ),
    changes=ChangeOperation(
        text="Change, pause or resume a row; 412 if it was changed since it was read.",
        body=RowChange,
        change=_changed,
        is_end=lambda wanted: wanted == RowChange(is_enabled=False, why=wanted.why),
        other_names=OTHER_NAMES,
    ),
    ends=EndOperation(
        name="remove_row",
        text="Remove a row; what runs of it goes on to its end.",
        end=lambda row, _: replace(row, is_removed=True),
        why="removed",
    ),
    limits={RowBody: bounds.FORM, RowChange: bounds.FORM},
    together={RowBody: bounds.TOGETHER},
    examples={
        RowBody: {
            "every weekday": {
                "name": "briefing",
                "prompt": "What is new in the tracker since yesterday?",
                "cron": "0 9 * * 1-5",
                "zone": "Europe/Berlin",
                "is_stateful": True,
            },
            "every hour": {"name": "the disk", "prompt": "Is it filling up?", "interval_s": 3600},
        },
        RowChange: {
            "another time": {"cron": "30 8 * * 1-5"},
            "pause it": {"is_enabled": False, "why": "holidays"},
        },
    },
    commands=COMMANDS,
    action="gateway.cron",
)
