"""Standing grants of the configuration, kept on the board as all others are (LOOPS L-8).

At its start a gateway makes those that aren't there and ends those that were removed. What matches
a call, counts it and shows it knows no difference. Whatever is repeated, by another gateway or
after a crash, is there already: a grant's id is made of its section.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog
from msgspec.structs import replace

from vigil.board.kept import KeptBoard, Revision
from vigil.board.kinds.grant import GRANTS
from vigil.bus.bus import Bus
from vigil.contracts import Change, Grant
from vigil.settings.config import Config
from vigil.settings.grants import grant_of
from vigil.subjects import Scope
from vigil.teams import holding

log = structlog.get_logger("vigil.gateway")

BY = "configuration"


async def keep(bus: Bus, config: Config, now: datetime, is_erasing: Callable[[str], bool]) -> None:
    """Make the board have the grants of the configuration, and no others that it made.

    Raises:
        BoundReached: somebody has as many grants as they may.
        Unavailable: the broker is away.
    """
    board = KeptBoard(bus, GRANTS)
    there = {one.entity.id: one for one in await board.all(Scope("*", "*"))}
    wanted = {one.id: one for one in (grant_of(g, config.teams, now) for g in config.grants)}
    for id_, grant in wanted.items():
        if not is_erasing(grant.owner):
            await _make(board, grant, there.get(id_), now)
    for id_, one in there.items():
        if one.entity.made_by == BY and id_ not in wanted and one.entity.revoked_at is None:
            await _end(board, one, now)


async def _make(
    board: KeptBoard[Grant], grant: Grant, before: Revision[Grant] | None, now: datetime
) -> None:
    change = Change(by=BY, why=grant.why)
    if before is None:
        await board.create(lambda _: grant, holding(grant.owner, grant.agent), change, now)
    elif not await _is_changed(
        board, before, lambda known: known if known.revoked_at is None else grant, change, now
    ):
        return
    log.info("grant made", action="gateway.grant", grant=grant.id, tool=grant.tool, by=BY)


async def _end(board: KeptBoard[Grant], one: Revision[Grant], now: datetime) -> None:
    change = Change(by=BY, why="removed from vigil.toml")
    if await _is_changed(
        board, one, lambda known: replace(known, revoked_at=known.revoked_at or now), change, now
    ):
        log.info("grant ended", action="gateway.grant", grant=one.entity.id, by=BY)


async def _is_changed(
    board: KeptBoard[Grant],
    before: Revision[Grant],
    revised: Callable[[Grant], Grant],
    change: Change,
    now: datetime,
) -> bool:
    """Store what a grant becomes, also if it's stored anew meanwhile, as an erasure does with all;
    whether it's another than before."""
    scope = Scope(before.entity.agent, before.entity.owner)
    found = await board.revise([scope], before.entity.id, revised, change, now)
    return found is not None and found.entity != before.entity
