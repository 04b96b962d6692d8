"""What a caller may do with an approval: read it, and decide it (SPEC X-2).

Deciding changes nothing that the board has, so it is by hand. A verdict is an event of the session
that asks, and that session decides whether it counts. It is stored only if no other verdict on the
request is on its way: at the end of the session's orders, as they were when that was looked at. So
of two verdicts at once one is taken, and the other is told so; and the same one again is the same
event.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final, NamedTuple

import structlog
from fastapi import Response

from vigil.board.kinds.approval import Decide, StateWanted
from vigil.board.mirror import open_approvals
from vigil.bus.bus import Message
from vigil.contracts import (
    SHORT_NAME,
    Approval,
    Control,
    Decision,
    decode_event,
    decode_turn,
)
from vigil.errors import InvalidInput, WrongLastSequence
from vigil.subjects import SessionKey
from vigil.teams import may_act

from ..access import listed, readable_session
from ..http.json import Json
from ..http.problem import Problem, unavailable
from ..http.wire import Accepted
from ..patience import patiently
from ..state.edge import Edge
from .mirrored_request import MirroredRequest
from .verdicts import check_counts, check_is_open, decision_of, event_id_of, on_its_way

log = structlog.get_logger("vigil.gateway")

SETTLED_S: Final = 1.0
"""So long is waited for what becomes of another verdict that was stored before."""
POLL_S: Final = 0.05
TRIES_MAX: Final = 20
"""Orders that may come between a look and a verdict before the caller has to come again."""


class ApprovalRequest(MirroredRequest[Approval]):
    """Answers one request about approvals."""

    async def list(
        self,
        *,
        state: StateWanted,
        user: str | None,
        session: str | None,
        limit: int,
        after: str,
    ) -> Response:
        """Answer a list."""
        whose = listed(self._caller, user)
        if session is not None:
            asking = readable_session(session, self._caller)
            session, whose = str(asking), (asking.scope,)

        def is_wanted(one: Approval) -> bool:
            return state in ("all", one.state) and session in (None, one.session_key)

        return await self._listed(whose, limit, is_wanted, after)

    async def change(self, *, id_: str, wanted: Decide, parent: str | None) -> Response:
        """Decide one: the same verdict again is the same event."""
        approval, caller = await self._find(id_), self._caller
        key = SessionKey.parse(approval.session_key)
        if not may_act(caller.user, key.user, key.agent, caller.teams):
            raise Problem(403, f"only {key.user} may decide that")
        decision = decision_of(approval, wanted, caller.user)
        if decision.digest != approval.digest:
            reason = "that is the digest of other arguments; read the request again"
            raise Problem(409, reason, field="digest")
        check_counts(approval, decision)
        accepted = await _decide(self._edge, approval, decision, parent)
        log.info(
            "decided",
            action="gateway.approval",
            approval=id_,
            session=str(key),
            outcome=decision.verdict,
            by=caller.user,
        )
        return Json(accepted, 202)

    async def _find(self, id_: str) -> Approval:
        """Return the request with that id, or the open one of that short name.

        Raises:
            Problem: 404, the caller has no such request; 409, several have that name.
        """
        reach = self._caller.reach
        if re.fullmatch(SHORT_NAME, id_):
            found = await open_approvals(self._edge.bus, reach, id_)
        else:
            one = await self._board.find(reach, id_)
            found = [] if one is None else [one]
        if not found:
            raise Problem(404, "there is no such approval")
        if len(found) > 1:
            raise Problem(409, f"several have that name: {', '.join(each.id for each in found)}")
        return found[0]


# ---------------------------------------------------------------- deciding


async def _decide(
    edge: Edge, approval: Approval, decision: Decision, parent: str | None
) -> Accepted:
    """Store a verdict, once.

    Raises:
        Problem: 409, it isn't open any more; 503, it can't be stored now.
    """
    key, event_id = SessionKey.parse(approval.session_key), event_id_of(decision)

    async def store() -> Accepted:
        for _ in range(TRIES_MAX):
            last, under_way = await _read_until_settled(edge, approval, key, event_id)
            if under_way is not None:
                return _same(under_way, event_id)
            try:
                return await edge.intake.decide(key, event_id, decision, expect=last, parent=parent)
            except WrongLastSequence:  # another order of the session came between
                continue
        raise unavailable("the session is too busy; try again")

    return await edge.intake.order_once(key, event_id, store)


async def _read_until_settled(
    edge: Edge, approval: Approval, key: SessionKey, event_id: str
) -> tuple[int, _UnderWay | None]:
    """Look, and for a moment again while another verdict is on its way: whoever is too late is told
    what was decided, and not only that something is. Raises: Problem, as `_read_orders`."""
    until = edge.clock.monotonic() + SETTLED_S
    while True:
        last, under_way = await patiently(lambda: _read_orders(edge, approval, key))
        is_other = under_way is not None and under_way.event.id != event_id
        if not is_other or edge.clock.monotonic() > until:
            return last, under_way
        await asyncio.sleep(POLL_S)


async def _read_orders(
    edge: Edge, approval: Approval, key: SessionKey
) -> tuple[int, _UnderWay | None]:
    """Return the last order of the session, and the verdict on its way, if there is one.

    Raises:
        Problem: 409, the request isn't open any more.
    """
    orders = key.in_event("control")
    last = await edge.bus.get_last(key.stream, orders)
    turn = await edge.bus.get_last(key.stream, key.turns)
    state = None if turn is None else decode_turn(turn.data).state
    check_is_open(approval, state, edge.clock.now())
    after = 0 if state is None else state.position
    if last is None or last.seq <= after:
        return 0 if last is None else last.seq, None
    found = await edge.bus.read(key.stream, [orders], after + 1)
    under_way = [one for one in (_verdict(message, approval.id) for message in found) if one]
    return last.seq, under_way[0] if under_way else None


class _UnderWay(NamedTuple):
    event: Control
    decision: Decision
    seq: int


def _verdict(message: Message, approval_id: str) -> _UnderWay | None:
    """Return what an order says and where it stands, if it is a verdict on that request."""
    try:
        event = decode_event(message.data)
    except InvalidInput:
        return None  # the session makes a dead letter of it
    decision = event.payload.decision if isinstance(event, Control) else None
    if not isinstance(event, Control) or decision is None or decision.approval_id != approval_id:
        return None
    return _UnderWay(event, decision, message.seq)


def _same(under_way: _UnderWay, event_id: str) -> Accepted:
    """Return where the same verdict is stored already. Raises: Problem, 409: it's another."""
    event, decision, seq = under_way
    if event.id != event_id:
        raise Problem(409, on_its_way(decision))
    return Accepted(event_id=event_id, seq=seq)
