"""What is to be known of the person before an event is folded: what of the board their message
names, if it is an order in a few words, and where they wrote last."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from vigil.board.asked import read_goals
from vigil.board.mirror import asked_since, ended_approval, open_approvals
from vigil.bus.bus import Bus
from vigil.contracts import (
    Event,
    State,
    TimerFired,
    ToldEvent,
    ToolUseBlock,
    UserMessage,
    decode_event,
)
from vigil.errors import InvalidInput
from vigil.subjects import Scope, SessionKey

from ..core import Moment, Policy
from ..core.mind import stop
from ..core.pending import requests
from ..core.work import spoken
from ..core.work.routing import may_ask

ENDED_LATELY: Final = timedelta(days=1)
"""For so long the short name of a request that was decided is no word like any other."""


async def knowing_named(bus: Bus, whose: Scope, moment: Moment, event: Event | None) -> Moment:
    """Return the moment, with the requests or goals that the message may mean.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """
    if not isinstance(event, UserMessage):
        return moment
    if words := spoken.read(event.payload.text):
        named = await open_approvals(bus, (whose,), words.called)
        if not named:
            ended = await ended_approval(bus, whose, words.called, moment.now - ENDED_LATELY)
            named = [] if ended is None else [ended]
        return replace(moment, approvals=tuple(named))
    if stop.read(event.payload.text):
        return replace(moment, goals=await read_goals(bus, whose))
    return moment


async def knowing_asked(
    bus: Bus,
    key: SessionKey,
    moment: Moment,
    state: State,
    policy: Policy,
    calls: Sequence[ToolUseBlock],
) -> Moment:
    """Return the moment, with those of the calls that the person was asked for lately: nobody is
    asked for the same again and again by sessions that come and go. A conversation asks again once
    they decided; what one waits for asks always.

    Raises:
        Unavailable: the broker is away, or reading took too long.
    """
    is_conversation = policy.profile.is_conversation
    if not (is_conversation or requests.nobody_watches(key, state.start, policy.profile)):
        return moment
    asking = [call for call in calls if may_ask(moment.tools.get(call.name), call.name)]
    if not asking:
        return moment
    since = moment.now - requests.SAME_AGAIN
    there = await asked_since(bus, key.scope, since, frozenset(call.name for call in asking))
    wanted = {requests.digest_of(call.name, given=call.input) for call in asking}
    known = {
        requests.digest_of(one.tool, given=one.input)
        for one in there
        if one.state == "open" or not is_conversation
    }
    return replace(moment, asked=tuple(sorted(known & wanted)))


class Whereabouts:
    """Through which channel a person wrote last to an agent, in whatever thread: where they are
    (LOOPS L-14)."""

    def __init__(self, bus: Bus, whose: Scope) -> None:
        self._bus = bus
        self._written = SessionKey(whose.owner, whose.agent, "*").in_user
        self.channel: str | None = None
        """Empty: a client of the API. None: nobody looked, and that of the session's own counts."""

    async def update(self, policy: Policy, event: Event | None) -> None:
        """Look before an event is folded on which something may be said unasked, if nothing else
        decides where.

        Raises:
            Unavailable: the broker is away.
        """
        is_free = policy.profile.is_conversation and not (policy.route or policy.homes)
        if policy.channels and is_free and isinstance(event, ToldEvent | TimerFired):
            self.channel = await self._newest()
        elif isinstance(event, UserMessage):
            self.channel = None  # it's the newest itself

    async def _newest(self) -> str | None:
        logs = (await self._bus.layout()).logs
        found = await asyncio.gather(*(self._bus.get_last(log, self._written) for log in logs))
        written = [event for message in found if message and (event := _read(message.data))]
        newest = max(written, key=lambda event: event.created_at, default=None)
        return None if newest is None else newest.payload.channel


def _read(data: bytes) -> UserMessage | None:
    with contextlib.suppress(InvalidInput):
        event = decode_event(data)
        return event if isinstance(event, UserMessage) else None
    return None
