"""`cron`: what an agent does again and again, and what became of each time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.contracts.board import (
    ChainOn,
    SlotState,
)
from vigil.sdk.client import Client
from vigil.texts.exact import exact
from vigil.zones.database import zone_named

from .. import exits, options, output, prefixes, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from . import links
from .arguments import (
    After,
    At,
    Before,
    Cron,
    Every,
    Facts,
    Hours,
    Id,
    Latest,
    Model,
    OfCalendar,
    OfEvent,
    On,
    OnFact,
    OnMisfire,
    Pointer,
    Prompt,
    Skill,
    Soonest,
    Target,
    Timeout,
    Tokens,
    ToolArguments,
    Watch,
    Why,
    Zone,
    chosen,
    facts_of,
    fields_of,
    of_events,
    pinned,
)
from .facts import OF_SOURCE
from .slots import SLOTS
from .watch import watch_fields, watched

NAME_LENGTH_MAX: Final = 40

app = CommandLine(
    cls=ListedGroup,
    help="What an agent does again and again: list, show, add, edit, pause, resume, run, remove, "
    "history, doctor, export, link, links, unlink. Default: list.",
)


def _state(one: Mapping[str, Any]) -> str:
    """Say what a row is at.

    >>> _state({"is_removed": False, "is_enabled": True, "running": 1, "failures": 0})
    'running'
    """
    if one["is_removed"]:
        return "removed"
    if not one["is_enabled"]:
        return "paused"
    if one["running"]:
        return "running"
    return f"failed {one['failures']} times" if one["failures"] else "on"


def _next(one: Mapping[str, Any]) -> str:
    """Say when a row is due next, on the clocks of its zone.

    >>> _next({"zone": "Europe/Berlin", "next_at": ["2026-11-24T08:00:00Z"]})
    'Tue 2026-11-24 09:00:00 (Europe/Berlin)'
    """
    zone = zone_named(one["zone"])
    found = [datetime.fromisoformat(at).astimezone(zone) for at in one["next_at"]]
    days = ", ".join(f"{at:%a %Y-%m-%d %H:%M:%S}" for at in found)
    return f"{days} ({one['zone']})" if days else ""


COLUMNS: Final = (
    Column("ID", lambda one: one["id"][:8]),
    Column("NAME", lambda one: tables.short(one["name"], NAME_LENGTH_MAX)),
    Column("STATE", _state),
    Column("WHEN", "when"),
    Column("NEXT", lambda one: next(iter(one["next_at"]), None), is_instant=True),
)
FIELDS: Final = (
    Column("name", "name"),
    Column("id", "id"),
    Column("owner", "owner"),
    Column("agent", "agent_id"),
    Column("state", _state),
    Column("when", "when"),
    Column("next", _next),
    Column("what was missed", "misfire"),
    Column("hours", "active_hours"),
    Column("told to", lambda one: one["target"] or "home"),
    Column("remembers", lambda one: "yes" if one["is_stateful"] else "no"),
    Column("watches", watched),
    Column("timeout", lambda one: f"{one['timeout_s']} s"),
    Column("skill", lambda one: one["skill"] or "none"),
    Column("model", lambda one: one["model"] or "as others"),
    Column("tokens a day", lambda one: one["daily_tokens"] or "as configured"),
    Column("runs", "runs"),
    Column("made", "made_at", is_instant=True),
    Column("made by", lambda one: f"{one['made_by']} {one['session_key']}".strip()),
    Column("revision", "revision"),
)
FINDINGS: Final = (
    Column("ID", lambda one: one["row"][:8]),
    Column("NAME", lambda one: tables.short(one["name"], NAME_LENGTH_MAX)),
    Column("WHAT", "what"),
    Column("TEXT", "text"),
)
HISTORY: Final = tables.history(
    Column("WHEN", "when"),
    Column("ON", lambda one: "no" if one["is_removed"] or not one["is_enabled"] else "yes"),
)


@app.command("list")
def list_(
    all_: Annotated[
        bool, typer.Option("--all", help="Those that the system keeps up, too.")
    ] = False,
) -> Result:
    """List the rows of your timetable, and when each is due next."""
    found = options.client().cron_rows(all_=all_)
    return tables.listing("rows", found, COLUMNS, empty="Nothing recurs.")


@app.command()
def show(id_: Id) -> Result:
    """Show one: what it says, when it is due, and who changed it."""
    found = _find(options.client(), id_)
    return Result(found, partial(_show, found))


def _show(found: dict[str, Any]) -> None:
    tables.fields(FIELDS, found)
    if found["facts"]:
        tables.table(OF_SOURCE, found["facts"])
        output.data("")
    output.data("prompt")
    output.data(exact(found["prompt"], indent=2))
    output.data("")
    tables.table(HISTORY, found["history"])


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What you call it.")],
    prompt: Annotated[str, typer.Argument(help="What to do, each time.")] = "",
    cron: Cron = None,
    every: Every = None,
    soonest: Soonest = None,
    latest: Latest = None,
    at: At = None,
    after: After = None,
    on: On = None,
    on_fact: OnFact = None,
    before: Before = None,
    calendar: OfCalendar = None,
    event: OfEvent = None,
    skill: Skill = None,
    zone: Zone = None,
    misfire: OnMisfire = None,
    hours: Hours = None,
    target: Target = None,
    timeout: Timeout = None,
    model: Model = None,
    tokens: Tokens = None,
    watch: Watch = None,
    pointer: Pointer = None,
    arguments: ToolArguments = None,
    fact: Facts = None,
    stateful: Annotated[
        bool, typer.Option("--stateful", help="Each run knows what those before found.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="It is over with its first run.")] = False,
    agent: options.Agent = "vigil",
    why: Why = "",
) -> Result:
    """Have something done by --cron, --every, --at, --after another, --on-fact or --calendar."""
    fields = fields_of(cron, every, at, zone, misfire, hours, target, timeout)
    fields |= pinned(model, tokens) | chosen(soonest, latest) | _chained(after, on, on_fact)
    fields |= {} if skill is None else {"skill": skill}
    fields |= watch_fields(watch, pointer, arguments) | facts_of(fact)
    fields |= of_events(before, calendar, event)
    made = options.client().make_cron_row(
        name, prompt, agent=agent, is_stateful=stateful, runs_once=once, why=why, **fields
    )
    return tables.done(f"{_sentence(made)} Its id is {made['id'][:8]}.", made)


@app.command()
def edit(
    id_: Id,
    name: Annotated[str | None, typer.Option("--name", help="What you call it.")] = None,
    prompt: Prompt = None,
    cron: Cron = None,
    every: Every = None,
    soonest: Soonest = None,
    latest: Latest = None,
    at: At = None,
    after: After = None,
    on: On = None,
    on_fact: OnFact = None,
    before: Before = None,
    calendar: OfCalendar = None,
    event: OfEvent = None,
    skill: Skill = None,
    zone: Zone = None,
    misfire: OnMisfire = None,
    hours: Hours = None,
    target: Target = None,
    timeout: Timeout = None,
    model: Model = None,
    tokens: Tokens = None,
    watch: Watch = None,
    pointer: Pointer = None,
    arguments: ToolArguments = None,
    fact: Facts = None,
    why: Why = "",
) -> Result:
    """Change a row. A run that has begun doesn't notice."""
    fields = fields_of(cron, every, at, zone, misfire, hours, target, timeout)
    fields |= pinned(model, tokens) | chosen(soonest, latest) | _chained(after, on, on_fact)
    fields |= watch_fields(watch, pointer, arguments) | facts_of(fact)
    fields |= of_events(before, calendar, event)
    given = {"name": name, "prompt": prompt, "skill": skill}
    return _changed(id_, why, **fields, **{k: v for k, v in given.items() if v is not None})


