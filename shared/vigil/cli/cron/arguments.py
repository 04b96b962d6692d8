"""What `vigil cron` takes at a terminal: arguments and options, and as the API calls them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from vigil.contracts.board import ChainOn, Misfire
from vigil.facts.wanted import read_typed

from .. import completion, times

_NAMED: Final = "Of a row, as `vigil cron` lists: its name, or its id or how that begins."
Id = Annotated[str, typer.Argument(metavar="ID", help=_NAMED, autocompletion=completion.row_names)]
Cron = Annotated[
    str | None,
    typer.Option("--cron", metavar="EXPRESSION", help="As `0 9 * * 1-5`, or @daily."),
]
Every = Annotated[
    str | None, typer.Option("--every", metavar="SPAN", help="As 90, 5m or 1d; and at once.")
]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="WHEN", help="Once: 2026-12-01T09:00 in --zone, or 2d."),
]
Soonest = Annotated[
    str | None,
    typer.Option("--soonest", metavar="SPAN", help="Its runs may choose the next: not before."),
]
Latest = Annotated[
    str | None, typer.Option("--latest", metavar="SPAN", help="The same: and not after.")
]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="ROW", help="With the result of each run of that row."),
]
On = Annotated[
    ChainOn | None,
    typer.Option("--on", help="Which ends of its runs --after means. Default: success."),
]
OnFact = Annotated[
    str | None,
    typer.Option(
        "--on-fact",
        metavar="SOURCE.FACT",
        help="When that fact is another: of a row or hook, as build.status, hook:build.status.",
    ),
]
Before = Annotated[
    str | None,
    typer.Option("--before", metavar="SPAN", help="So long before events of --calendar, as 10m."),
]
OfCalendar = Annotated[
    str | None,
    typer.Option("--calendar", metavar="NAME", help="As its events begin; moved as they are."),
]
OfEvent = Annotated[
    str | None,
    typer.Option("--event", metavar="ID", help="Of these the one. Default: each with a time."),
]
Skill = Annotated[
    str | None,
    typer.Option("--skill", metavar="NAME", help="By which it's done, as `vigil skills`."),
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
    typer.Option(
        "--target", metavar="KEY|CHANNEL|mind", help="Where the result goes. Default: your home."
    ),
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
Facts = Annotated[
    list[str] | None,
    typer.Option(
        "--fact",
        metavar="NAME=SHAPE",
        help="What runs tell in a closed form, as `ci=one_of[passing, failing]`; may be repeated. "
        "Others: yes_no, count[0..999], number[0.0..9.5 %], instant, day, version, "
        "id_of[A-1, A-2]. Behind it `news to failing`, `news +10`, `news never` or `news always`: "
        "which changes are told and start others. Or none.",
    ),
]
ToolArguments = Annotated[
    str | None,
    typer.Option("--arguments", metavar="JSON", help="Of a watched tool."),
]
Why = Annotated[str, typer.Option("--why", help="For its history.")]


def fields_of(
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
    given = {
        "cron": cron,
        "interval_s": times.seconds("--every", every),
        "at": None if at is None else times.end("--at", at, datetime.now(UTC)),
        "zone": zone,
        "misfire": misfire,
        "active_hours": hours,
        "target": target,
        "timeout_s": timeout,
    }
    return {name: value for name, value in given.items() if value is not None}


def of_events(before: str | None, calendar: str | None, event: str | None) -> dict[str, Any]:
    """Return which events of a calendar it's due before. Raises: InvalidInput."""
    span = times.seconds("--before", before)
    given = {"calendar": calendar, "event": event, "before_s": span}
    return {name: value for name, value in given.items() if value is not None}


def facts_of(given: list[str] | None) -> dict[str, Any]:
    """Return the facts that its runs tell. Raises: InvalidInput."""
    return {"facts": read_typed(given)} if given else {}


def pinned(model: str | None, tokens: int | None) -> dict[str, Any]:
    """Return who answers, and what that may take."""
    given = {"model": model, "daily_tokens": tokens}
    return {name: value for name, value in given.items() if value is not None}


def chosen(soonest: str | None, latest: str | None) -> dict[str, Any]:
    """Return between what its runs may choose the next. Raises: InvalidInput."""
    given = {"soonest_s": soonest, "latest_s": latest}
    spans = {name: times.seconds(f"--{name[:-2]}", value) for name, value in given.items()}
    return {name: value for name, value in spans.items() if value is not None}
