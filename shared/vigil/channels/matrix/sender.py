"""What sends a message into a room, with a person whom its receiver paired.

Each try has the same transactions and the same bytes, so the server stores what comes again once.
It forgets them after a day, and with the device: what isn't fresh is looked for in the room first.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from nio import Api

from ...contracts import Attachment, Said
from ...errors import InvalidInput, VigilError
from ..answers import Answer, NotTaken, Taken, Unclear
from ..chats.calls import CallFailed
from ..chats.fields import text_in
from ..chats.files import with_bytes
from ..chats.partner import ChatPartner, partner_of
from ..contract import ChannelContext
from . import happenings
from .composition import RoomEvent, composed, file_event
from .happenings import MXC
from .verdicts import HomeserverReply, answer_of
from .wire import Homeserver, NoReply, NotReached

if TYPE_CHECKING:
    from .section import MatrixAccount

FRESH: Final = timedelta(seconds=60)
"""What is older may be a repeat that the server doesn't know any more."""
SKEW: Final = timedelta(minutes=10)
"""By which the server's clock may differ."""
PAGE: Final = 100
PAGES_MAX: Final = 50


class RoomPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a message goes."""

    room: str
    address: str
    """With whom."""
    is_direct: bool
    reply_to: str = ""


class _Ended(Exception):
    """A try is over."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


