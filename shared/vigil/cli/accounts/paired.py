"""Who is paired with channels, and how those are that hear, as commands show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..admin import operator

if TYPE_CHECKING:
    from vigil.bus.bus import Bus
    from vigil.channels.pairs import ChannelPerson

People = dict[str, "list[ChannelPerson]"]
"""By channel."""
States = dict[str, dict[str, Any]]
HEARS: Final = "hears"
"""Under which name channels that look for messages stand among the facts of a replica."""


async def looked(names: tuple[str, ...], bus: Bus) -> tuple[People, States]:
    """Return who is paired with channels, and how each is."""
    from vigil.channels import pairs

    people = {name: await pairs.people_of(bus, name) for name in names}
    return people, await operator.facts_of(bus, HEARS)


def people_in(people: list[ChannelPerson]) -> list[dict[str, Any]]:
    """Return who is paired, as it is printed."""
    return [
        {"user": person.user, "address": one.address, "since": one.at}
        for person in people
        for one in person.addresses
    ]
