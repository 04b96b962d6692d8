"""cron and cron_list: the person's rows of the timetable, by talking (SPEC J-2, LOOPS L-1).

A row runs for good and with the person's order behind it. So the core lets only their own words
make, change or run one (`Tool.is_personal`); what there is may be looked at by any loop. It's what
`vigil cron` does, in the same way. A call that comes again finds what it made by its id.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from vigil.board.kept import ROWS, BoundReached, KeptBoard, Revision
from vigil.board.rows import PersonsRows
from vigil.contracts import Change, TimetableRow
from vigil.contracts.board import ChosenSchedule, CronWork, is_watch_only, watch_of
from vigil.contracts.board.row import OTHER_NAMES
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.facts.followed import followed_by
from vigil.facts.hooked import hooks_for
from vigil.facts.shape import named
from vigil.facts.shown import wanted_of
from vigil.facts.wanted import of_work, read_wanted, written
from vigil.settings import own
from vigil.subjects import Scope, token_of
from vigil.teams import TEAM
from vigil.timetable.chain import followed_name
from vigil.timetable.edit import changed, schedule_of
from vigil.timetable.ledger import begun, is_busy
from vigil.timetable.log import Placed, SlotLog
from vigil.timetable.schedule import described, words_of
from vigil.watching.watched import wanted_watch
from vigil.watching.watched import words_of as words_of_watch

from ..tools.declaration import ToolContext, tool
from ..tools.source import Call, ToolOutput
from .cron_arguments import AIMS, Cron, CronList

TRIES_MAX: Final = 3
"""Somebody else may change a row at the same time."""
ASKED_WITHIN: Final = timedelta(days=1)
"""A call is never older."""
SHOWN_LENGTH_MAX: Final = 200
REPEAT: Final = "Repeat to the person when it is due, with these times and the zone."


# ---------------------------------------------------------------- cron_list


@tool(risk="read", timeout_s=10.0, profiles=("channel",), is_idempotent=True)
async def cron_list(given: CronList, call: Call, context: ToolContext) -> ToolOutput:
    """Show the rows. Raises: Unavailable."""
    rows = [one.entity for one in await _there(call, context)]
    lines = [await _line(row, rows, context) for row in sorted(rows, key=lambda one: one.name)]
    return ToolOutput(content="\n".join(lines) or "None.")


async def _line(row: TimetableRow, rows: list[TimetableRow], context: ToolContext) -> str:
    followed = followed_name(row, rows)
    when = f"{words_of(row.schedule, followed)}; paused"
    if row.is_enabled:
        whose = Scope(row.agent, row.owner)
        is_chosen = isinstance(row.schedule, ChosenSchedule)
        last = await SlotLog(context.bus).last(whose, row.id) if is_chosen else Placed()
        when = described(row, context.clock.now(), 1, ledger=last.ledger, followed=followed)
    prompt = " ".join(row.work.prompt.split()) if isinstance(row.work, CronWork) else ""
    if len(prompt) > SHOWN_LENGTH_MAX:
        prompt = f"{prompt[:SHOWN_LENGTH_MAX]}…"
    watch = watch_of(row.work)
    watched = f"; watches {words_of_watch(watch)}" if watch is not None else ""
    return f"{row.name} ({row.id[:8]}): {when}{watched}{_facts_of(row)}. {prompt}"


def _facts_of(row: TimetableRow) -> str:
    named = ", ".join(f"{name} {text}" for name, text in written(wanted_of(row)).items())
    return f"; tells {named}" if named else ""


# ---------------------------------------------------------------- cron


@tool(
    risk="write",
    timeout_s=10.0,
    profiles=("channel",),
    is_idempotent=True,
    is_personal=True,
    aims=AIMS,
    other_names=OTHER_NAMES | {"id": "row"},
)
async def cron(given: Cron, call: Call, context: ToolContext) -> ToolOutput:
    """Do it; what can't be done is told by field and reason.

    Raises:
        InvalidInput: a value can't be used.
        Unavailable: it surely did not run.
    """
    try:
        if given.action == "create":
            return ToolOutput(content=await _create(given, call, context))
        for _ in range(TRIES_MAX):
            try:
                return ToolOutput(content=await _edit(given, call, context))
            except WrongLastSequence:
                continue
    except BoundReached as error:
        return ToolOutput(content=f"Not made: {error}.", is_error=True)
    raise Unavailable("the job is being changed elsewhere")


def _rows(context: ToolContext) -> PersonsRows:
    return PersonsRows(context.bus, context.config, context.skills)


async def _there(call: Call, context: ToolContext) -> list[Revision[TimetableRow]]:
    """Return the rows that aren't removed, and the one that this very call changed."""
    rows = await KeptBoard(context.bus, ROWS).all(call.key.scope)
    rows = [one for one in rows if not one.entity.is_of_system]
    return [one for one in rows if not one.entity.is_removed or one.change.cause == call.id]


