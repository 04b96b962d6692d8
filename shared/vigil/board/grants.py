"""A person's standing grants with their uses, as the board has them."""

from __future__ import annotations

from ..bus.bus import Bus
from ..contracts import Grant, GrantUse
from ..grants.rule import Standing
from .kept import GRANTS, USES, KeptBoard, Revision


def standing_of(grant: Revision[Grant], use: GrantUse | None) -> Standing:
    """Return a grant with what was counted of it."""
    return Standing(
        grant=grant.entity,
        revision=grant.number,
        uses=0 if use is None else use.uses,
        last_used_at=None if use is None else use.last_used_at,
    )


async def standing(bus: Bus, user: str | None, agent: str = "*") -> list[Standing]:
    """Return the grants of a person (None: everybody's), also those that ended.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """
    grants = await KeptBoard(bus, GRANTS).all(user, agent)
    if not grants:
        return []
    uses = {one.entity.id: one.entity for one in await KeptBoard(bus, USES).all(user, agent)}
    return [standing_of(one, uses.get(one.entity.id)) for one in grants]


class PersonsGrants:
    """The grants of one person and agent, read again when there is news (LOOPS L-16).

    Nothing of them is kept in a session's state: a decision names the one that it used.
    """

    def __init__(self, bus: Bus, user: str, agent: str) -> None:
        self._bus = bus
        self._user = user
        self._agent = agent
        self._places = (0, 0)
        self._found: tuple[Standing, ...] = ()

    async def now(self) -> tuple[Standing, ...]:
        """Return them as they are. Raises: Unavailable."""
        grants = await KeptBoard(self._bus, GRANTS).last(self._user, self._agent)
        if not grants:
            return ()
        uses = await KeptBoard(self._bus, USES).last(self._user, self._agent)
        if (grants, uses) != self._places:
            self._found = tuple(await standing(self._bus, self._user, self._agent))
            self._places = (grants, uses)
        return self._found
