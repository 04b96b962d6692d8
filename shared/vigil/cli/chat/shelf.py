"""`vigil sessions`, `rename` and `archive`: the list of one's conversations."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from .. import options, tables
from ..tables import Column, Result

COLUMNS: Final = (
    Column("SESSION", "session_key"),
    Column("TITLE", "title"),
    Column("NEW", lambda session: "new" if session.get("is_unread") else ""),
    Column("MESSAGES", "messages", rank=1),
    Column("LAST", lambda session: session["last_at"] or session.get("said_at"), is_instant=True),
)


def sessions(
    archived: Annotated[bool, typer.Option("--archived", help="Those that you put away.")] = False,
    words: Annotated[
        str | None,
        typer.Option(metavar="WORDS", help="Those whose title or thread has all of these words."),
    ] = None,
) -> Result:
    """List your conversations, the newest first; `new`: the agent said something since."""
    found = list(options.client().sessions(order="newest", archived=archived, words=words))
    empty = "No sessions. `vigil chat` begins one."
    if archived or words:
        empty = "There is none."
    return tables.listing("sessions", found, COLUMNS, empty=empty)


def rename(
    key: options.Key,
    title: Annotated[
        str, typer.Argument(metavar="[TITLE]", help="What you call it. Default: its first words.")
    ] = "",
) -> Result:
    """Call a conversation something, in your list."""
    key = options.checked(key)
    done = options.client().change_session(key, title=title)
    return tables.done(f"{key} is called: {_called(done)}", done)


def archive(
    key: options.Key,
    undo: Annotated[bool, typer.Option("--undo", help="Put it back among the others.")] = False,
) -> Result:
    """Put a conversation away: it goes on as ever, and `vigil sessions --archived` lists it."""
    key = options.checked(key)
    done = options.client().change_session(key, archived=not undo)
    where = "back in the list" if undo else "put away"
    return tables.done(f"{key} is {where}: {_called(done)}", done)


def _called(done: dict[str, Any]) -> str:
    return str(done["title"]) or "it has no words yet"
