"""`cron link`, `links`, `unlink`: what a calendar program subscribes to."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import typer

from .. import options, output, prefixes, tables
from ..tables import Column, Result

COLUMNS: Final = (
    Column("ID", "id"),
    Column("USER", "user"),
    Column("NAME", "name"),
    Column("MADE", "created_at", is_instant=True),
)


def link(
    name: Annotated[str, typer.Option("--name", help="For you to tell links apart: phone.")] = "",
) -> Result:
    """Make a link that a calendar program subscribes to; it tells when rows are due, no more."""
    client = options.client()
    made = client.make_calendar_link(name=name)
    made["url"] = f"{client.url}{made['path']}"
    return Result(made, partial(_show, made["url"], made["id"]))


def _show(url: str, id_: str) -> None:
    output.data(url)
    output.message("Keep it to yourself: who has it sees your timetable. It can't be shown again.")
    output.message(f"`vigil cron unlink {id_}` ends it.")


def links() -> Result:
    """List the links that calendar programs subscribe to, without what they are."""
    found = options.client().calendar_links()
    return tables.listing("links", found, COLUMNS, empty="No links. `vigil cron link` makes one.")


def unlink(
    id_: Annotated[str, typer.Argument(metavar="ID", help="Of a link, as `vigil cron links`.")],
) -> Result:
    """End a link at once. Calendars keep what they have read."""
    client = options.client()
    there = [one["id"] for one in client.calendar_links()]
    ended = client.end_calendar_link(prefixes.whole("link", id_, there, length=None))
    return tables.done(f"Ended {ended['id']}.", ended)
