"""Standing grants for tests, as the gateway stores them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from vigil.board.kept import KeptBoard, Revision
from vigil.board.kinds.grant import GRANTS
from vigil.bus.bus import Bus
from vigil.contracts import AnyConstraint, Argv, Change, Grant
from vigil.grants.check import check
from vigil.teams import holding

DF: Final = Argv(argv=("df", "-h"))


def grant_of(tool: str = "shell", *constraints: AnyConstraint, **changes: Any) -> Grant:
    """A grant of Ann's; of nothing else, one for `df -h`."""
    made = Grant(
        id="a" * 32,
        name="g1",
        owner="ann",
        agent="vigil",
        tool=tool,
        constraints=constraints or ((DF,) if tool == "shell" else ()),
        made_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return check(replace(made, **changes))


async def give(bus: Bus, grant: Grant) -> Revision[Grant]:
    board = KeptBoard(bus, GRANTS)
    change, now = Change(by=grant.owner), datetime.now(UTC)
    return await board.create(lambda _: grant, holding(grant.owner, grant.agent), change, now)


async def revoke(bus: Bus, given: Revision[Grant]) -> Revision[Grant]:
    ended, now = replace(given.entity, revoked_at=datetime.now(UTC)), datetime.now(UTC)
    change = Change(by=given.entity.owner)
    return await KeptBoard(bus, GRANTS).replace(given.number, ended, change, now)
