"""`status`, `sessions`, `timers`, `tail session`, `version`: what is there, and what happens."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil import __version__
from vigil.errors import Unavailable
from vigil.local import runfile
from vigil.local.runfile import RunFile
from vigil.sdk.client import ApiError, Client, connect, is_passing
from vigil.settings import config
from vigil.topology import SERVICES

from .. import completion, exits, options, output, prefixes, tables, wall
from ..registry import CommandLine
from ..tables import Column, Result
from . import loops

TAIL_INTERVAL_S: Final = 0.5
tail = CommandLine(no_args_is_help=True, help="Follow what is recorded.")


def status() -> Result:
    """Show each service with pid, version and readiness. Exit code 3 if Vigil isn't running."""
    settings = config.unread()
    client = connect(settings)
    run = runfile.running(settings.run_file)
    if run is not None and run.url != client.url:
        run = None  # VIGIL_URL leads elsewhere
    try:
        found = client.status()
    except Unavailable as error:
        where = f"started by pid {run.pid}, but: " if run else ""
        facts = {"running": False, "url": client.url, "services": []}
        return Result(facts, lambda: None, exits.NotReady(f"not running: {where}{error}"))
    found["services"] += _silent(found["services"])
    found["loops"] = loops.of(client, found)
    is_ready = all(service["ready"] for service in found["services"])
    return Result(
        {"running": True, "url": client.url, **_facts(run), **found},
        partial(_show_status, client.url, run, found),
        None if is_ready else typer.Exit(exits.NOT_READY),
    )