@app.command()
def pause(id_: Id, why: Why = "") -> Result:
    """Pause a row: what comes due meanwhile is skipped."""
    return _changed(id_, why, is_enabled=False)


@app.command()
def resume(id_: Id, why: Why = "") -> Result:
    """Let a row that was paused go on."""
    return _changed(id_, why, is_enabled=True)


@app.command()
def run(id_: Id) -> Result:
    """Run a row now. What it is due for stays as it is."""
    client = options.client()
    found = _find(client, id_)
    begun = client.run_cron_row(found["id"])
    return tables.done(f"{found['name']!r} runs: {begun['session']}.", begun)


@app.command()
def doctor() -> Result:
    """Tell what is wrong: never run, late, failing, undecided, without an end. Then the exit code
    is 1."""
    found = options.client().cron_findings()
    listed = tables.listing("findings", found, FINDINGS, empty="All is well.")
    return listed._replace(end=typer.Exit(exits.FAILURE)) if found else listed


@app.command()
def export(
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="How far ahead.")] = 30,
) -> Result:
    """Write when rows are due as iCalendar: vigil cron export > jobs.ics"""
    text = options.client().cron_calendar(days=days)
    return Result({"calendar": text}, partial(output.data, text.rstrip("\r\n")))


for _command in (links.link, links.links, links.unlink):
    app.command()(_command)


