"""`cron`: what an agent does again and again, and what became of each time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

import typer

from vigil.contracts.board import (
    Misfire,
    SlotState,
)
from vigil.sdk.client import Client

from .. import exits, options, output, prefixes, tables, times
from ..exact import exact
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from .watch import watch_fields, watched

NAME_LENGTH_MAX: Final = 40
REASON_LENGTH_MAX: Final = 60

app = CommandLine(
    cls=ListedGroup,
    help="What an agent does again and again: list, show, add, edit, pause, resume, run, remove, "
    "history, doctor, export. Default: list.",
)

_NAMED: Final = "Of a row, as `vigil cron` lists: its name, or its id or how that begins."
Id = Annotated[str, typer.Argument(metavar="ID", help=_NAMED)]
Cron = Annotated[
    str | None,
    typer.Option("--cron", metavar="EXPRESSION", help="As `0 9 * * 1-5`, or @daily."),
]
Every = Annotated[
    str | None, typer.Option("--every", metavar="SPAN", help="As 90, 5m or 1d; and at once.")
]
At = Annotated[
    str | None, typer.Option("--at", metavar="WHEN", help="Once: 2026-12-01T08:00Z, or 2d.")
]
Zone = Annotated[
    str | None, typer.Option("--zone", help="Time zone, as Europe/Berlin. Default: yours.")
]
Prompt = Annotated[str | None, typer.Option("--prompt", help="What is to be done.")]
OnMisfire = Annotated[
    Misfire | None,
    typer.Option("--misfire", help="What of what was missed is run. Default: latest."),
]
Hours = Annotated[
    str | None, typer.Option("--hours", metavar="HH:MM-HH:MM", help="It is run in these alone.")
]
Target = Annotated[
    str | None,
    typer.Option("--target", metavar="KEY|CHANNEL", help="Where it is told. Default: your home."),
]
Timeout = Annotated[int | None, typer.Option("--timeout", metavar="SECONDS", help="Default: 120.")]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Who answers, as `vigil models`.")
]
Tokens = Annotated[
    int | None, typer.Option("--tokens", help="What all of it may take a day. 0: as configured.")
]
Watch = Annotated[
    str | None,
    typer.Option(
        "--watch",
        metavar="WHAT",
        help="It is run only if that has changed: https://PAGE, feed:https://FEED, "
        "files:notes/*.md of the workspace, command:LINE, mcp:SERVER__TOOL; or none.",
    ),
]
Pointer = Annotated[
    str | None,
    typer.Option("--pointer", metavar="/KEY/0", help="What of watched JSON counts."),
]
ToolArguments = Annotated[
    str | None,
    typer.Option("--arguments", metavar="JSON", help="Of a watched tool."),
]
Why = Annotated[str, typer.Option("--why", help="For its history.")]


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
    zone = ZoneInfo(one["zone"])
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
HISTORY: Final = (
    Column("REVISION", "revision"),
    Column("AT", "at", is_instant=True),
    Column("WHEN", "when"),
    Column("ON", lambda one: "no" if one["is_removed"] or not one["is_enabled"] else "yes"),
    Column("BY", "by"),
    Column("WHY", "why"),
)


def _slot(one: Mapping[str, Any]) -> str:
    """Say what became of a slot, or of several.

    >>> _slot({"state": "missed", "count": 3, "is_by_hand": False})
    'missed (3)'
    """
    how = " by hand" if one["is_by_hand"] else ""
    return f"{one['state']}{how}" + (f" ({one['count']})" if one["count"] > 1 else "")


SLOTS: Final = (
    Column("DUE", "due_at", is_instant=True),
    Column("STATE", _slot),
    Column("DELIVERY", "delivery"),
    Column("SESSION", "session"),
    Column("REASON", lambda one: tables.short(one["reason"], REASON_LENGTH_MAX)),
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
    output.data("prompt")
    output.data(exact(found["prompt"], indent=2))
    output.data("")
    tables.table(HISTORY, found["history"])


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What you call it.")],
    prompt: Annotated[str, typer.Argument(help="What is to be done, each time anew.")],
    cron: Cron = None,
    every: Every = None,
    at: At = None,
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
    stateful: Annotated[
        bool, typer.Option("--stateful", help="Each run knows what those before found.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="It is over with its first run.")] = False,
    agent: options.Agent = "vigil",
    why: Why = "",
) -> Result:
    """Have something done again and again. Give one of --cron, --every and --at."""
    fields = _fields(cron, every, at, zone, misfire, hours, target, timeout)
    fields |= _pinned(model, tokens)
    fields |= watch_fields(watch, pointer, arguments)
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
    at: At = None,
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
    why: Why = "",
) -> Result:
    """Change a row. A run that has begun doesn't notice."""
    fields = _fields(cron, every, at, zone, misfire, hours, target, timeout)
    fields |= _pinned(model, tokens)
    fields |= watch_fields(watch, pointer, arguments)
    given = {"name": name, "prompt": prompt}
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
    """Write what is due as iCalendar, for other programs: vigil cron export > jobs.ics"""
    text = options.client().cron_calendar(days=days)
    return Result({"calendar": text}, partial(output.data, text.rstrip("\r\n")))


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
    limit: Annotated[int, typer.Option("--limit", min=1, max=500)] = 20,
) -> Result:
    """List what became of each time that something was due, the newest first."""
    client = options.client()
    row = None if id_ is None else _find(client, id_)["id"]
    found = client.slots(row=row, state=state, limit=limit)
    return tables.listing("slots", found, SLOTS, empty="Nothing was due yet.")


def _fields(
    cron: str | None,
    every: str | None,
    at: str | None,
    zone: str | None,
    misfire: str | None,
    hours: str | None,
    target: str | None,
    timeout: int | None,
) -> dict[str, Any]:
    """Return what is given, as the API calls it. Raises: InvalidInput."""
    due_at = times.until("--at", at, datetime.now(UTC))
    given = {
        "cron": cron,
        "interval_s": times.seconds("--every", every),
        "at": due_at and due_at.isoformat(),
        "zone": zone,
        "misfire": misfire,
        "active_hours": hours,
        "target": target,
        "timeout_s": timeout,
    }
    return {name: value for name, value in given.items() if value is not None}


def _pinned(model: str | None, tokens: int | None) -> dict[str, Any]:
    given = {"model": model, "daily_tokens": tokens}
    return {name: value for name, value in given.items() if value is not None}


def _changed(id_: str, why: str, **changes: Any) -> Result:
    """Change a row as it was read."""
    client = options.client()
    found = _find(client, id_)
    done = client.change_cron_row(found["id"], revision=found["revision"], why=why, **changes)
    return tables.done(_sentence(done), done)


def _sentence(row: Mapping[str, Any]) -> str:
    """Repeat in words when a row is due."""
    following = _next(row)
    ahead = f"next: {following}" if following else "nothing is due"
    return f"{row['name']!r} is {_state(row)}: {row['when']}; {ahead}."


def _find(client: Client, id_: str) -> dict[str, Any]:
    """Return the row of that name, or whose id begins so. Raises: NotReady, InvalidInput."""
    rows = client.cron_rows()
    named = [one["id"] for one in rows if one["name"] == id_]
    found = named[0] if len(named) == 1 else prefixes.whole("row", id_, (o["id"] for o in rows))
    return client.cron_row(found)
