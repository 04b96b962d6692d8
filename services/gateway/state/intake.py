"""Taking messages and events in: the one way from outside onto the log.

The event id is also the broker's message id: a publish whose answer got lost may be repeated. Only
our own fields and trace context are written: a client's header can mean something to the broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from vigil import crash
from vigil.bus.bus import Ack
from vigil.contracts import (
    Control,
    ControlPayload,
    Decision,
    Event,
    External,
    ExternalPayload,
    Start,
    UserMessage,
    UserMessagePayload,
    encode,
)
from vigil.contracts.calls.caller import CallerTools
from vigil.contracts.events import Attachment, Replaced
from vigil.contracts.mail.heads import ChatHead, MailHead, head_of
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.observe import metrics, spans, trace
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.teams import TEAM

from ..backlog.room import Room
from ..http.decide import KEY_LENGTH_MAX, check_length, check_text, keyed_event_id
from ..http.problem import Problem, refusal_of
from ..http.wire import Accepted
from ..patience import TRY_TIMEOUT_S, patiently
from . import replies
from .repeats import Repeats, StoragePlace, hash_of, hash_of_message


class Intake:
    """Accepts messages, controls and events for sessions."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._new_id = context.new_id
        self._tracer = context.tracer
        self._counts = context.metrics
        self._config = context.settings.config.gateway
        self.room = Room(context)
        self._repeats = Repeats(context.bus, self.room.impatience)
        self.check_open: Callable[[SessionKey], None] = lambda key: None
        """Raises: Problem: nothing is taken in for that session any more."""

    async def accept(
        self,
        user: str,
        session: SessionKey,
        text: str,
        *,
        field: str = "text",
        key: str | None = None,
        key_field: str = "idempotency_key",
        channel: str = "",
        attachments: tuple[Attachment, ...] = (),
        replaces: Replaced | None = None,
        reply_to: str | None = None,
        head: MailHead | ChatHead | None = None,
        caller: CallerTools | None = None,
        parent: str | None = None,
    ) -> Accepted:
        """Store what `user` said, over a channel or in a message's place, if that's named;
        `reply_to` is the id of what the agent said, `caller` what the program runs itself, `parent`
        the caller's traceparent.

        Raises:
            InvalidInput: the text or the key can't be used.
            Problem: 429 the session is too far behind, 503 it can't be stored now.
        """
        try:
            payload = UserMessagePayload(
                text=text,
                is_keyed=key is not None,
                by=user if session.user == TEAM else "",
                channel=channel,
                attachments=attachments,
                replaces=replaces,
                reply_to=await replies.find(self._bus, session, reply_to),
                caller=caller,
                **head_of(head),
            )
            check_text(field, text, bytes_max=self._config.text_bytes_max)
            if key is not None:
                check_length(key_field, key, KEY_LENGTH_MAX)
                return await self._accept_keyed(user, session, payload, key, key_field, parent)
            await self.room.check(session)
            return await self._store_message(session, self._new_id(), payload, parent)
        except (InvalidInput, Problem, Unavailable) as error:
            self._counts.count(metrics.REFUSED, refusal_of(error))
            raise

    async def control(
        self,
        session: SessionKey,
        order: ControlPayload,
        *,
        event_id: str | None = None,
        is_first: bool = False,
        parent: str | None = None,
    ) -> Accepted:
        """Store an order of the person about the session; with `is_first`, as its first record.

        Raises:
            WrongLastSequence: it has a record already.
            Problem: 503, it can't be stored now.
        """
        self.room.check_disk()
        event = Control(
            id=event_id or self._new_id(),
            session_key=str(session),
            created_at=self._clock.now(),
            payload=order,
        )
        among, expect = (session.everything, 0) if is_first else ("", None)
        subject = session.in_event("control")
        return await self._store(subject, event, parent, among=among, expect=expect)

    async def start(
        self,
        session: SessionKey,
        event_id: str,
        start: Start,
        *,
        body: bytes,
        is_keyed: bool,
        parent: str | None = None,
    ) -> Accepted:
        """Store the first event of a session of the cortex; with the same id again, nothing.

        Args:
            body: what was asked for, for comparison with a repeat.
            is_keyed: whether the id derives from a key of the caller's.

        Raises:
            InvalidInput: the key was used before, for something else.
            Problem: 503, it can't be stored now.
        """
        self.room.check_disk()
        subject = session.in_event("control")

        async def store(_: int | None) -> Accepted:
            event = Control(
                id=event_id,
                session_key=str(session),
                created_at=self._clock.now(),
                payload=ControlPayload(op="start", start=start),
            )
            try:
                return await self._store(subject, event, parent, expect=0)
            except WrongLastSequence as error:  # its name is made of the id: it is there already
                return Accepted(event_id=event_id, seq=error.last)

        if not is_keyed:
            return await store(None)
        conflict = InvalidInput("idempotency_key", "was used before, for something else")
        place = StoragePlace(stream=session.stream, subject=subject)
        return await self._repeats.once(event_id, hash_of(body), place, store, conflict=conflict)

    async def decide(
        self,
        session: SessionKey,
        event_id: str,
        decision: Decision,
        *,
        expect: int,
        parent: str | None = None,
    ) -> Accepted:
        """Store a person's verdict, if `expect` is the last order of the session.

        Raises:
            WrongLastSequence: another order came first.
            Problem: 503, it can't be stored now.
        """
        self.room.check_disk()
        event = Control(
            id=event_id,
            session_key=str(session),
            created_at=self._clock.now(),
            payload=ControlPayload(op="approval", decision=decision),
        )
        return await self._store(session.in_event("control"), event, parent, expect=expect)

    async def order_once(
        self, session: SessionKey, event_id: str, store: Callable[[], Awaitable[Accepted]]
    ) -> Accepted:
        """Call `store` unless the order of that id is stored; the id tells the whole of it.

        `store` itself must look what came last, and expect it.

        Raises:
            Problem: 503, the broker can't tell; and what `store` raises.
        """
        self.room.check_disk()
        conflict = InvalidInput("id", "was used before, for another event")
        place = StoragePlace(stream=session.stream, subject=session.in_event("control"))
        return await self._repeats.once(event_id, "", place, lambda _: store(), conflict=conflict)

    async def close(self) -> None:
        """Finish what was left to write."""
        await self._repeats.close()

    # ------------------------------------------------------------ keyed messages

    async def _accept_keyed(
        self,
        user: str,
        session: SessionKey,
        payload: UserMessagePayload,
        key: str,
        key_field: str,
        parent: str | None,
    ) -> Accepted:
        self.room.check_disk()
        event_id = keyed_event_id(user, str(session), key)

        async def store(fence: int | None) -> Accepted:
            await self.room.check(session)
            return await self._store_message(session, event_id, payload, parent, fence)

        conflict = InvalidInput(key_field, "was used before, for another message")
        place, body = _place_of_messages(session), hash_of_message(payload)
        return await self._repeats.once(event_id, body, place, store, conflict=conflict)

    # ------------------------------------------------------------ what other systems tell

    async def accept_external(
        self,
        session: SessionKey,
        event_id: str,
        payload: ExternalPayload,
        *,
        parent: str | None = None,
        is_trusted: bool = False,
    ) -> Accepted:
        """Store what another system told; the same id and payload again changes nothing.

        Args:
            event_id: derived from the sender and the sender's own id of the event.
            parent: the sender's traceparent.
            is_trusted: whether its owner trusts the source by now: what is sent again is the same.

        Raises:
            InvalidInput: the sender used that id for another event.
            Problem: 429 the session is too far behind, 503 it can't be stored now.
        """
        subject, stored = session.in_event("external"), payload
        if is_trusted:
            stored = msgspec.structs.replace(payload, is_trusted=True)

        async def store(fence: int | None) -> Accepted:
            await self.room.check(session, is_told=True)
            event = External(
                id=event_id, session_key=str(session), created_at=self._clock.now(), payload=stored
            )
            return await self._store(subject, event, parent, expect=fence)

        try:
            self.room.check_disk()
            return await self._repeats.once(
                event_id,
                hash_of(f"{session}\n".encode() + encode(payload)),
                StoragePlace(stream=session.stream, subject=subject),
                store,
                conflict=InvalidInput("id", "was used before, for another event"),
            )
        except (InvalidInput, Problem, Unavailable) as error:
            self._counts.count(metrics.REFUSED, refusal_of(error))
            raise

    async def accept_again(
        self, session: SessionKey, event: UserMessage | External, *, parent: str | None = None
    ) -> Accepted:
        """Store a copy of an event that was given up, under the id that it has; once.

        Raises:
            Problem: 429 the session is too far behind, 503 it can't be stored now.
        """

        place = StoragePlace(stream=session.stream, subject=session.in_event("external"))
        if isinstance(event, UserMessage):
            place = _place_of_messages(session)

        async def store(fence: int | None) -> Accepted:
            await self.room.check(session)
            renewed = msgspec.structs.replace(event, created_at=self._clock.now())
            return await self._store(
                place.subject, renewed, parent, among=place.among, expect=fence
            )

        self.room.check_disk()
        return await self._repeats.once(
            event.id,
            hash_of(encode(event.payload)),
            place,
            store,
            conflict=InvalidInput("id", "was used before, for another event"),
        )

    # ------------------------------------------------------------ storing

    async def _store_message(
        self,
        session: SessionKey,
        event_id: str,
        payload: UserMessagePayload,
        parent: str | None,
        fence: int | None = None,
    ) -> Accepted:
        event = UserMessage(
            id=event_id,
            session_key=str(session),
            created_at=self._clock.now(),
            payload=payload,
        )
        place = _place_of_messages(session)
        return await self._store(place.subject, event, parent, among=place.among, expect=fence)

    async def _store(
        self,
        subject: str,
        event: Event,
        parent: str | None,
        *,
        among: str = "",
        expect: int | None = None,
    ) -> Accepted:
        """Store an event; with `among`, so that claims of that wildcard see it.

        Raises:
            WrongLastSequence: `expect` isn't the last sequence of the subject, or of `among`.
            Problem: 503, it can't be stored now; 403, the person is being erased; 410, the session.
        """
        self.check_open(SessionKey.of_subject(subject))
        data = encode(event)
        span = self._tracer.enter(parent)
        headers = {trace.HEADER: span.header}
        crash.point("gateway.message.before_publish")

        async def publish() -> Ack:
            if not self._bus.is_connected:
                # What waits in a buffer may be stored long after a repeat of it elsewhere.
                raise Unavailable(f"{subject}: not connected")
            if among and expect is None:
                return await self._bus.append(
                    subject, data, headers, among=among, msg_id=event.id, timeout=TRY_TIMEOUT_S
                )
            return await self._bus.publish(
                subject,
                data,
                headers,
                msg_id=event.id,
                expect=expect,
                expect_subject=among or None,
                timeout=TRY_TIMEOUT_S,
            )

        try:
            ack = await patiently(publish, self.room.impatience())
        except (Problem, WrongLastSequence) as error:
            self._observe(span, event, "unavailable" if isinstance(error, Problem) else "conflict")
            raise
        crash.point("gateway.message.after_publish")
        if not isinstance(event, Control):
            self.room.note(SessionKey.of_subject(subject), ack.seq)
        self._counts.count(metrics.ACCEPTED, type_of(event))
        self._observe(span, event)
        return Accepted(event_id=event.id, seq=ack.seq)

    def _observe(self, span: trace.Span, event: Event, error: str = "") -> None:
        if self._tracer.is_on:
            about = {spans.SESSION: event.session_key, spans.EVENT_ID: event.id}
            about[spans.EVENT_TYPE] = type_of(event)
            self._tracer.end(span, spans.ACCEPT, about, error=error)


def _place_of_messages(session: SessionKey) -> StoragePlace:
    return StoragePlace(stream=session.stream, subject=session.in_user, among=session.transcript)


def type_of(event: Event) -> str:
    """Return the type that the record is stored with."""
    return str(event.__struct_config__.tag)
