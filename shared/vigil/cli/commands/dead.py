"""`dead`: what no try could use; look at it, try it again, or lay it aside."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import typer

from vigil.sdk.client import Client

from .. import options, output, prefixes

CAUSE_LENGTH_MAX: Final = 100

app = typer.Typer(help="Dead letters: list, show, requeue, discard.")

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Of a dead letter, as `vigil dead` lists; its beginning is enough."
    ),
]
All = Annotated[bool, typer.Option("--all", help="Those that were ended, too.")]
Service = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only what this service gave up.")
]


@app.callback(invoke_without_command=True)
def _dead(
    context: typer.Context,
    every: All = False,
    service: Service = None,
    json: options.Json = False,
) -> None:
    """List the open dead letters: your own, or with an admin token everybody's."""
    if context.invoked_subcommand is None:
        _list(every=every, service=service, is_json=json)


@app.command("list")
def list_(every: All = False, service: Service = None, json: options.Json = False) -> None:
    """List the open dead letters, the oldest first."""
    _list(every=every, service=service, is_json=json)


def _list(*, every: bool, service: str | None, is_json: bool) -> None:
    _, client = options.here()
    found = list(client.dead_letters(only_open=not every, service=service))
    if is_json:
        output.json({"letters": found})
        return
    rows = [
        (one["id"], one["at"][:19].replace("T", " "), one["service"], _session(one),
         _state(one), _short(one["cause"]))
        for one in found
    ]  # fmt: skip
    output.table(("ID", "AT (UTC)", "SERVICE", "SESSION", "STATE", "CAUSE"), rows)


def _state(letter: dict[str, Any]) -> str:
    ended = letter.get("ended")
    return f"{ended['action']} by {ended['by']}" if ended else "open"


def _session(letter: dict[str, Any]) -> str:
    """Return whose it is: of an event that names no session only the user is known.

    >>> _session({"session_key": "ann:_:_"}), _session({"session_key": "ann:vigil:t1"})
    ('ann', 'ann:vigil:t1')
    """
    return str(letter["session_key"]).removesuffix(":_:_")


def _short(text: str) -> str:
    return text if len(text) <= CAUSE_LENGTH_MAX else f"{text[:CAUSE_LENGTH_MAX]}…"


@app.command()
def show(id_: Id, json: options.Json = False) -> None:
    """Show one, and what died."""
    _, client = options.here()
    found = client.dead_letter(_whole(client, id_))
    if json:
        output.json(found)
        return
    letter = found["letter"]
    lines = {
        "id": letter["id"],
        "state": _state(letter),
        "at": letter["at"],
        "service": letter["service"],
        "session": _session(letter),
        "cause": letter["cause"],
        "record": f"{letter['stream']} {letter['source_seq']} ({letter['subject']})",
        "message": letter.get("effect_id", ""),
        "text": found.get("text", ""),
        "data": msgspec.json.encode(found["data"]).decode(),
    }
    for name, value in lines.items():
        if value:
            output.data(f"{name:<8}  {output.printable(value)}")


@app.command()
def requeue(id_: Id, json: options.Json = False) -> None:
    """Try it again. 5 if that can't be, or was done before."""
    _, client = options.here()
    id_ = _whole(client, id_)
    found = client.requeue_dead_letter(id_)
    if json:
        output.json(found)
        return
    event_id = found.get("event_id")
    output.message(f"Requeued {id_}" + (f" as the event {event_id}." if event_id else "."))


@app.command()
def discard(id_: Id, json: options.Json = False) -> None:
    """Lay it aside; nothing comes of it. 5 if it was ended before."""
    _, client = options.here()
    id_ = _whole(client, id_)
    found = client.discard_dead_letter(id_)
    if json:
        output.json(found)
    else:
        output.message(f"Discarded {id_}.")


def _whole(client: Client, id_: str) -> str:
    letters = client.dead_letters(only_open=False)
    return prefixes.whole("dead letter", id_, (one["id"] for one in letters), length=None)
