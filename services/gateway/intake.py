"""Taking a message in: the one way from outside onto the log.

The event id is also the broker's message id, so a publish whose answer got lost is repeated
without harm. Only the fields below and our own trace context are written; no header of a client
is ever copied (a header can mean something to the broker).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
import structlog

from vigil import crash, trace
from vigil.bus import Ack
from vigil.contracts import (
    Control,
    ControlOp,
    ControlPayload,
    Event,
    UserMessage,
    UserMessagePayload,
    encode,
)
from vigil.errors import InvalidInput, Unavailable, VigilError, WrongLastSequence
from vigil.kv import Bucket
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.tokens import Principal

from .backlog import Backlog
from .decide import KEY_LENGTH_MAX, check_length, check_text, keyed_event_id
from .problem import too_many, unavailable
from .wire import Accepted

T = TypeVar("T")
log = structlog.get_logger("vigil.gateway")

TRY_TIMEOUT_S: Final = 1.5
PATIENCE_S: Final = 4.0
"""How long a publish is repeated after its first try failed."""
RETRY_DELAY_S: Final = 0.1
DISK_CHECK_INTERVAL_S: Final = 1.0


class Remembered(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the bucket IDEMPOTENCY keeps of a keyed message, for a day."""

    event_id: str
    body_hash: str
    seq: int | None = None
    """Where it was stored; None: not known yet."""


class Intake:
    """Accepts messages and controls for sessions."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._new_id = context.new_id
        self._config = context.settings.config.gateway
        self._home = context.settings.home
        # Only the embedded broker's disk is ours; with `up --processes` it has a URL, too.
        url = context.settings.config.nats.url
        is_local = not url or urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
        self._is_embedded = is_local and context.settings.broker_store.exists()
        self._backlog = Backlog(context.bus, self._config.backlog_max)
        self._remembered = Bucket(context.bus, "IDEMPOTENCY")
        self._has_disk = True
        self._disk_checked_s = float("-inf")
        self._background: set[asyncio.Task[None]] = set()

    async def accept(
        self,
        principal: Principal,
        session: SessionKey,
        text: str,
        *,
        field: str = "text",
        key: str | None = None,
        key_field: str = "idempotency_key",
        parent: str | None = None,
    ) -> Accepted:
        """Store what the person said; `parent` is the caller's traceparent.

        Raises:
            InvalidInput: the text or the key can't be used.
            Problem: 429 the session is too far behind, 503 it can't be stored now.
        """
        check_text(field, text, bytes_max=self._config.text_bytes_max)
        if key is not None:
            check_length(key_field, key, KEY_LENGTH_MAX)
            return await self._accept_keyed(principal, session, text, key, key_field, parent)
        await self._check_room(session)
        return await self._store_message(session, self._new_id(), text, False, parent)

    async def control(
        self,
        session: SessionKey,
        op: ControlOp,
        *,
        timer_id: str | None = None,
        reason: str = "",
        parent: str | None = None,
    ) -> Accepted:
        """Store an order of the person about the session. Raises: Problem, 503."""
        self._check_disk()
        event = Control(
            id=self._new_id(),
            session_key=str(session),
            created_at=self._clock.now(),
            payload=ControlPayload(op=op, timer_id=timer_id, reason=reason),
        )
        return await self._store(session.in_event("control"), event, parent)

    async def close(self) -> None:
        """Finish what was left to write."""
        if self._background:
            await asyncio.wait(self._background, timeout=2)

    # ------------------------------------------------------------ room

    async def _check_room(self, session: SessionKey) -> None:
        self._check_disk()
        if not await self._backlog.has_room(session):
            raise too_many("the session has too many unanswered messages; wait for them", 1.0)

    def _check_disk(self) -> None:
        """Refuse before the disk is full: the broker would fall silent (RELIABILITY 0.8)."""
        if not self._is_embedded:
            return
        now_s = self._clock.monotonic()
        if now_s - self._disk_checked_s >= DISK_CHECK_INTERVAL_S:
            self._disk_checked_s = now_s
            free = shutil.disk_usage(self._home).free
            self._has_disk = free >= self._config.disk_free_bytes_min
        if not self._has_disk:
            raise unavailable("the disk is nearly full; nothing can be stored")

    # ------------------------------------------------------------ keyed messages

    async def _accept_keyed(
        self,
        principal: Principal,
        session: SessionKey,
        text: str,
        key: str,
        key_field: str,
        parent: str | None,
    ) -> Accepted:
        event_id = keyed_event_id(principal.user, str(session), key)
        body_hash = hashlib.sha256(text.encode()).hexdigest()[:32]
        wanted = Remembered(event_id=event_id, body_hash=body_hash)
        found, revision = await _patiently(lambda: self._remember(wanted))
        if found.body_hash != body_hash:
            raise InvalidInput(key_field, "was used before, for another text")
        if found.seq is not None:
            return Accepted(event_id=event_id, seq=found.seq)
        # Whoever finds no place publishes again: the broker drops it as a repeat for two
        # minutes, and the session for good.
        await self._check_room(session)
        accepted = await self._store_message(session, event_id, text, True, parent)
        self._later(self._fill_in(found, accepted.seq, revision))
        return accepted

    async def _remember(self, wanted: Remembered) -> tuple[Remembered, int]:
        """Write `wanted` unless the key is taken -> (what is there now, its revision)."""
        name = wanted.event_id.replace("-", "")
        while True:
            with contextlib.suppress(WrongLastSequence):
                return wanted, await self._remembered.put(name, encode(wanted), expect=0)
            entry = await self._remembered.get(name)
            if entry is not None:
                return msgspec.json.decode(entry.value, type=Remembered), entry.revision

    async def _fill_in(self, found: Remembered, seq: int, revision: int) -> None:
        """Note where it was stored. If that fails, a repeat publishes again, harmlessly."""
        value = encode(msgspec.structs.replace(found, seq=seq))
        with contextlib.suppress(VigilError):
            await self._remembered.put(found.event_id.replace("-", ""), value, expect=revision)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="gateway-fill-in")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # ------------------------------------------------------------ storing

    async def _store_message(
        self, session: SessionKey, event_id: str, text: str, is_keyed: bool, parent: str | None
    ) -> Accepted:
        event = UserMessage(
            id=event_id,
            session_key=str(session),
            created_at=self._clock.now(),
            payload=UserMessagePayload(text=text, is_keyed=is_keyed),
        )
        return await self._store(session.in_user, event, parent)

    async def _store(self, subject: str, event: Event, parent: str | None) -> Accepted:
        data = encode(event)
        headers = {trace.HEADER: trace.child(parent)}
        crash.point("gateway.message.before_publish")

        async def publish() -> Ack:
            return await self._bus.publish(
                subject, data, headers, msg_id=event.id, timeout=TRY_TIMEOUT_S
            )

        ack = await _patiently(publish)
        crash.point("gateway.message.after_publish")
        return Accepted(event_id=event.id, seq=ack.seq)


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Do `work`, which may be repeated, until the broker answers or patience ends.

    Raises:
        Problem: 503; whether it happened is unknown.
    """
    try:
        return await work()
    except Unavailable as error:
        log.warning("trying again", action="gateway.retry", error=str(error))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await asyncio.sleep(RETRY_DELAY_S)
                with contextlib.suppress(Unavailable):
                    return await work()
    except TimeoutError as error:
        raise unavailable(
            "the broker didn't confirm in time; it may have been stored. "
            "Repeat with the same idempotency key to be sure"
        ) from error
