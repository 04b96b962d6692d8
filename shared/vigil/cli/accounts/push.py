"""`vigil push`: the browsers that show what agents say unasked.

One becomes such a browser by a button of the console: nobody else can subscribe for it.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from .. import exits, options, prefixes, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result

HOW: Final = 'None. In the console, below Accounts: "Notify me in this browser".'
NO_CHANNEL: Final = 'No channel has kind = "push" in vigil.toml.'

app = CommandLine(cls=ListedGroup, help="Notified browsers: list, test, remove. Default: list.")
COLUMNS: Final = (
    Column("ID", "id"),
    Column("BROWSER", "name"),
    Column("SINCE", "since", is_instant=True),
    Column("PUSH SERVICE", "service"),
    Column("SOUND", lambda one: "" if one["is_silent"] else "yes"),
)


@app.command("list")
def list_() -> Result:
    """List your browsers that are notified."""
    answer = options.client().push()
    empty = HOW if answer["channel"] else NO_CHANNEL
    return tables.listing("browsers", answer["browsers"], COLUMNS, empty=empty)


@app.command()
def test() -> Result:
    """Send a test to your browsers. Exit code 1 if it isn't taken."""
    client = options.client()
    channel = client.push()["channel"]
    if not channel:
        raise exits.NotReady(NO_CHANNEL)
    went = client.try_channel(channel)
    said = f"{went['outcome'].replace('_', ' ')}: {went['reason']}"
    is_taken = went["outcome"] == "taken"
    return tables.done(said, went)._replace(end=None if is_taken else typer.Exit(exits.FAILURE))


@app.command()
def remove(
    id_: Annotated[str, typer.Argument(metavar="ID", help="Of a browser; the beginning will do.")],
) -> Result:
    """Have a browser of yours notified no more."""
    client = options.client()
    there = [one["id"] for one in client.push()["browsers"]]
    gone = client.unsubscribe_browser(prefixes.whole("browser", id_, there))
    return tables.done(f"{gone['name']} is notified no more.", gone)
