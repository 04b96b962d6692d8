"""One request: what is new in it is said to the agent, once, and what comes of it is followed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

import msgspec

from vigil.attachments import store
from vigil.attachments.examine import examined
from vigil.bus.bus import Message
from vigil.contracts import Turn
from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, SessionKey, token_of
from vigil.texts.streamed import StreamedAnswer

from ..attachments import keep
from ..http.decide import Exchange, keyed_event_id
from ..http.problem import Problem, erasing
from ..http.wire import Accepted, TokenFrame
from ..sessions.chat import listening, take
from ..state.edge import Edge
from ..versions.endpoint import VersionRequest, replace
from .called import CallerCalls, CallOver, asked_by, counted, words_of
from .lent import AskedCall
from .past import CallPlace, Past, ResponsePlace, ThreadPlace
from .request import NewMessage, after
from .wire import CompletionUsage

THREAD: Final = "chat-"
"""Begins the names of conversations that begin here."""
CHAT: Final = "chatcmpl-"
RESPONSE: Final = "resp_"
"""Begin the ids of answers. Programs know a conversation by a response's."""
_frame: Final = msgspec.json.Decoder(TokenFrame).decode


class AnswerSoFar:
    """What there is of an answer."""

    def __init__(self, id_: str, created: int) -> None:
        self.id = id_
        """Empty: it isn't begun."""
        self.created = created
        """Seconds since 1970."""
        self.spoken = StreamedAnswer()
        self.calls: tuple[AskedCall, ...] = ()
        """What the program is to run: then the answer is over for now."""
        self.usage = CompletionUsage()


