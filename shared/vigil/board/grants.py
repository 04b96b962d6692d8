"""An owner's standing grants with their uses, as the board has them."""

from __future__ import annotations

from ..bus.bus import Bus
from ..grants.rule import Standing
from ..subjects import Scope
from .kept import KeptBoard
from .kinds.grant import GRANTS, USES, standing_of


async def standing(bus: Bus, whose: Scope) -> list[Standing]:
    """Return the grants of an owner, also those that ended.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """
    grants = await KeptBoard(bus, GRANTS).all(whose)
    if not grants:
        return []
    uses = {one.entity.id: one.entity for one in await KeptBoard(bus, USES).all(whose)}
    return [standing_of(one.entity, one.number, uses.get(one.entity.id)) for one in grants]


class OwnersGrants:
    """The grants of one owner and agent, read again when they change (LOOPS L-16).

    Nothing of them is kept in a session's state: a decision names the one that it used.
    """

    def __init__(self, bus: Bus, whose: Scope) -> None:
        self._bus = bus
        self._whose = whose
        self._places = (0, 0)
        self._found: tuple[Standing, ...] = ()

    async def now(self) -> tuple[Standing, ...]:
        """Return them as they are. Raises: Unavailable."""
        grants = await KeptBoard(self._bus, GRANTS).last(self._whose)
        if not grants:
            return ()
        uses = await KeptBoard(self._bus, USES).last(self._whose)
        if (grants, uses) != self._places:
            self._found = tuple(await standing(self._bus, self._whose))
            self._places = (grants, uses)
        return self._found
