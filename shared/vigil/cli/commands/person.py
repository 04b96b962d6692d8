"""`me`: what holds for the person, shown and set without a restart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

import typer

from vigil.zones.database import zone_named
from vigil.zones.wall import instant_of

from .. import options, output, tables, times, wall
from ..tables import Column, Result


def _shown(name: str, item: Mapping[str, Any]) -> str:
    value = str(item[name]) or "none"
    if name == "pause" and value not in ("none", "on"):
        at = datetime.fromisoformat(value)
        at = at if at.tzinfo else instant_of(at, zone_named(item["timezone"]))
        value = f"until {wall.zoned(at)}"
    return f"{value} (set by you)" if name in item["own"] else value


COLUMNS: Final = (
    Column("user", "user"),
    Column("timezone", partial(_shown, "timezone")),
    Column("language", partial(_shown, "language")),
    Column("quiet hours", partial(_shown, "quiet_hours")),
    Column("channel", partial(_shown, "channel")),
    Column("digest at", partial(_shown, "digest_at")),
    Column("pause", partial(_shown, "pause")),
    Column("home", "home_thread"),
    Column("changed", "changed_at", is_instant=True),
)


def me(
    timezone: Annotated[
        str | None, typer.Option("--timezone", "--zone", help="IANA name, as Europe/Berlin.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="To write in: de, de-AT.")] = None,
    quiet_hours: Annotated[
        str | None, typer.Option("--quiet-hours", help='"22:00-07:00"; "": none.')
    ] = None,
    channel: Annotated[
        str | None,
        typer.Option(
            help='Where unasked messages also go: socket, a channel; "": where you wrote.'
        ),
    ] = None,
    digest_at: Annotated[
        str | None, typer.Option("--digest-at", help="When to tell what could wait: 08:00.")
    ] = None,
    pause: Annotated[
        str | None,
        typer.Option(
            help="Until when nothing is said unasked: 2d, tomorrow 9:00, 2026-12-01T08:00, on; "
            '"": end.'
        ),
    ] = None,
    reset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="One of these: as configured again.")
    ] = None,
) -> Result:
    """Show what holds for you, or set it; it holds from each session's next turn on."""
    named = {
        "timezone": timezone,
        "language": language,
        "quiet_hours": quiet_hours,
        "channel": channel,
        "digest_at": digest_at,
        "pause": None if pause is None else times.end("--pause", pause, datetime.now(UTC)),
    }
    wanted: dict[str, str | None] = {n: one for n, one in named.items() if one is not None}
    wanted |= options.reset(reset, {name: name for name in named} | {"zone": "timezone"})
    client = options.client()
    found = client.set_person(wanted) if wanted else client.person()
    return Result(found, partial(_show, found))


def _show(found: Mapping[str, Any]) -> None:
    tables.fields(COLUMNS, found)
    if found.get("told"):
        output.message(found["told"])