class CompletionRun(AnswerSoFar):
    """What is said to an agent over this interface, and its answer as far as it is there."""

    def __init__(
        self,
        edge: Edge,
        caller: Principal,
        whose: Scope,
        asked: NewMessage,
        parent: str | None,
        prefix: str,
        previous: str | None = None,
    ) -> None:
        self._edge = edge
        self._caller = caller
        self._whose = whose
        self._asked = asked
        self._parent = parent
        self._prefix = prefix
        self._previous = previous
        self._past = Past(edge.bus, caller.user)
        self._given = CallerCalls(edge, caller, whose, self._past)
        self._is_taken = False
        """Whether what was stored is taken up. Of results another program's may have been first."""
        super().__init__("", int(edge.clock.now().timestamp()))

    async def pieces(self) -> AsyncGenerator[str]:
        """Say it, and yield the answer piece by piece, up to its end.

        Raises:
            InvalidInput: an image can't be used.
            Problem: it isn't taken (now).
        """
        given = tuple(dict.fromkeys(self._asked.files))
        if len(given) > keep.ATTACHMENTS_MAX:  # before any of them is kept
            reason = f"must be at most {keep.ATTACHMENTS_MAX}, are {len(given)}"
            raise InvalidInput("attachments", reason)
        files = [await self._kept(at, data) for at, data in enumerate(given)]
        begun = await self._begun(files)
        self._is_taken = begun.id == begun.followed.event_id
        self.id = f"{self._prefix}{begun.id}"
        if self._prefix == RESPONSE:
            await self._past.note_response(self.id, self._place(begun))
        is_over = False
        try:
            heard = listening(self._edge, begun.session, begun.followed)
            async with heard as (exchange, following):
                while not self._is_taken or not (exchange.is_over or self.calls):
                    piece = self._take(exchange, begun, await following())
                    if piece:
                        yield piece
                is_over = exchange.is_over
        finally:
            await self._note(begun, is_over=is_over)

    # ------------------------------------------------------------ saying

    async def _kept(self, at: int, data: bytes) -> str:
        """Keep an image as if it had been uploaded; return its hash."""
        edge, user = self._edge, self._caller.user
        if edge.switches.is_erasing(user):
            raise erasing()
        edge.intake.room.check_disk()
        about = await asyncio.to_thread(examined, f"image-{at + 1}", data)
        await edge.quota.check(user, about)
        await store.upload(edge.bus, user, about, data)
        return about.hash

    async def _begun(self, files: list[str]) -> BegunRun:
        """Store what is new: of results and words the results first, which may be old by now."""
        asked = self._asked
        if asked.results and asked.whole == asked.past:
            given = await self._given.give(asked.results, self._parent)
            place = given.place
            return BegunRun(
                given.session, given.event_id, given.followed, place.request, place.count
            )
        if asked.results:
            with contextlib.suppress(CallOver):
                await self._given.give(asked.results, self._parent)
        count = await self._past.answered(self._whose, asked.request)
        session, accepted = await self._said(files, count)
        return BegunRun(session, accepted.event_id, accepted, asked.request, count)

    async def _said(self, files: list[str], count: int) -> tuple[SessionKey, Accepted]:
        """Store what is new; the same request again, until it was answered, stores nothing."""
        asked = self._asked
        known = await self._past.place(self._whose, asked.past) if asked.past else None
        key = f"v1 {asked.request} {count}"
        if known is None:
            name = token_of("completions", self._caller.user, asked.request, str(count))
            session = SessionKey(self._whose.owner, self._whose.agent, f"{THREAD}{name[:16]}")
            return session, await self._accepted(session, files, key)
        session = SessionKey(self._whose.owner, self._whose.agent, known.thread)
        if known.next_seq and not files and await self._is_other(session, known.next_seq, key):
            accepted = await self._instead(session, known.next_seq, key)
        else:
            accepted = await self._accepted(session, files, key)
        place = ThreadPlace(thread=known.thread, next_seq=accepted.seq)
        await self._past.note(self._whose, asked.past, place)
        return session, accepted

    async def _is_other(self, session: SessionKey, seq: int, key: str) -> bool:
        """Whether what was said next is another request than this one."""
        stored = await self._edge.bus.get_of(session, seq)
        mine = keyed_event_id(self._caller.user, str(session), key)
        return stored is not None and mine.encode() not in stored.data

    async def _instead(self, session: SessionKey, seq: int, key: str) -> Accepted:
        """Say it in the place of what was said there before: it was changed, or is asked anew."""
        wanted = VersionRequest(message=seq, text=self._asked.text, idempotency_key=key)
        return await replace(
            self._edge, self._caller, session, wanted, self._parent, self._asked.tools
        )

    async def _accepted(self, session: SessionKey, files: list[str], key: str) -> Accepted:
        edge, user = self._edge, self._caller.user
        return await keep.accepted(
            edge,
            user,
            session,
            files,
            lambda named: edge.intake.accept(
                user,
                session,
                self._asked.text,
                field="messages",
                key=key,
                attachments=named,
                caller=self._asked.tools,
                parent=self._parent,
            ),
        )

    # ------------------------------------------------------------ following

    def _take(self, exchange: Exchange, begun: BegunRun, event: str | Message) -> str:
        """Take in a token or a record; return what more of the answer there is. Raises:
        InvalidInput, what the program told came too late."""
        if isinstance(event, str):
            frame = _frame(event)
            return self.spoken.token(frame.turn, frame.attempt, frame.text)
        before = len(exchange.said)
        record = take(exchange, begun.session, event)
        if isinstance(record, Turn):
            self.usage = counted(self.usage, record.usage)
            self.calls = tuple(asked_by(record, exchange))
            if not self._is_taken and begun.id in record.ended:
                self._is_taken = True
                if any(note.code == "late_result" for note in record.notes):
                    raise CallOver(self._asked.results[0].field)
            return self.spoken.said(words_of(record)) if self.calls else ""
        return "".join(self.spoken.said(one.text) for one in exchange.said[before:])

    def _place(self, begun: BegunRun) -> ResponsePlace:
        return ResponsePlace(
            owner=begun.session.user,
            agent=begun.session.agent,
            thread=begun.session.thread,
            event_id=begun.followed.event_id,
            seq=begun.followed.seq,
            created=self.created,
            previous=self._previous,
        )

    async def _note(self, begun: BegunRun, *, is_over: bool) -> None:
        """Note where the conversation stands by what its program has of it: also a part of an
        answer, if it listens no more."""
        is_known_by_id = self._prefix == RESPONSE
        if self.spoken.text or self.calls or is_known_by_id:
            so_far = after(self._asked, self.spoken.text)
            place = ThreadPlace(thread=begun.session.thread)
            if so_far:
                await self._past.note(self._whose, so_far, place)
            if is_known_by_id:
                await self._past.note_id(self._whose, self.id, so_far)
        if self.calls:
            asked = CallPlace(
                thread=begun.session.thread,
                event_id=begun.followed.event_id,
                calls=tuple(one.call_id for one in self.calls),
                request=begun.request,
                count=begun.times,
            )
            await self._past.note_calls(self._whose, asked)
        elif is_over:
            await self._past.note_answered(self._whose, begun.request, begun.times + 1)


class BegunRun(NamedTuple):
    """What is followed."""

    session: SessionKey
    id: str
    """Of what was stored."""
    followed: Accepted
    """The message whose answer it is, and from where on."""
    request: str
    times: int
    """Of the request that it began with, and how often that was answered before."""


def scope_of(caller: Principal, agent: str) -> Scope:
    """Return whose conversations a caller's with an agent are. Raises: Problem."""
    owner = caller.owner_of(agent)
    if not caller.may_reach(owner, agent):
        raise Problem(404, f"there is no agent {agent!r}", field="model")
    return Scope(agent, owner)