@app.command()
def remove(id_: Id) -> Result:
    """Remove a row. A run that has begun goes on."""
    client = options.client()
    found = _find(client, id_)
    done = client.remove_cron_row(found["id"], revision=found["revision"])
    return tables.done(f"{done['name']!r} is removed.", done)


@app.command()
def history(
    id_: Annotated[
        str | None, typer.Argument(metavar="ID", help="Of a row, or its name. Default: all.")
    ] = None,
    state: Annotated[
        SlotState | None, typer.Option("--state", help="Only those, as `missed`.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500, help="At most so many.")] = 20,
) -> Result:
    """List what became of each time that something was due, the newest first."""
    client = options.client()
    row = None if id_ is None else _find(client, id_)["id"]
    found = client.slots(row=row, state=state, limit=limit)
    if state is None:  # the ledger has a beginning beside its end, for good
        newest = {(one["row"], one["due_at"]): one for one in reversed(found)}
        found = [one for one in found if newest[one["row"], one["due_at"]] is one]
    return tables.listing("slots", found, SLOTS, empty="Nothing was due yet.")


def _chained(after: str | None, on: ChainOn | None, on_fact: str | None) -> dict[str, Any]:
    """Return what is followed: a row by its id, a fact as it is named."""
    row = {} if after is None else {"after": _find(options.client(), after)["id"]}
    given = {"after_on": on, "on_fact": on_fact}
    return row | {name: value for name, value in given.items() if value is not None}


def _changed(id_: str, why: str, **changes: Any) -> Result:
    """Change a row as it was read."""
    client = options.client()
    found = _find(client, id_)
    done = client.change_cron_row(found["id"], revision=found["revision"], why=why, **changes)
    return tables.done(_sentence(done), done)


def _sentence(row: Mapping[str, Any]) -> str:
    """Repeat in words when a row is due."""
    following, is_following = _next(row), row["schedule"]["kind"] == "after"
    ahead = f"; next: {following}" if following else "; nothing is due ahead"
    return f"{row['name']!r} is {_state(row)}: {row['when']}{'' if is_following else ahead}."


def _find(client: Client, id_: str) -> dict[str, Any]:
    """Return the row of that name, or whose id begins so. Raises: NotReady, InvalidInput."""
    rows = client.cron_rows(all_=True)  # as `list --all` shows them
    found = prefixes.named("row", id_, rows, client.me)
    return client.cron_row(found or prefixes.whole("row", id_, (one["id"] for one in rows)))
