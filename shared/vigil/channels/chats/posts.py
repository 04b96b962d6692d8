"""What a listener of a chat network does with what it hears: stores it once, pairs, refuses.

How far was read is in the bucket CONFIG, stored after what was read by compare-and-set: whoever is
ended in between reads it once more, and it's known by then. Whoever isn't paired gets one refusal
an hour; nothing else comes of what they write.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from msgspec.structs import replace

from ... import crash
from ...backoff import Backoff
from ...bus.kv import KeyValue
from ...contracts.mail.heads import ChatHead
from ...errors import InvalidInput, Unavailable, WrongLastSequence
from ...subjects import token_of
from .. import pairs
from ..contract import ChannelContext, Ear, Inbound
from ..pairs import ChannelPerson
from . import files, place
from .files import Fetch, TakenFiles
from .place import ChatPlace
from .post import Post, mark_of
from .remarks import with_spoken, with_taken

if TYPE_CHECKING:
    from ...bus.bus import Bus

log = structlog.get_logger("vigil.channels")

REFUSAL: Final = (
    "I'm somebody's agent, and I only talk with people who have paired with me. "
    "Ask whoever runs me for a code."
)
PAIRED: Final = "It's you: from now on I hear what you write here, and answer here."
NO_EDITS: Final = "I don't see what was changed in a message: please write it anew."
UNUSABLE: Final = "I couldn't take that in: {reason}."
NO_FILE: Final = "I couldn't take in what you attached: {reasons}."
THREAD_LENGTH: Final = 16
AGAIN: Final = Backoff(0.5, 60.0)
"""How long a server is left alone that was lost."""
REFUSED_S: Final = 60.0
"""After which a token that was refused is read anew, and tried."""

Say = Callable[[str], Awaitable[None]]
"""Says a notice in answer to a post; whether it arrives is nobody's matter."""


