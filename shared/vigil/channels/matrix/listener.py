"""What follows the rooms of an account: what people who are paired write becomes their messages.

A loop of /sync, of which each answer is dealt with whole before its mark is stored; asked for once
more, the server tells the same again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import structlog
from nio import Api

from ...errors import InvalidInput
from .. import pairs
from ..answers import pause_s
from ..chats.calls import CallFailed
from ..chats.fields import text_in
from ..chats.post import Post, PostFile
from ..chats.posts import AGAIN, REFUSED_S, ChatReading
from ..contract import ChannelContext, Ear
from ..pairs import ChannelPerson
from . import happenings
from .composition import RoomEvent, notice
from .happenings import MatrixInvitation, RoomMessage, RoomReaction, RoomUpdate, SyncAnswer
from .verdicts import HomeserverReply
from .wire import Homeserver, NoReply, NotReached, Request

if TYPE_CHECKING:
    from .section import MatrixAccount

log = structlog.get_logger("vigil.channels")

ASK_S: Final = 30.0
WHOAMI: Final = ("GET", Api._build_path(["account", "whoami"]))
GAP_PAGES_MAX: Final = 100
PAGE: Final = 100
TYPING_MS: Final = 20_000
ENCRYPTED: Final = (
    "I can't read here: this room is encrypted, and no message in it reaches me. Please make a "
    "room without encryption (it can't be switched off in this one), and invite me there."
)


class _ServerAway(Exception):
    """The server can't tell now."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class _TokenRefused(Exception):
    """The server lets the account not in."""


class MatrixListener:
    """One account's way in."""

    def __init__(self, account: MatrixAccount, context: ChannelContext) -> None:
        self._account = account
        self._context = context

    async def listen(self, ear: Ear) -> None:
        """Read until cancelled; after a failure again, later and later."""
        account = self._account
        reading = await ChatReading.opened(
            self._context, ear, account=account.user_id, agent=account.agent
        )
        server = Homeserver(account.homeserver, account.ca_file, self._context.home)
        try:
            await self._follow(reading, server)
        finally:
            await server.close()

    async def _follow(self, reading: ChatReading, server: Homeserver) -> NoReturn:
        failures = 0
        while True:
            rooms = _Rooms(self._account, self._context, reading, server)
            try:
                await rooms.run()
            except (_TokenRefused, InvalidInput) as error:
                wait_s = REFUSED_S
                reading.show("refused", f"{error}")
                about = {"channel": self._context.name, "error": str(error)}
                log.warning("token refused", action="chat.refused", **about)
            except (_ServerAway, NotReached, NoReply) as error:
                failures = 1 if rooms.was_heard else failures + 1
                wait_s = pause_s(AGAIN.after(failures), getattr(error, "wait_s", 0.0))
                reading.lost("away", error, wait_s)
            await asyncio.sleep(wait_s)


