"""`dead`: what no try could use; look at it, try it again, or lay it aside."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
import typer

from vigil.sdk.client import Client

from .. import options, prefixes, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

app = CommandLine(
    cls=ListedGroup,
    help="Dead letters: list, show, requeue, discard. Default: list.",
)

Id = Annotated[str, options.id_of("a dead letter", "vigil dead")]
All = Annotated[bool, typer.Option("--all", help="Those that were ended, too.")]
Service = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only what this service gave up.")
]


@app.command("list")
def list_(every: All = False, service: Service = None) -> Result:
    """List the open dead letters, the oldest first: your own, or with an admin token all."""
    found = list(options.client().dead_letters(only_open=not every, service=service))
    return tables.listing("letters", found, COLUMNS, empty="No dead letters.")


def _state(letter: Mapping[str, Any]) -> str:
    ended = letter.get("ended")
    return f"{ended['action']} by {ended['by']}" if ended else "open"


def _session(letter: Mapping[str, Any]) -> str:
    """Return whose it is: of an event that names no session only the user is known.

    >>> _session({"session_key": "ann:_:_"}), _session({"session_key": "ann:vigil:t1"})
    ('ann', 'ann:vigil:t1')
    """
    return str(letter["session_key"]).removesuffix(":_:_")


COLUMNS: Final = (
    Column("ID", "id"),
    Column("AT", "at", is_instant=True),
    Column("SERVICE", "service", rank=2),
    Column("SESSION", _session, rank=1),
    Column("STATE", _state),
    Column("CAUSE", lambda letter: tables.short(letter["cause"])),
)
FIELDS: Final = (
    Column("id", "id"),
    Column("state", _state),
    Column("at", "at", is_instant=True),
    Column("service", "service"),
    Column("session", _session),
    Column("cause", "cause"),
    Column("record", lambda one: f"{one['stream']} {one['source_seq']} ({one['subject']})"),
    Column("message", "effect_id"),
    Column("text", "text"),
    Column("data", lambda one: msgspec.json.encode(one["data"]).decode()),
)


@app.command()
def show(id_: Id) -> Result:
    """Show one, and what died."""
    client = options.client()
    found = client.dead_letter(_whole(client, id_))
    body = {"text": found.get("text"), "data": found["data"]}
    return Result(found, partial(tables.fields, FIELDS, found["letter"] | body))


@app.command()
def requeue(id_: Id) -> Result:
    """Try it again. 5 if that can't be, or was done before."""
    client = options.client()
    id_ = _whole(client, id_)
    found = client.requeue_dead_letter(id_)
    event_id = found.get("event_id")
    name = f" as the event {event_id}" if event_id else ""
    return tables.done(f"Requeued {id_}{name}.", found)


@app.command()
def discard(id_: Id) -> Result:
    """Lay it aside; nothing comes of it. 5 if it was ended before."""
    client = options.client()
    id_ = _whole(client, id_)
    return tables.done(f"Discarded {id_}.", client.discard_dead_letter(id_))


def _whole(client: Client, id_: str) -> str:
    letters = client.dead_letters(only_open=False)
    return prefixes.whole("dead letter", id_, (one["id"] for one in letters), length=None)
