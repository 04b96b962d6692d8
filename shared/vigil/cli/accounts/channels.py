"""`vigil channels`: every way to people, how each is, and who is paired with it.

Channels are sections of vigil.toml. Who is paired is on the bus, changed with the operator's own
credential, as tokens are: whoever may read that credential's file owns the installation anyway.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Final

import typer

from vigil.channels.contract import Channel
from vigil.errors import InvalidInput
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.credentials import write_private

from .. import exits, options, output, tables
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from .paired import STANDING, Name, Whose, coded, seen, taken_back, told_of

app = CommandLine(
    cls=ListedGroup, help="Ways to people: list, pair, unpair, test, login. Default: list."
)
LIST: Final = "vigil channels list"
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("KIND", "kind"),
    Column("ADDRESS", "address"),
    *STANDING,
)


@app.command("list")
def list_() -> Result:
    """List the channels, how those are that hear, and whose addresses are heard."""
    settings = config.load()
    channels = dict(sorted(settings.config.channels.items()))
    people, states = seen(settings, channels)
    told = [
        {"name": name, "kind": str(type(one).__struct_config__.tag), "address": one.paired_at}
        | told_of(one, people.get(name, []), states.get(name, {}))
        for name, one in channels.items()
    ]
    pages = "docs/matrix.md, telegram.md, slack.md, discord.md, mail.md and webhooks.md"
    empty = f"No channels. {pages} say how to add one."
    return tables.listing("channels", told, COLUMNS, empty=empty)


@app.command()
def pair(
    name: Name,
    address: Annotated[
        str,
        typer.Argument(
            metavar="[ADDRESS]",
            help="The person's own there, as @ann:example.org of Matrix; without, where that's "
            "possible: of whoever brings the code.",
        ),
    ] = "",
    user: Whose = None,
) -> Result:
    """Make a code: a message with it from that address makes the address the person's."""
    settings = config.load()
    channel = _channel(settings, name)
    if address or not channel.is_code_for_anybody:
        channel.check_may_pair(address)
    of = f" from {address}" if address else ""
    what = f"Send this code{of} to {channel.paired_at}, alone with it, within an hour:"
    return coded(settings, name, channel, address, user, what, LIST)


@app.command()
def unpair(
    name: Name,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="As `list` shows it.")],
    user: Whose = None,
) -> Result:
    """Take an address back: it's no longer heard, nor written to."""
    return taken_back(name, address, user, LIST)


@app.command()
def test(name: Name) -> Result:
    """Send yourself a message through a channel, and say how it went."""
    _channel(config.load(), name)
    tried = options.client().try_channel(name)
    words = f"{tried['outcome'].replace('_', ' ')}: {tried['reason']}".removesuffix(": ")
    end = None if tried["outcome"] == "taken" else typer.Exit(exits.FAILURE)
    return Result(tried, partial(output.data, output.printable(words)), end)


@app.command()
def login(
    homeserver: Annotated[str, typer.Argument(metavar="URL", help="Of the server of Matrix.")],
    user_id: Annotated[str, typer.Argument(metavar="ID", help="Of the agent's own account.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where the access token is kept.")],
) -> Result:
    """Log in once with a server of Matrix, and keep the token; the password isn't kept."""
    from vigil.channels.matrix.login import token_for
    from vigil.channels.matrix.section import MatrixAccount

    home = config.load().home
    account = MatrixAccount(homeserver=homeserver, user_id=user_id, access_token_file=file)
    account.check_fields()
    path = home / file
    if path.exists():
        raise InvalidInput("FILE", f"{path} is there already; a device is kept for good")
    password = str(typer.prompt(f"Password of {user_id}", hide_input=True, err=True))
    token = asyncio.run(token_for(account, password, home))
    write_private(path, f"{token}\n".encode())
    text = (
        f'The token is in {path}. In vigil.toml:\n\n[channels.matrix]\nkind = "matrix"\n'
        f'homeserver = "{homeserver}"\nuser_id = "{user_id}"\naccess_token_file = "{file}"'
    )
    return Result({"file": str(path)}, partial(output.data, output.printable(text)))


def _channel(settings: Settings, name: str) -> Channel:
    found = settings.config.channels.get(name)
    if found is None:
        known = ", ".join(sorted(settings.config.channels)) or "none"
        raise exits.NotReady(f"there is no channel {name!r}; there is: {known}")
    return found