class _Rooms:
    """What is done from one failure to the next."""

    def __init__(
        self,
        account: MatrixAccount,
        context: ChannelContext,
        reading: ChatReading,
        server: Homeserver,
    ) -> None:
        self.was_heard = False
        self._account = account
        self._own = account.user_id
        self._clock = context.clock
        self._reading = reading
        self._server = server
        self._token = account.token(context.home)
        self._few: dict[str, frozenset[str]] = {}
        """Who is in a room, at most three of them; until somebody comes or goes."""

    async def run(self) -> NoReturn:
        """Follow the rooms.

        Raises:
            _ServerAway, _TokenRefused, NotReached, NoReply: how the server fails.
            Unavailable, BusError: the broker is away.
        """
        reply = await self._asked(WHOAMI)
        who = text_in(reply.data, "user_id")
        if who != self._own:
            raise _TokenRefused(f"the token is of {who or 'nobody'}, not of {self._own}")
        while True:
            since = self._reading.place.next
            update = await self._sync(since)
            self.was_heard = True
            await self._take(update, is_first=not since)
            self._reading.show("listening")

    async def _sync(self, since: str) -> SyncAnswer:
        """Ask what is new, and wait for it for a while."""
        wait_ms = int(self._account.sync_s * 1000) if since else 0
        asked = Api.sync(
            "", since=since or None, timeout=wait_ms or None, filter=happenings.filter_of()
        )
        reply = await self._ask(asked, ASK_S + wait_ms / 1000)
        if reply.status == 400 and since:
            # A mark that the server doesn't know: what was dealt with is known by its id.
            log.warning("mark refused", action="chat.mark_refused", answer=reply.in_words)
            return await self._sync("")
        _check(reply)
        update = happenings.sync_answer_of(reply.data, self._own)
        if update is None:
            raise _ServerAway(f"an answer without a mark: {reply.in_words}")
        return update

    async def _take(self, update: SyncAnswer, *, is_first: bool) -> None:
        for invitation in update.invitations:
            await self._answer(invitation)
        # What lay there before the account was ever read isn't taken in.
        if not is_first:
            for room in update.rooms:
                await self._take_room(room)
        if update.next != self._reading.place.next:
            await self._reading.store(update.next)

    # ------------------------------------------------------------ rooms

    async def _answer(self, invitation: MatrixInvitation) -> None:
        """Go where somebody invites who is paired, or has a code; to nobody else's room."""
        room, inviter = invitation.room, invitation.inviter
        if await self._reading.is_welcome(inviter):
            method, path = Api.join("", room)
            reply = await self._ask((method, path, "{}"), ASK_S)
            if reply.status >= 500 or reply.status == 429:
                raise _ServerAway(reply.in_words, reply.wait_s)
            if reply.is_ok:
                await self._warn_if_encrypted(room)
            return
        reason = ""

        async def say(text: str) -> None:
            nonlocal reason
            reason = text

        await self._reading.refuse(inviter, say)
        method, path = Api.room_leave("", room)
        await self._ask((method, path, json.dumps({"reason": reason} if reason else {})), ASK_S)

    async def _warn_if_encrypted(self, room: str) -> None:
        """Say at once that nothing is read there: a code that was sent there would be waited for
        in vain. Programs encrypt rooms of two by themselves."""
        asked = Api.room_get_state_event("", room, "m.room.encryption")
        if (await self._ask(asked, ASK_S)).is_ok:
            await self._say(room, f"{room} came in", ENCRYPTED)

    async def _take_room(self, update: RoomUpdate) -> None:
        # Who came or went may stand in what was left out.
        if update.has_moved or update.before:
            self._few.pop(update.room, None)
        events: Sequence[dict[str, Any]] = update.events
        if update.before and not update.has_joined:
            events = [*await self._between(update), *events]
        people = await self._reading.people()
        for event in events:
            reaction = happenings.reaction_of(event)
            if reaction is not None and await self._take_reaction(reaction, update.room, people):
                await self._reading.store()
            message = happenings.message_of(event)
            if message is None or message.author == self._own or message.kind == "notice":
                continue
            if update.has_joined and self._is_old(message):
                continue
            if await self._take_message(message, update.room, people):
                await self._reading.store()
                people = await self._reading.people()

    def _is_old(self, message: RoomMessage) -> bool:
        """Whether a message stood in a room before the account was wanted there."""
        # Reckoned in numbers: who sends it says when, and that need be no moment of any calendar.
        since = self._clock.now() - pairs.CODE_HOLDS
        return message.at_ms < since.timestamp() * 1000

    async def _between(self, update: RoomUpdate) -> list[dict[str, Any]]:
        """Return what is new before the newest that the server told, the oldest first."""
        found: list[dict[str, Any]] = []
        start = update.before
        for _ in range(GAP_PAGES_MAX):
            asked = Api.room_messages(
                "",
                update.room,
                start=start,
                end=self._reading.place.next,
                limit=PAGE,
                message_filter={"types": list(happenings.TYPES)},
            )
            reply = await self._asked(asked)
            found += happenings.events_of(reply.data, "chunk")
            start = text_in(reply.data, "end")
            if not start:
                break
        return found[::-1]

    # ------------------------------------------------------------ messages

    async def _take_message(
        self, message: RoomMessage, room: str, people: Sequence[ChannelPerson]
    ) -> bool:
        say = partial(self._say, room, message.id)
        is_known = pairs.user_of(people, message.author) is not None
        is_direct = await self._members(room) == {self._own, message.author}
        if message.kind == "encrypted":
            if await self._reading.is_welcome(message.author):
                # Among others it may be for anybody.
                often = "%Y-%m-%d %H" if is_direct else "%Y-%m-%d"
                await self._say(room, f"{room} {self._clock.now():{often}}", ENCRYPTED)
            return False
        effect = await self._replied(room, message) if is_known else None
        is_named = happenings.is_named(message, self._own, self._account.name)
        text = message.text
        if not is_direct:
            text = text[happenings.addressed(text, self._own, self._account.name) :]
        post = Post(
            id=message.id,
            author=message.author,
            room=room,
            text=text,
            is_direct=is_direct,
            is_named=is_named or effect is not None,
            is_edit=message.is_edit,
            reply_to=effect,
            files=message.files,
        )
        is_stored = await self._reading.take(post, say, self._fetch)
        if is_stored:
            method, path, body = Api.room_typing("", room, self._own, True, TYPING_MS)
            await self._ask((method, path, body), ASK_S)
        return is_stored

    async def _fetch(self, file: PostFile, bytes_max: int) -> bytes:
        """Get a file. Raises: CallFailed, InvalidInput."""
        try:
            return await self._server.file(self._token, file.place, bytes_max)
        except CallFailed as failed:
            if failed.is_final:
                await self._asked(WHOAMI)  # else it's said to be the file's fault
            raise

    async def _take_reaction(
        self, reaction: RoomReaction, room: str, people: Sequence[ChannelPerson]
    ) -> bool:
        """Take a sign to a request as the verdict that it is, where nobody else could have put it;
        whether it is stored now."""
        is_known = pairs.user_of(people, reaction.author) is not None
        if not is_known or await self._members(room) != {self._own, reaction.author}:
            return False
        reply = await self._ask(Api.room_get_event("", room, reaction.to), ASK_S)
        asked = happenings.request_in(reply.data, self._own) if reply.is_ok else ""
        if not asked:
            return False
        post = Post(
            id=reaction.id,
            author=reaction.author,
            room=room,
            text=f"{reaction.verdict} {asked}",
            is_direct=True,
        )
        return await self._reading.take(post, partial(self._say, room, reaction.id))

    async def _members(self, room: str) -> frozenset[str]:
        if room not in self._few:
            reply = await self._ask(Api.joined_members("", room), ASK_S)
            if reply.status >= 500 or reply.status == 429:
                raise _ServerAway(reply.in_words, reply.wait_s)
            if not reply.is_ok:
                return frozenset()  # nobody knows: not kept, so that it's asked again
            self._few[room] = frozenset(sorted(happenings.members_of(reply.data))[:3])
        return self._few[room]

    async def _replied(self, room: str, message: RoomMessage) -> str | None:
        """Return the effect that said what a message replies to; None: the account didn't."""
        if not message.replies_to:
            return None
        reply = await self._ask(Api.room_get_event("", room, message.replies_to), ASK_S)
        found = happenings.effect_in(reply.data, self._own) if reply.is_ok else None
        return None if found is None else found[0]

    async def _say(self, room: str, about: str, text: str) -> None:
        event: RoomEvent = notice(text, f"{about} {text}")
        method, path, _ = Api.room_send("", room, "m.room.message", {}, event.transaction)
        await self._ask((method, path, event.body), ASK_S)

    # ------------------------------------------------------------ asking

    async def _asked(self, request: Request) -> HomeserverReply:
        """Ask for what has to be there. Raises: _ServerAway, _TokenRefused, NotReached, NoReply."""
        reply = await self._ask(request, ASK_S)
        _check(reply)
        return reply

    async def _ask(self, request: Request, timeout_s: float) -> HomeserverReply:
        """Ask for what may be refused. Raises: _TokenRefused, NotReached, NoReply."""
        reply = await self._server.ask(self._token, request, timeout_s=timeout_s)
        if reply.is_token_refused:
            raise _TokenRefused(f"the server refuses the access token: {reply.in_words}")
        return reply


def _check(reply: HomeserverReply) -> None:
    """Raises: _ServerAway."""
    if not reply.is_ok:
        raise _ServerAway(reply.in_words, reply.wait_s)