async def _create(given: Cron, call: Call, context: ToolContext) -> str:
    """Raises: InvalidInput, BoundReached."""
    now, key = context.clock.now(), call.key
    name = given.name or given.row  # one of the two: a new job's id is the name that it gets
    if not name:
        raise InvalidInput("name", "must be given")
    if given.row is not None and name != given.row:
        raise InvalidInput("row", "names a job that there is; a new one has a name")
    own_zone, wanted = await _zone(key.user, context), await _wanted(given, call, context)
    zone = given.zone or own_zone
    new = TimetableRow(
        id=token_of("row", str(key), call.id),
        owner=key.user,
        agent=key.agent,
        name=name,
        work=CronWork(prompt=given.prompt or ""),
        schedule=schedule_of(wanted, zone, now),
        zone=zone,
        has_owners_zone=not given.zone and key.user != TEAM,
        made_by="agent",
        session_key=str(key),
        is_ordered=True,
        made_at=now,
        scheduled_at=now,
    )
    row = replace(changed(new, wanted, now, own_zone), scheduled_at=now)
    made = await _rows(context).make(row, Change(by=key.agent, cause=call.id), now)
    return await _said("Made", made.entity, call, context)


async def _edit(given: Cron, call: Call, context: ToolContext) -> str:
    """Raises: InvalidInput, WrongLastSequence."""
    now, board = context.clock.now(), KeptBoard(context.bus, ROWS)
    found = await _find(given.row, call, context)
    if given.action == "run":
        return await _run(found.entity, call, context, now)
    if any(one.change.cause == call.id for one in await board.history(found)):
        return "It was done, and may have been changed since."
    own_zone = await _zone(found.entity.owner, context)
    row = _after(given, await _wanted(given, call, context), found.entity, now, own_zone)
    change = Change(by=call.key.agent, cause=call.id)
    made = await _rows(context).change(found, row, change, now)
    if made is found:
        return "It is so already."
    return await _said("Changed", made.entity, call, context)


def _after(
    given: Cron, wanted: dict[str, Any], row: TimetableRow, now: datetime, own_zone: str
) -> TimetableRow:
    """Return what a row is to be. Raises: InvalidInput."""
    if given.action == "update":
        if all(value is None for value in wanted.values()):
            raise InvalidInput("arguments", "say what is to be changed")
        return changed(row, wanted, now, own_zone)
    if any(value is not None for value in wanted.values()):
        raise InvalidInput("action", f"{given.action} changes nothing else; use update for that")
    if given.action == "remove":
        return replace(row, is_removed=True)
    return changed(row, {"is_enabled": given.action == "resume"}, now, own_zone)


async def _run(row: TimetableRow, call: Call, context: ToolContext, now: datetime) -> str:
    """Order a run beside the schedule, once for each call. Raises: WrongLastSequence."""
    if is_watch_only(row.work):
        raise InvalidInput("row", "only looks, when it is due: nothing is run for it")
    log, entry = SlotLog(context.bus), begun(row, now, call.id)
    async for before in log.newest(row_scope := call.key.scope, row.id):
        if before.session == entry.session:
            return f"{row.name!r} runs now; its result comes by itself."
        if before.at < now - ASKED_WITHIN:
            break
    last = await log.last(row_scope, row.id)
    if is_busy(row, last.ledger):
        raise InvalidInput("row", "a run of it is still going on")
    await log.append(row_scope, last, entry)
    return f"{row.name!r} runs now; its result comes by itself."


async def _find(name: str | None, call: Call, context: ToolContext) -> Revision[TimetableRow]:
    """Return a row by its name, its id, or how that begins.

    Raises:
        InvalidInput: there is none, or more than one.
    """
    if not name:
        raise InvalidInput("row", "must be the name or id of a job")
    there = await _there(call, context)
    done = [one for one in there if one.change.cause == call.id]
    return done[0] if len(done) == 1 else _named("row", name, there)


def _named(field: str, name: str, there: list[Revision[TimetableRow]]) -> Revision[TimetableRow]:
    """Return the only row of that name, or whose id begins so. Raises: InvalidInput."""
    found = [one for one in there if one.entity.name == name]
    found = found or [one for one in there if one.entity.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(repr(one.entity.name) for one in islice(there, 20)) or "none"
    raise InvalidInput(field, f"{name!r} is no job; there is: {names}")


async def _wanted(given: Cron, call: Call, context: ToolContext) -> dict[str, Any]:
    """Return what is to be changed of a row; None: it stays. Raises: InvalidInput."""
    names = ("action", "row", "watch_pointer", "watch_arguments")
    wanted = {name: getattr(given, name) for name in Cron.__struct_fields__ if name not in names}
    if given.watch is not None:
        wanted["watch"] = wanted_watch(given.watch, given.watch_pointer, given.watch_arguments)
    elif given.watch_pointer is not None or given.watch_arguments is not None:
        raise InvalidInput("watch", "must say what, if watch_pointer or watch_arguments do")
    if given.facts is not None:
        wanted |= of_work(read_wanted(named(given.facts)))
    if given.after is not None and given.after_on == "change":
        rows = [one.entity for one in await _there(call, context)]
        wanted |= followed_by(given.after, rows, hooks_for(context.config.hooks, call.key.scope))
    elif given.after is not None:
        followed = _named("after", given.after, await _there(call, context))
        wanted["after"] = followed.entity.id
    return wanted


async def _zone(user: str, context: ToolContext) -> str:
    return (await own.standing(context.bus, user, context.config.person_of(user))).timezone


async def _said(what: str, row: TimetableRow, call: Call, context: ToolContext) -> str:
    followed = followed_name(row, [one.entity for one in await _there(call, context)])
    if row.is_removed:
        return f"Removed {row.name!r}; what runs of it goes on to its end."
    if not row.is_enabled:
        return f"{row.name!r} is paused: {words_of(row.schedule, followed)}."
    when = described(row, context.clock.now(), followed=followed)
    return f"{what} {row.name!r} ({row.id[:8]}): {when}{_facts_of(row)}. {REPEAT}"
