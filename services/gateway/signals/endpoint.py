"""GET /api/signals: what happens, as Server-Sent Events (SPEC C-4, P-5).

The id of an event is its sequence in SIGNALS, so a client that comes back with Last-Event-ID
misses nothing and gets nothing twice: it first reads what is stored, at its own pace, then steps
over to the feed that all readers share. One that reads too slowly is ended and comes back the
same way. A stream ends, too, when its token does, and when the gateway stops.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import structlog
from fastapi import Depends, Header, Query, Request, Response

from vigil.background.end import end_tasks
from vigil.bus.bus import BusError, Message
from vigil.errors import InvalidInput, Unavailable
from vigil.settings.tokens import Principal
from vigil.signals.kinds import KINDS, wanted
from vigil.subjects import SessionKey

from ..access import listed, readable_session
from ..callers import Caller, Shared, User
from ..clients import until_gone
from ..http.wire import KEY_SCHEMA, PART_SCHEMA
from ..state.edge import Edge
from ..state.feed import HEARTBEAT, STREAM, SignalReader
from ..state.selection import SEQ_DIGITS_MAX, Selection, event_of, position_of, select
from .streams import HEAD, MEDIA_TYPE, send_end, send_more

log = structlog.get_logger("vigil.gateway")

PAGE: Final = 500
RETRY_MS: Final = 1000


async def _selection(
    request: Request,
    caller: Caller,
    agent: Annotated[
        str | None, Query(description="Of this agent only", json_schema_extra=PART_SCHEMA)
    ] = None,
    kind: Annotated[
        str | None,
        Query(
            description=f"One of {', '.join(KINDS)}; or half of one: message.*",
            json_schema_extra={"enum": wanted()},
        ),
    ] = None,
    session: Annotated[
        str | None, Query(description="Of this session only", json_schema_extra=KEY_SCHEMA)
    ] = None,
    user: User = None,
) -> Selection:
    whose = listed(caller, user)
    key: SessionKey | None = None if session is None else readable_session(session, caller)
    return select(whose=whose, agent=agent, kind=kind, session=key)


async def get_signals(
    edge: Shared,
    caller: Caller,
    selection: Annotated[Selection, Depends(_selection)],
    after: Annotated[
        str | None,
        Query(
            description="Begin after this event; 0: with the oldest kept",
            json_schema_extra={"pattern": f"^[0-9]{{1,{SEQ_DIGITS_MAX}}}$"},
        ),
    ] = None,
    follow: Annotated[bool, Query(description="false: end after what is stored")] = True,
    last_event_id: Annotated[
        str | None, Header(description="Begin after this event; wins over `after`")
    ] = None,
) -> Response:
    """Follow what happens, as Server-Sent Events: from now on, or after an event.

    `id` is the place in the stream, `event` the kind, `data` a Signal. A comment comes every 15 s.
    """
    begin: int | None = None
    if last_event_id:
        begin = position_of("Last-Event-ID", last_event_id)
    elif after is not None:
        begin = position_of("after", after)
    elif not follow:
        begin = 0
    return SignalStream(edge, caller, selection, begin, follow=follow)


class SignalStream(Response):
    """One open stream."""

    def __init__(
        self,
        edge: Edge,
        principal: Principal,
        selection: Selection,
        after: int | None,
        *,
        follow: bool,
    ) -> None:
        super().__init__(media_type=MEDIA_TYPE)
        self._edge = edge
        self._feed = edge.feed
        self._principal = principal
        self._after = after
        self._follow = follow
        self._reader = SignalReader(selection, edge.config.socket_queue_max)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with self._edge.places.hold(self._principal.user):
            await self._run(receive, send)

    async def _run(self, receive: Any, send: Any) -> None:
        await self._feed.open()  # before the head: whoever can't be served gets a 503
        tasks: list[asyncio.Task[None]] = []
        try:
            tasks = [
                asyncio.create_task(part, name="gateway-signal-stream")
                for part in (self._serve(send), until_gone(receive))
            ]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except OSError:
            pass  # the client went
        finally:
            await end_tasks(*tasks)
            self._feed.leave(self._reader)
            await self._feed.close()

    async def _serve(self, send: Any) -> None:
        begin = self._feed.seq if self._after is None else self._after
        if self._after is None:
            self._feed.join(self._reader, begin)
        await send(HEAD)
        # A place to come back to, also for those who are cut off before anything happened.
        await send_more(send, b"retry: %d\nid: %d\n\n" % (RETRY_MS, begin))
        try:
            if self._after is not None:
                await self._catch_up(send, self._after)
            if self._follow:
                await self._read_along(send)
        except (Unavailable, BusError) as error:
            # The head is sent: all that is left is to end, and the client comes back.
            log.warning("stream ended", action="gateway.unavailable", error=str(error))
        await send_end(send)

    async def _catch_up(self, send: Any, after: int) -> None:
        """Send what is stored after `after`, then join the feed without a gap."""
        seen_to = after
        while self._may_go_on():
            handed_out = self._feed.seq
            page, has_more = await self._edge.bus.page(
                STREAM, self._reader.selection.subjects, seen_to + 1, limit=PAGE
            )
            if not self._may_go_on():
                return
            if page:
                await send_more(send, b"".join(map(_chunk_of, page)))
                seen_to = page[-1].seq
            if has_more:
                continue
            seen_to = max(seen_to, handed_out)
            if not self._follow or self._feed.join(self._reader, seen_to):
                return

    async def _read_along(self, send: Any) -> None:
        while self._may_go_on() and not self._reader.has_overflown:
            chunk = await self._reader.take()
            if chunk and self._may_go_on():  # the token may have ended while it waited
                await send_more(send, chunk)

    def _may_go_on(self) -> bool:
        edge = self._edge
        is_let_in = edge.tokens.find_id(self._principal.token_id, edge.clock.now()) is not None
        return is_let_in and self._feed.is_alive


def _chunk_of(message: Message) -> bytes:
    try:
        return event_of(message.seq, message.subject, message.data).chunk
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=message.seq, error=str(error))
        return HEARTBEAT
