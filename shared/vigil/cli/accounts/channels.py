"""`vigil channels`: every way to people, how each is, and who is paired with it.

Channels are sections of vigil.toml. Who is paired is on the bus, changed with the operator's own
credential, as tokens are: whoever may read that credential's file owns the installation anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vigil.channels.contract import Channel
from vigil.errors import InvalidInput
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.credentials import write_private
from vigil.teams import check_user

from .. import completion, exits, options, output, tables
from ..admin import operator
from ..registry import CommandLine, ListedGroup
from ..tables import Column, Result
from .paired import People, States, looked, people_in

if TYPE_CHECKING:
    from vigil.channels.pairs import ChannelPerson

app = CommandLine(
    cls=ListedGroup, help="Ways to people: list, pair, unpair, test, login. Default: list."
)
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="NAME of [channels.NAME].", autocompletion=completion.named("channels")
    ),
]
Whose = Annotated[str | None, typer.Option("--user", help="Whose it is. Default: the token's.")]
COLUMNS: Final = (
    Column("NAME", "name"),
    Column("KIND", "kind"),
    Column("ADDRESS", "address"),
    Column("STATE", "state"),
    Column("PEOPLE", lambda one: ", ".join(f"{p['address']} ({p['user']})" for p in one["people"])),
    Column("OUTSIDE", "outside"),
    Column("PROBLEM", lambda one: tables.short(one["problem"])),
)


@app.command("list")
def list_() -> Result:
    """List the channels, how those are that hear, and whose addresses are heard."""
    settings = config.load()
    channels = dict(sorted(settings.config.channels.items()))
    people: People = {}
    states: States = {}
    with contextlib.suppress(exits.NotReady):  # nothing runs: what is configured is shown
        people, states = operator.run(settings, partial(looked, tuple(channels)))
    told = [
        _told(name, one, people.get(name, []), states.get(name, {}))
        for name, one in channels.items()
    ]
    empty = "No channels. docs/matrix.md, telegram.md, mail.md and webhooks.md say how to add one."
    return tables.listing("channels", told, COLUMNS, empty=empty)


def _told(
    name: str, channel: Channel, people: list[ChannelPerson], state: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": str(type(channel).__struct_config__.tag),
        "address": channel.paired_at,
        "state": state.get("state", "not running" if channel.paired_at else "only writes"),
        "problem": state.get("problem", ""),
        "outside": state.get("outside", 0),
        "refused": state.get("refused", 0),
        "people": people_in(people),
    }


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
    from vigil.channels import pairs

    settings = config.load()
    channel = _channel(settings, name)
    if address or not channel.is_code_for_anybody:
        channel.check_may_pair(address)
    whose = check_user(user or options.client().me()["user"])
    code, now = pairs.new_code(), datetime.now(UTC)
    operator.run(settings, lambda bus: pairs.ask_for(bus, name, whose, address, code, now))
    of = f" from {address}" if address else ""
    text = (
        f"Send this code{of} to {channel.paired_at}, alone with it, within an hour:\n\n"
        f"    {code}\n\n`vigil channels list` shows when it's there."
    )
    facts = {"code": code, "to": channel.paired_at, "address": address, "user": whose}
    return Result(facts, partial(output.data, text))


@app.command()
def unpair(
    name: Name,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="As `list` shows it.")],
    user: Whose = None,
) -> Result:
    """Take an address back: it's no longer heard, nor written to."""
    from vigil.channels import pairs

    settings = config.load()
    whose = check_user(user or options.client().me()["user"])
    if not operator.run(settings, lambda bus: pairs.take_back(bus, name, whose, address)):
        raise exits.NotReady(f"{address} isn't paired with {whose}; see `vigil channels list`")
    return tables.done(f"{address} is outside again.", {"address": address, "user": whose})


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