class MatrixSender:
    """One account's way out."""

    def __init__(self, account: MatrixAccount, context: ChannelContext) -> None:
        self._account = account
        self._context = context
        self._server = Homeserver(account.homeserver, account.ca_file, context.home)

    def __repr__(self) -> str:
        return f"MatrixSender({self._account.user_id!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        try:
            partner = await partner_of(self._context, said)
            token = self._account.token(self._context.home)
        except InvalidInput as error:
            return NotTaken(reason=str(error))
        except VigilError as error:
            return NotTaken(reason=f"whom it is for can't be looked up: {error}")
        place = None if partner is None else place_of(partner)
        if place is None:
            reason = f"no room is known; see `vigil channels pair {self._context.name}`"
            return NotTaken(reason=reason, is_final=True)
        within_s = self._account.timeout_s
        try:
            async with asyncio.timeout(within_s):
                return await self._sent(said, place, token)
        except _Ended as end:
            return end.answer
        except TimeoutError:
            return Unclear(reason=f"not all of it within {within_s:g} s")

    async def close(self) -> None:
        await self._server.close()

    # ------------------------------------------------------------ one try

    async def _sent(self, said: Said, place: RoomPlace, token: str) -> Answer:
        await self._check_room(place, token)
        try:
            said, files = await with_bytes(self._context, said)
        except CallFailed as failed:
            raise _Ended(failed.answer) from failed
        events = composed(
            said,
            self._context.console_url,
            reply_to=place.reply_to,
            to="" if place.is_direct else place.address,
        )
        there: set[int] = set()
        if self._context.clock.now() - said.at > FRESH:
            there = await self._found(said, place, token)
        for number, event in enumerate(events, 1):
            if number in there:
                continue
            answer = answer_of(await self._put(place, event, token))
            if not isinstance(answer, Taken):
                return answer
        for number, (file, data) in enumerate(files, len(events) + 1):
            if number in there:
                continue
            event = file_event(said.id, file, await self._uploaded(file, data, token), number)
            answer = answer_of(await self._put(place, event, token))
            if not isinstance(answer, Taken):
                return answer
        count = len(events) + len(files)
        return Taken(reason="" if count == 1 else f"{count} messages")

    async def _uploaded(self, file: Attachment, data: bytes, token: str) -> str:
        """Have the server keep a file -> where. Of a repeat another copy stays there, which no
        event names. Raises: _Ended."""
        path = f"/_matrix/media/v3/upload?filename={quote(file.name, safe='')}"
        reply = await self._query(("POST", path, data), token, type_=file.type)
        place = text_in(reply.data, "content_uri")
        if MXC.fullmatch(place) is None:
            raise _Ended(NotTaken(reason="the server doesn't say where it keeps the file"))
        return place

    async def _put(self, place: RoomPlace, event: RoomEvent, token: str) -> HomeserverReply:
        method, path, _ = Api.room_send("", place.room, "m.room.message", {}, event.transaction)
        return await self._asked((method, path, event.body), token)

    async def _asked(self, request: Any, token: str) -> HomeserverReply:
        """Ask. Raises: _Ended, there was no answer."""
        try:
            return await self._server.ask(token, request, timeout_s=self._account.timeout_s)
        except NotReached as error:
            raise _Ended(NotTaken(reason=str(error))) from error
        except NoReply as error:
            raise _Ended(Unclear(reason=str(error))) from error

    async def _query(
        self, request: Any, token: str, *, type_: str = "application/json"
    ) -> HomeserverReply:
        """Look something up, or have it kept, which says nothing in a room. Raises: _Ended, there
        was no answer."""
        within_s = self._account.timeout_s
        try:
            reply = await self._server.ask(token, request, timeout_s=within_s, type_=type_)
        except (NotReached, NoReply) as error:
            raise _Ended(NotTaken(reason=str(error))) from error
        if reply.is_ok or reply.status == 404:
            return reply
        answer = answer_of(reply)
        if isinstance(answer, Unclear):
            answer = NotTaken(reason=answer.reason, status=answer.status)
        raise _Ended(answer)

    async def _check_room(self, place: RoomPlace, token: str) -> None:
        """Check that a room is what it was: what is said to one person is for nobody else.

        Raises: _Ended.
        """
        reply = await self._query(Api.joined_members("", place.room), token)
        members = happenings.members_of(reply.data)
        reason = ""
        if place.address not in members:
            reason = "the person is no longer in the room"
        elif place.is_direct and members != {place.address, self._account.user_id}:
            reason = "others are in the room that was the person's own"
        if not reason:
            request = Api.room_get_state_event("", place.room, "m.room.encryption")
            if (await self._query(request, token)).is_ok:
                reason = "the room is encrypted, which isn't spoken here"
        if reason:
            raise _Ended(NotTaken(reason=reason, is_final=True))

    async def _found(self, said: Said, place: RoomPlace, token: str) -> set[int]:
        """Return which parts of a message are in the room, by looking back to when it was said.

        Raises: _Ended, it can't be told.
        """
        until_ms = int((said.at - SKEW).timestamp() * 1000)
        found: set[int] = set()
        start: str | None = None
        for _ in range(PAGES_MAX):
            request = Api.room_messages("", place.room, start=start, limit=PAGE)
            reply = await self._query(request, token)
            events = happenings.events_of(reply.data, "chunk")
            for event in events:
                effect = happenings.effect_in(event, self._account.user_id)
                if effect is not None and effect[0] == said.id:
                    found.add(effect[1])
            start = text_in(reply.data, "end")
            if not start or any(_is_before(event, until_ms) for event in events):
                return found
        reason = f"whether it is in the room can't be told: {PAGES_MAX * PAGE} events came since"
        raise _Ended(NotTaken(reason=reason, is_final=True))


def place_of(partner: ChatPartner) -> RoomPlace | None:
    """Return where it is said: in the room where it was asked, else in the person's own; None: that
    isn't known."""
    head, paired = partner.head, partner.paired
    if head is not None:
        reply_to = "" if head.is_direct else head.message
        return RoomPlace(
            room=head.room, address=head.address, is_direct=head.is_direct, reply_to=reply_to
        )
    if not paired.room:
        return None
    return RoomPlace(room=paired.room, address=paired.address, is_direct=True)


def _is_before(event: dict[str, Any], until_ms: int) -> bool:
    at_ms = event.get("origin_server_ts")
    return isinstance(at_ms, int) and at_ms < until_ms