def _silent(answered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an entry for each service of which no replica answered."""
    names = {service["service"] for service in answered}
    return [
        {"service": name, "pid": None, "version": None, "ready": False, "problems": ["no answer"]}
        for name in SERVICES
        if name not in names
    ]


def _facts(run: RunFile | None) -> dict[str, Any]:
    if run is None:
        return {}
    return {"pid": run.pid, "processes": run.processes, "started_at": run.started_at}


def _show_status(url: str, run: RunFile | None, found: dict[str, Any]) -> None:
    output.data(f"Vigil {__version__} at {url}")
    if run is not None:
        how = "one process" if run.processes == 1 else f"{run.processes} processes"
        output.data(f"{how}, pid {run.pid}, since {wall.zoned(run.started_at)}")
    output.data(f"model {output.printable(found.get('model') or 'unknown')}")
    if (warmth := found.get("warmth", "warm")) != "warm":
        output.data(f"memory {warmth.upper()}: after a start cycles and jobs wait for it a while")
    if owed := found.get("bulletins_owed", 0):
        output.data(f"first bulletins still to be written, before a first cycle: {owed}")
    if told := _cold(found.get("cold_sessions", {})):
        output.data(told)
    _show_memory(found["services"])
    for warning in dict.fromkeys(w for s in found["services"] for w in s.get("warnings", ())):
        output.data(output.printable(f"warning: {warning}"))
    _show_hanging(found["services"])
    _show_tools(found["services"])
    if paused := found.get("paused"):
        since = wall.zoned(paused["at"])
        output.data(f"PAUSED by {paused['by']} at {since}: `vigil resume` ends it")
    for one in found.get("paused_agents", ()):
        whom = "you" if one.get("user") else "everybody"
        since = f"{wall.zoned(one['paused']['at'])} by {one['paused']['by']}"
        output.data(f"PAUSED: agent {one['agent']} for {whom} since {since}")
    for one in loops.described(found["loops"]):
        output.data(output.printable(one))
    order = sorted(found["services"], key=lambda s: (s["service"], s["pid"] or 0))
    tables.table(SERVICE_COLUMNS, order)


def _cold(lacked: dict[str, int]) -> str:
    """Say how many sessions began cold (SPEC C-3).

    >>> _cold({"memory": 2, "bulletin": 1})
    'sessions begun cold since the start: 2 without all of memory, 1 before a first bulletin'
    >>> _cold({})
    ''
    """
    what = {"memory": "without all of memory", "bulletin": "before a first bulletin"}
    said = ", ".join(f"{lacked[name]} {words}" for name, words in what.items() if name in lacked)
    return f"sessions begun cold since the start: {said}" if said else ""


def _show_memory(services: list[dict[str, Any]]) -> None:
    """Tell what finds memories, as the first replica says that knows."""
    for service in services:
        facts = service.get("facts", {})
        if service["service"] == "memory" and "embedder" in facts:
            output.data(output.printable(f"memory {facts['embedder']}, {facts.get('index', '-')}"))
            if reason := facts.get("degraded"):
                output.data(output.printable(f"memory DEGRADED: {reason}"))
            return


def _show_hanging(services: list[dict[str, Any]]) -> None:
    """Tell how many sessions hang, and how many nearly fill their context window."""
    found = [one for service in services for one in service.get("facts", {}).get("sessions", ())]
    stuck = sum("stuck_s" in one for one in found)
    for count, what in ((stuck, "hang"), (len(found) - stuck, "nearly fill their window")):
        if count:
            output.data(f"sessions that {what}: {count}, `vigil health` names them")


def _show_tools(services: list[dict[str, Any]]) -> None:
    """Tell what the first executor that knows can run, and what is held back of it."""
    for service in services:
        sources = service.get("facts", {}).get("sources")
        if service["service"] == "executor" and sources is not None:
            for name, facts in sources.items():
                output.data(output.printable(f"tools {name}: {_shelf(facts)}"))
            return


def _shelf(facts: dict[str, Any]) -> str:
    """Say in one line what a source offers.

    >>> _shelf({"tools": 5, "held": 1, "problem": "", "sandbox": "bubblewrap"})
    '5, 1 held back, sandbox bubblewrap'
    >>> _shelf({"state": "not connected", "problem": "not connected: nothing listens there"})
    '0, not connected: nothing listens there'
    """
    known = ("tools", "held", "problem")
    parts = [str(facts.get("tools", 0))]
    parts += [f"{facts['held']} held back"] if facts.get("held") else []
    problem = str(facts.get("problem") or "")
    told = {name: value for name, value in facts.items() if name not in known and value}
    if str(told.get("state", "")) in problem:  # why it is so says that it is
        told.pop("state", None)
    parts += [f"{name} {value}" for name, value in told.items()]
    parts += [problem] if problem else []
    return ", ".join(parts)


SERVICE_COLUMNS: Final = (
    Column("SERVICE", "service"),
    Column("PID", "pid", rank=1),
    Column("VERSION", "version", rank=2),
    Column("STATE", lambda service: "ready" if service["ready"] else "NOT READY"),
    Column("PROBLEMS", lambda service: "; ".join(service.get("problems", ()))),
)
TIMER_COLUMNS: Final = (
    Column("DUE", "fire_at", is_instant=True),
    Column("ID", "timer_id"),
    Column("KIND", lambda timer: "reminder" if timer["keep"] else "follow-up", rank=2),
    Column("SESSION", "session_key", rank=1),
    Column("WHAT", lambda timer: timer.get("message") or timer.get("reason")),
)


def timers(
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="[KEY]",
            help="A session. Default: all of yours.",
            autocompletion=completion.session_keys,
        ),
    ] = None,
    cancel: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Cancel this timer of the session; the beginning of its id is enough.",
            autocompletion=completion.timer_ids,
        ),
    ] = None,
) -> Result:
    """List what is due: follow-ups and reminders."""
    client = options.client()
    if cancel is not None:
        return _cancel(client, key, cancel)
    keys = [options.checked(key)] if key else [s["session_key"] for s in client.sessions()]
    found = [{"session_key": k, **t} for k in keys for t in client.timers(k)["timers"]]
    found.sort(key=lambda t: (t["fire_at"], t["timer_id"]))
    return tables.listing("timers", found, TIMER_COLUMNS, empty="Nothing is due.")


def _cancel(client: Client, key: str | None, beginning: str) -> Result:
    if key is None:
        raise typer.BadParameter("--cancel needs the KEY of the session")
    key = options.checked(key)
    there = [one["timer_id"] for one in client.timers(key)["timers"]]
    timer_id = prefixes.whole("timer", beginning, there, length=None)
    client.cancel_timer(key, timer_id)
    facts = {"session_key": key, "timer_id": timer_id, "cancelled": True}
    return tables.done(f"Cancelled {timer_id}.", facts)


@tail.callback()
def _tail() -> None:
    """Follow what is recorded."""


@tail.command("session")
def tail_session(
    key: options.Key,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Go on as records come.")
    ] = True,
    after: Annotated[int, typer.Option(min=0, help="Start after this sequence.")] = 0,
    json: options.Json = False,
) -> None:
    """Print a session's records: what came in, each turn, what was said."""
    client = options.client()
    key = options.checked(key)
    show: Callable[[dict[str, Any]], None] = output.json if json else _show_record
    shown = 0
    for record in _records(lambda a: client.timeline(key, after=a), after, is_endless=follow):
        show(record)
        shown += 1
    if not (shown or after):
        raise exits.NotReady(f"nothing is recorded of {key}: `vigil sessions` lists yours")


def _records(
    page: Callable[[int], dict[str, Any]], after: int, *, is_endless: bool
) -> Iterator[dict[str, Any]]:
    """Yield records as they come; a gateway that is away for a moment is waited for."""
    is_away = False
    while True:
        try:
            found = page(after)
        except (Unavailable, ApiError) as error:
            if not is_endless or not is_passing(error):
                raise
            if not is_away:
                output.message(f"{error}; trying again")
            is_away = True
            time.sleep(TAIL_INTERVAL_S)
            continue
        is_away = False
        yield from found["records"]
        if found["records"]:
            after = found["records"][-1]["seq"]
        if found["next_after"] is not None:
            after = max(after, found["next_after"])
        elif is_endless:
            time.sleep(TAIL_INTERVAL_S)
        else:
            return


def _show_record(record: dict[str, Any]) -> None:
    body = record["data"] if isinstance(record["data"], dict) else {}
    at = wall.instant(body.get("created_at") or body.get("at"))
    line = f"{record['seq']:>8}  {at:<19}  {record['kind']:<14}  {_gist(record['kind'], body)}"
    output.data(" ".join(output.printable(line).splitlines()).rstrip())


_WORDS: Final = {
    "receipt": ("outcome", "reason"),
    "send": ("channel", "requeued_by"),
    "attempt": ("channel", "number", "state", "reason"),
    "call": ("tool", "by"),
}
"""What tells most about a record of delivery, or of a tool call."""


def _gist(kind: str, body: dict[str, Any]) -> str:
    """Say in one line what a record is about."""
    payload = body.get("payload") or {}
    if kind == "turn":
        effects = " ".join(f"+{e['type']}" for e in body.get("effects", ()))
        notes = " ".join(f"({n['code']})" for n in body.get("notes", ()))
        return " ".join(part for part in (body.get("outcome", ""), effects, notes) if part)
    if kind.startswith("out."):
        tag = f"[{body['tag']}] " if body.get("tag") else ""
        return f"{tag}{body.get('text', '')}"
    if kind in _WORDS:
        return " ".join(str(body[word]) for word in _WORDS[kind] if word in body)
    if "text" in payload:
        return str(payload["text"])
    if "timer_id" in payload:
        return f"{payload.get('op', '')} {payload['timer_id']}".strip()
    return str(payload.get("op") or payload.get("content") or "")


def version() -> Result:
    """Show the versions of Vigil, Python and the system."""
    facts = {
        "vigil": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    text = f"vigil {__version__} (Python {facts['python']}, {facts['system']})"
    return Result(facts, partial(output.data, text))