class ChatReading:
    """One account's place, and what is done with each post."""

    def __init__(
        self, context: ChannelContext, bus: Bus, ear: Ear, *, account: str, agent: str
    ) -> None:
        self._channel = context.name
        self._clock = context.clock
        self._bus = bus
        self._ear = ear
        self._agent = agent
        self._bucket = KeyValue(bus, pairs.BUCKET)
        of = token_of("channel", context.name), token_of("chat", account)
        self._key = f"{pairs.PLACE_PREFIX}{of[0]}.{of[1]}"
        self._revision = 0
        self._problem = ""
        self.place = ChatPlace()

    # ------------------------------------------------------------ the place

    @classmethod
    async def opened(
        cls, context: ChannelContext, ear: Ear, *, account: str, agent: str
    ) -> ChatReading:
        """Return the reading of an account, from where it was left. Raises: as `store`."""
        if context.bus is None:
            raise Unavailable("there is no bus to tell")
        reading = cls(context, context.bus, ear, account=account, agent=agent)
        await reading._load()
        return reading

    async def _load(self) -> None:
        value, self._revision = await self._bucket.last(self._key)
        try:
            self.place = msgspec.json.decode(value, type=ChatPlace) if value else ChatPlace()
        except msgspec.MsgspecError as error:
            raise Unavailable(f"how far the network was read can't be read: {error}") from error

    async def store(self, mark: str | None = None) -> None:
        """Store how far was read: up to `mark`, or as it is. Raises: Unavailable, BusError."""
        if mark is not None:
            self.place = replace(self.place, next=mark)
        try:
            self._revision = await self._bucket.put(
                self._key, msgspec.json.encode(self.place), expect=self._revision
            )
        except WrongLastSequence as error:
            raise Unavailable("another replica reads this account") from error
        crash.point("chat.place")

    def show(self, state: str, problem: str = "") -> None:
        """Say how it is."""
        now = self.place
        counts = {"outside": now.outside, "refused": now.refused, "heard_at": now.heard_at}
        self._ear.show(state, problem or self._problem, counts)

    def lost(self, state: str, error: Exception, wait_s: float) -> None:
        """Say that the network's server was lost, and for how long it's left alone."""
        self.show(state, str(error))
        about = {"channel": self._channel, "error": str(error), "wait_s": wait_s}
        log.info("network lost", action="chat.lost", **about)

    # ------------------------------------------------------------ who is who

    async def people(self) -> list[ChannelPerson]:
        """Return who is paired, or waits for a code. Raises: Unavailable, BusError."""
        return await pairs.people_of(self._bus, self._channel)

    async def is_welcome(self, address: str) -> bool:
        """Whether somebody is paired, or has a code to send."""
        people = await self.people()
        is_known = pairs.user_of(people, address) is not None
        return is_known or pairs.has_open_code(people, address, self._clock.now())

    async def refuse(self, address: str, say: Say, *, room: str = "") -> None:
        """Count what a stranger wants, and tell them once an hour that nobody hears them.

        Args:
            room: where they wrote, if several are there.
        """
        self.place, is_told = place.refusing(self.place, address, self._clock.now(), room=room)
        if is_told:
            await self.store()  # first, so that a crash in between tells them nothing twice
            await say(REFUSAL)

    # ------------------------------------------------------------ posts

    async def take(self, post: Post, say: Say, fetch: Fetch | None = None) -> bool:
        """Take one post in, if it's for us; whether a person's message is stored now.

        Args:
            fetch: gets the files of it.

        Raises:
            Unavailable, BusError: it can't be stored now.
            CallFailed: the server doesn't know the account any more.
        """
        is_for_us = post.is_direct or post.is_named
        if not is_for_us or place.is_heard(self.place, post.id):
            return False
        people = await self.people()
        person = next((one for one in people if pairs.user_of([one], post.author)), None)
        is_stored = False
        if person is None:
            await self._of_stranger(post, people, say)
        else:
            is_stored = await self._hear(post, person, say, fetch)
        self.place = place.heard(self.place, post.id)
        return is_stored

    async def writing(self, post: Post) -> AsyncGenerator[str]:
        """Yield how the answer to a person's post stands, where nobody else is in the room.

        Raises:
            Unavailable, BusError: the broker can't be asked.
        """
        user = pairs.user_of(await self.people(), post.author)
        if user is None or not post.is_direct:
            return
        async with contextlib.aclosing(self._ear.writing(user, self._agent, "")) as states:
            async for one in states:
                yield one

    async def _of_stranger(self, post: Post, people: list[ChannelPerson], say: Say) -> None:
        # In front of others a code would be everybody's.
        if post.is_direct:
            now = self._clock.now()
            user = await pairs.pair(self._bus, people, post.author, post.text, now, room=post.room)
            if user is not None:
                about = {"channel": self._channel, "user": user}
                log.info("paired", action="chat.paired", **about)
                await say(PAIRED)
                return
        await self.refuse(post.author, say, room="" if post.is_direct else post.room)

    async def _hear(self, post: Post, person: ChannelPerson, say: Say, fetch: Fetch | None) -> bool:
        if post.is_edit:
            await say(NO_EDITS)
            return False
        if post.is_direct:
            await self._note_room(post, person)
        elif not (post.text or post.files):
            return False
        found = TakenFiles()
        if (post.files or post.forwarded) and fetch is not None:
            found = await files.taken(post, person.user, self._ear, fetch)
        if found.refused:
            await say(NO_FILE.format(reasons="; ".join(found.refused)))
        if not (post.text or found.files or found.spoken):
            self._note_refusal(person, "; ".join(found.refused))
            return False
        try:
            await self._ear.hear(self._inbound(post, person, found))
        except InvalidInput as error:
            self._note_refusal(person, str(error))
            await say(UNUSABLE.format(reason=f"{error.field} {error.reason}"))
            return False
        self._problem = ""
        self.place = replace(self.place, heard_at=int(self._clock.now().timestamp()))
        crash.point("chat.heard")
        return True

    def _note_refusal(self, person: ChannelPerson, reason: str) -> None:
        self.place = replace(self.place, refused=self.place.refused + 1)
        self._problem = f"a message of {person.user} was not taken in: {reason}"
        about = {"channel": self._channel, "user": person.user, "error": reason}
        log.warning("message refused", action="chat.unusable", **about)

    async def _note_room(self, post: Post, person: ChannelPerson) -> None:
        known = pairs.paired_with(person, post.author)
        if known is not None and known.room != post.room:
            await pairs.store_room(self._bus, person, post.author, post.room)

    def _inbound(self, post: Post, person: ChannelPerson, found: TakenFiles) -> Inbound:
        apart = token_of("room", self._channel, post.room)[:THREAD_LENGTH]
        return Inbound(
            id=token_of("post", post.room, post.id),
            user=person.user,
            agent=self._agent,
            thread="" if post.is_direct else f"room-{apart}",
            text=with_taken(with_spoken(post.text, found.spoken), found.kinds, found.refused),
            files=found.files,
            reply_to=post.reply_to,
            replied_mark=""
            if post.replied is None
            else mark_of(self._channel, post.room, post.replied.message),
            replied_at=None if post.replied is None else post.replied.at,
            chat=ChatHead(
                address=post.author,
                room=post.room,
                message=post.id,
                is_direct=post.is_direct,
            ),
        )
