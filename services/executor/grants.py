"""Standing grants, asked once more for the very call that is about to be run (LOOPS L-8).

The core decided by the grant as it read it; here its revision, its end and its constraints are
looked at again, and the use is counted, before anything runs. A use is a compare-and-set on the one
record that counts it: of any number of calls at once, in whatever sessions and replicas, as many
run as there are uses left. A call that was counted is found in the record for as long as it may
come again, so a repeat isn't counted twice; one that was counted and then lost stays counted.

What is revoked doesn't run from then on, but for a call that passed here before: it is between this
look and the start of its tool, some milliseconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vigil import crash
from vigil.board.kept import KeptBoard, Revision
from vigil.board.kinds.grant import GRANTS, USES, standing_of
from vigil.contracts import CallTool, Change, Grant, GrantUse, Tool
from vigil.errors import Unavailable, WrongLastSequence
from vigil.grants.rule import Wanted, obstacle
from vigil.runtime import Context
from vigil.subjects import Scope, SessionKey
from vigil.worker.open_call import is_awaited

CALLS_MAX: Final = 32
"""Calls that a record names at least; of older ones those that may come again, too."""
TRIES_MAX: Final = 20
CHANGED: Final = "it was changed or revoked meanwhile"


class GrantChecks:
    """Looks at grants, and counts their uses."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._grants = KeptBoard(context.bus, GRANTS)
        self._uses = KeptBoard(context.bus, USES)

    async def use(self, key: SessionKey, call: CallTool, tool: Tool) -> Grant | str:
        """Count a use of the grant that let a call through; return it, or why it doesn't hold.

        Raises:
            Unavailable: nobody knows whether it holds; it did not run.
        """
        whose = key.scope
        for _ in range(TRIES_MAX):
            now = self._clock.now()
            found = await self._grants.find([whose], call.payload.grant_id)
            if found is None or found.number != call.payload.grant_revision:
                return CHANGED
            counted = await self._uses.find([whose], found.entity.id)
            if counted is not None and call.id in counted.entity.calls:
                return found.entity
            use = None if counted is None else counted.entity
            problem = obstacle(
                standing_of(found.entity, found.number, use), _wanted(key, call, tool, now)
            )
            if problem is not None:
                return problem
            try:
                await self._count(key, call, found.entity, counted, now)
            except WrongLastSequence:
                continue
            crash.point("executor.grant.counted")
            return found.entity
        raise Unavailable("others use the same grant all the time")

    async def _count(
        self,
        key: SessionKey,
        call: CallTool,
        grant: Grant,
        counted: Revision[GrantUse] | None,
        now: datetime,
    ) -> None:
        before = None if counted is None else counted.entity
        use = GrantUse(
            id=grant.id,
            owner=grant.owner,
            agent=grant.agent,
            uses=1 if before is None else before.uses + 1,
            last_used_at=now,
            tool=call.payload.tool,
            session_key=str(key),
            calls=(*await self._kept(key.scope, () if before is None else before.calls), call.id),
        )
        change = Change(by="executor", cause=call.id)
        await self._uses.replace(0 if counted is None else counted.number, use, change, now)

    async def _kept(self, whose: Scope, calls: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out old calls that nobody waits for any more: they never come again."""
        newest, older = calls[1 - CALLS_MAX :], calls[: 1 - CALLS_MAX]
        open_ = [one for one in older if await self._is_awaited(whose, one)]
        return (*open_, *newest)

    async def _is_awaited(self, whose: Scope, call_id: str) -> bool:
        logs = [(log, "session") for log in (await self._bus.layout()).logs]
        for stream, kind in (*logs, ("SYSTEM", "system")):
            claims = f"{kind}.{whose.agent}.{whose.owner}.*.call.{call_id}"
            claimed = await self._bus.get_last(stream, claims)
            if claimed is not None:
                return await is_awaited(self._bus, SessionKey.of_subject(claimed.subject), call_id)
        return False


def _wanted(key: SessionKey, call: CallTool, tool: Tool, now: datetime) -> Wanted:
    return Wanted(
        key=key,
        tool=tool.name,
        risk=tool.risk,
        input=call.payload.input,
        is_outside=call.payload.is_tainted,
        now=now,
        row=call.payload.grant_row,
        goal=call.payload.grant_goal,
    )
