"""Who is paired with channels, and how those are that hear, as commands show and change it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vigil.settings import config
from vigil.settings.config import Settings
from vigil.teams import check_user

from .. import completion, exits, options, output, tables
from ..admin import operator
from ..tables import Column, Result

if TYPE_CHECKING:
    from vigil.bus.bus import Bus
    from vigil.channels.contract import Channel
    from vigil.channels.pairs import ChannelPerson

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="NAME of [channels.NAME].", autocompletion=completion.named("channels")
    ),
]
Whose = Annotated[str | None, typer.Option("--user", help="Whose it is. Default: the token's.")]

People = dict[str, "list[ChannelPerson]"]
"""By channel."""
States = dict[str, dict[str, Any]]
HEARS: Final = "hears"
"""Under which name channels that look for messages stand among the facts of a replica."""
STANDING: Final = (
    Column("STATE", "state"),
    Column("PEOPLE", lambda one: ", ".join(f"{p['address']} ({p['user']})" for p in one["people"])),
    Column("OUTSIDE", "outside"),
    Column("PROBLEM", lambda one: tables.short(one["problem"])),
)
"""What a list shows of each, behind which it is."""


def seen(settings: Settings, names: Collection[str]) -> tuple[People, States]:
    """Return who is paired with channels, and how each is; nothing, if Vigil doesn't run: then what
    is configured is shown."""
    with contextlib.suppress(exits.NotReady):
        return operator.run(settings, partial(_read, tuple(names)))
    return {}, {}


def coded(
    settings: Settings,
    name: str,
    channel: Channel,
    address: str,
    user: str | None,
    what: str,
    lists: str,
) -> Result:
    """Make a code: whoever sends it from that address is that person.

    Args:
        user: whose it is to be; None: the token's.
        what: is to be done with it.
        lists: the command that shows who is paired.
    """
    from vigil.channels import pairs

    whose = check_user(user or options.client().me()["user"])
    code, now = pairs.new_code(), datetime.now(UTC)
    operator.run(settings, lambda bus: pairs.ask_for(bus, name, whose, address, code, now))
    text = f"{what}\n\n    {code}\n\n`{lists}` shows when it's there."
    facts = {"code": code, "to": channel.paired_at, "address": address, "user": whose}
    return Result(facts, partial(output.data, text))


def taken_back(name: str, address: str, user: str | None, lists: str) -> Result:
    """Take an address back.

    Args:
        lists: the command that shows who is paired.
    """
    from vigil.channels import pairs

    settings = config.load()
    whose = check_user(user or options.client().me()["user"])
    if not operator.run(settings, lambda bus: pairs.take_back(bus, name, whose, address)):
        raise exits.NotReady(f"{address} isn't paired with {whose}; see `{lists}`")
    return tables.done(f"{address} is outside again.", {"address": address, "user": whose})


async def _read(names: tuple[str, ...], bus: Bus) -> tuple[People, States]:
    """Return who is paired with channels, and how each is."""
    from vigil.channels import pairs

    people = {name: await pairs.people_of(bus, name) for name in names}
    return people, await operator.facts_of(bus, HEARS)


def view_of(
    channel: Channel, home: Path, people: list[ChannelPerson], state: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how a channel is and who is paired with it, as it is printed. What only writes tells
    nobody how it is: what is wrong with its section keeps delivery from taking in any change."""
    examined = channel.examine(home)
    wrong = "" if examined is None or examined.state != "fail" else examined.found
    return {
        "state": state.get("state", "not running" if channel.paired_at else "only writes"),
        "problem": state.get("problem") or wrong,
        "outside": state.get("outside", 0),
        "refused": state.get("refused", 0),
        "people": [
            {"user": person.user, "address": one.address, "since": one.at}
            for person in people
            for one in person.addresses
        ],
    }
