"""`autonomy`: how agents keep up with the world by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from vigil.errors import InvalidInput
from vigil.words.amounts import span_of

from .. import options, output, prefixes, tables, times, wall
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

app = CommandLine(
    cls=ListedGroup,
    help="How agents keep up by themselves: list, show, on, off, set, run. Default: list.",
)
AGENT: Final = "vigil"
SETTINGS: Final = (
    "autonomy_enabled",
    "autonomy_interval_secs",
    "autonomy_look_secs",
    "autonomy_role_secs",
    "autonomy_max_turns",
    "autonomy_max_workers",
    "autonomy_tasks_require_approval",
    "autonomy_findings_shown",
    "autonomy_timeout_s",
    "bulletin_interval_secs",
    "bulletin_synthesis",
    "bulletin_max_words",
    "summary_interval_secs",
    "summary_rewriting",
)
"""What can be set without a restart; `autonomy_` needn't be written."""
Agent = Annotated[str, typer.Option("--agent", help="Of which agent.")]


def _state(one: Mapping[str, Any]) -> str:
    if one["running"]:
        return "at work"
    return "on" if one["is_on"] else "off"


COLUMNS: Final = (
    Column("AGENT", "agent_id"),
    Column("FOR", "owner"),
    Column("STATE", _state),
    Column("NEXT LOOK", "next_at", is_instant=True),
    Column("LAST CYCLE", "ended_at", is_instant=True),
    Column("FOUND", lambda one: len(one["found"])),
    Column("TO RECHECK", lambda one: len(one["rechecks"])),
    Column("FAILED", "failures"),
)
OUTSIDE: Final = "From outside: what others wrote had a part in this."


@app.command("list")
def list_() -> Result:
    """List who keeps up for whom, and when it's looked next whether there is anything new."""
    found = options.client().autonomy()
    return tables.listing(
        "cycles", found["cycles"], COLUMNS, empty="Nobody keeps up by themselves yet."
    )


@app.command()
def show(agent: Agent = AGENT) -> Result:
    """Show what an agent found in its last cycle, and what it looks at again."""
    found = options.client().autonomy()
    cycles = [one for one in found["cycles"] if one["agent_id"] == agent]
    return Result(found | {"cycles": cycles}, lambda: _show(found["settings"], cycles))


def _show(settings: Mapping[str, Any], cycles: list[dict[str, Any]]) -> None:
    for name, value in settings.items():
        output.data(f"{name.removeprefix('autonomy_')}: {value}")
    for one in cycles:
        output.data("")
        output.data(f"{one['agent_id']} for {one['owner']}: {_state(one)}")
        if one["is_tainted"]:
            output.data(OUTSIDE)
        for name in ("checked", "found", "deferred"):
            for point in one[name]:
                output.data(f"  {name}: {output.printable(point)}")
        for recheck in one["rechecks"]:
            at = wall.zoned(recheck["at"])
            output.data(f"  again at {at}: {output.printable(recheck['what'])}")
        for look in one["looks"]:
            output.data(f"  looks {_when(look)}: {output.printable(look['what'])}")


def _when(look: Mapping[str, Any]) -> str:
    """Say when something is looked at, and when it last was."""
    often = f"every {span_of(look['every_s'])}" if look["every_s"] else "when a cycle begins"
    hours = f" in {look['hours']}" if look["hours"] else ""
    last = f", last {wall.zoned(look['looked_at'])}" if look["looked_at"] else ""
    return often + hours + last


@app.command("on")
def on() -> Result:
    """Let agents keep up by themselves, without a restart. Needs an admin token."""
    return _set({"autonomy_enabled": True}, "Agents keep up by themselves.")


@app.command("off")
def off() -> Result:
    """Let no cycle begin any more; one that goes on ends. Needs an admin token."""
    return _set({"autonomy_enabled": False}, "No cycle begins any more.")


@app.command("set")
def set_(
    every: Annotated[
        str | None, typer.Option("--every", metavar="SPAN", help="How often it's looked: 30m.")
    ] = None,
    look: Annotated[
        str | None, typer.Option("--look", metavar="SPAN", help="How often at each of its looks.")
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="SPAN", help="How often after its role.")
    ] = None,
    turns: Annotated[int | None, typer.Option("--turns", help="Model calls of a cycle.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Workers and readers at a time.")
    ] = None,
    ask: Annotated[
        bool | None, typer.Option("--ask/--no-ask", help="Whether its tasks wait for you.")
    ] = None,
    bulletin: Annotated[
        str | None,
        typer.Option("--bulletin", metavar="SPAN", help="How often bulletins are checked: 1h."),
    ] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="One of these, or a setting: as configured again."),
    ] = None,
) -> Result:
    """Set it for all agents, without a restart. Needs an admin token."""
    named = {
        "every": ("autonomy_interval_secs", times.seconds("--every", every)),
        "look": ("autonomy_look_secs", times.seconds("--look", look)),
        "role": ("autonomy_role_secs", times.seconds("--role", role)),
        "turns": ("autonomy_max_turns", turns),
        "workers": ("autonomy_max_workers", workers),
        "ask": ("autonomy_tasks_require_approval", ask),
        "bulletin": ("bulletin_interval_secs", times.seconds("--bulletin", bulletin)),
    }
    wanted: dict[str, Any] = {name: one for name, one in named.values() if one is not None}
    fields = {option: name for option, (name, _) in named.items()}
    fields |= {name.removeprefix("autonomy_"): name for name in SETTINGS}
    wanted |= options.reset(reset, fields | {name: name for name in SETTINGS})
    if not wanted:
        raise InvalidInput("set", "say what is to be set; see `vigil autonomy set --help`")
    return _set(wanted, "It holds from the next cycle on.")


def _set(wanted: Mapping[str, Any], sentence: str) -> Result:
    return tables.done(sentence, options.client().set_autonomy(wanted))


@app.command()
def run(agent: Agent = AGENT) -> Result:
    """Run a cycle of yours at once, whether or not anything is new."""
    client = options.client()
    me, there = client.me(), client.autonomy()["cycles"]  # an admin is shown those of all
    cycles = [one for one in there if one["agent_id"] == agent and prefixes.is_own(one, me)]
    if not cycles:
        raise InvalidInput("--agent", f"{agent!r} keeps up for nobody of yours")
    entry = client.run_cron_row(cycles[0]["row"])
    return tables.done(f"It begins: {entry['session']}", entry)
