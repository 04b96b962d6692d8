"""The WebSocket of one client in one session (SPEC P-5, S-10).

The socket follows what was said on the log from the client's cursor on, so a message that
came while nobody was connected waits there for as long as it takes. Three tasks: one follows
the log into the outbox, one sends the outbox, one reads the client. What waits for a slow
reader is bounded: while it catches up, the log is read at its pace; later it's closed (1013)
and finds everything again from its cursor.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
import structlog

from vigil import crash
from vigil.background.end import end_tasks
from vigil.bus.bus import Message
from vigil.bus.shared import SessionFollower
from vigil.contracts import decode_said
from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey

from ..access import PRINCIPAL, own_session
from ..attachments import keep
from ..http import body
from ..http.decide import CLIENT_LENGTH_MAX, check_length
from ..http.problem import of_error, send_problem, too_many
from ..http.wire import (
    AcceptedFrame,
    ClientAck,
    ClientFrame,
    ClientMessage,
    ErrorFrame,
    MessageFrame,
)
from ..shelf import read_marks
from ..state.cursors import cursor_key
from ..state.edge import Edge
from .messages import parent_of

log = structlog.get_logger("vigil.gateway")

CLOSE_INTERNAL: Final = 1011
CLOSE_UNAUTHORIZED: Final = 1008
CLOSE_TRY_AGAIN: Final = 1013
CLOSE_TIMEOUT_S: Final = 10.0
TOKENS_WAITING_MAX: Final = 200
CLIENT_DEFAULT: Final = "default"
TERMINAL: Final = "cli"
"""`vigil chat`: what it acknowledges its person has read."""

_decoder: Final = msgspec.json.Decoder[ClientFrame](ClientFrame)
_encode: Final = msgspec.json.Encoder().encode


class _End(Exception):
    """The socket ends: with a close code of ours, or 0 if the client went."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Sockets:
    """The endpoint /api/ws: checks what is asked for, then serves a socket until it ends."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._by_token: dict[str, set[Socket]] = {}
        edge.tokens.on_end(self._on_token_end)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()  # websocket.connect
        with contextlib.ExitStack() as places:
            try:
                places.enter_context(self._edge.places.hold(scope[PRINCIPAL].user))
                socket = await self._open(scope, receive, send)
            except Exception as error:
                problem = of_error(error)
                if problem is None:
                    raise
                await send_problem(send, problem, is_websocket=True)
                return
            await self._run(socket)

    async def _run(self, socket: Socket) -> None:
        sockets = self._by_token.setdefault(socket.principal.token_id, set())
        sockets.add(socket)
        try:
            await socket.run()
        finally:
            sockets.discard(socket)
            if not sockets:
                self._by_token.pop(socket.principal.token_id, None)

    async def _open(self, scope: Any, receive: Any, send: Any) -> Socket:
        edge = self._edge
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        principal: Principal = scope[PRINCIPAL]
        session = own_session(query.get("session", [""])[0], principal)
        edge.intake.check_open(session)
        client = query.get("client", [CLIENT_DEFAULT])[0] or CLIENT_DEFAULT
        key = cursor_key(session, check_length("client", client, CLIENT_LENGTH_MAX))
        keys = [key]
        if client == TERMINAL:
            keys.append(read_marks.key_of(principal.user, session))
        start = (
            _cursor_of(query["cursor"][0]) if "cursor" in query else await edge.cursors.load(key)
        )
        socket = Socket(edge, principal, session, keys, start, receive, send, parent_of(scope))
        await socket.open()
        return socket

    def _on_token_end(self, token_id: str) -> None:
        for socket in self._by_token.get(token_id, ()):
            socket.wake()


def _cursor_of(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise InvalidInput("cursor", "must be a number, 0 or more")
    return int(text)


class Socket:
    """One open connection."""

    def __init__(
        self,
        edge: Edge,
        principal: Principal,
        session: SessionKey,
        keys: list[str],
        start: int,
        receive: Any,
        send: Any,
        parent: str | None,
    ) -> None:
        self.principal = principal
        self._edge = edge
        self._session = session
        self._cursor_keys = keys
        """What an acknowledgement moves: where the client is, and how far its person has read."""
        self._sent = start
        self._receive = receive
        self._send = send
        self._parent = parent
        self._follower: SessionFollower | None = None
        self._outbox: deque[tuple[str, int]] = deque()
        """Frames and, for messages, their cursor; else 0."""
        self._max = edge.config.socket_queue_max
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()

    def wake(self) -> None:
        """Look again whether this socket may stay open."""
        self._arrived.set()

    async def open(self) -> None:
        """Take what it needs from the bus. Raises: BusError, Unavailable."""
        session = self._session
        await self._edge.live.join(session, self._take_live)
        try:
            await self._edge.doing.join(session, self._take_live)
            self._follower = await self._edge.said.follow(session, self._sent + 1)
        except BaseException:
            await self._leave()
            raise

    async def run(self) -> None:
        """Serve until either side ends it; then give everything back."""
        parts = (self._follow(), self._write(), self._read())
        tasks: list[asyncio.Task[None]] = []
        end = _End(0)
        try:
            with contextlib.suppress(OSError):  # gone already: the reader will notice
                await self._send({"type": "websocket.accept"})
            tasks = [asyncio.create_task(part, name="gateway-socket") for part in parts]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            end = self._end_of(done)
        finally:
            for part in parts[len(tasks) :]:
                part.close()
            await end_tasks(*tasks)
            await self._release()
        if end.code:
            await self._close(end)

    def _end_of(self, done: set[asyncio.Task[None]]) -> _End:
        for task in done:
            error = task.exception()
            if isinstance(error, _End):
                return error
            if error is not None:
                log.error("socket failed", action="gateway.socket.failed", exc_info=error)
                return _End(CLOSE_INTERNAL, "something went wrong here")
        return _End(0)

    async def _release(self) -> None:
        if self._follower is not None:
            await self._follower.close()
        await self._leave()
        for key in self._cursor_keys:
            await self._edge.cursors.release(key)

    async def _leave(self) -> None:
        await self._edge.live.leave(self._session, self._take_live)
        await self._edge.doing.leave(self._session, self._take_live)

    async def _close(self, end: _End) -> None:
        """Say goodbye, if the reader takes it within `CLOSE_TIMEOUT_S`."""
        message = {"type": "websocket.close", "code": end.code, "reason": end.reason}
        with contextlib.suppress(OSError, RuntimeError, asyncio.TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._send(message)

    # ------------------------------------------------------------ to the client

    async def _follow(self) -> None:
        """Put what was said into the outbox."""
        assert self._follower is not None  # noqa: S101 - open() was called
        opened_at = self._follower.opened_at
        async for message in self._follower:
            if message.seq <= opened_at:
                await self._wait_for_room()
            elif len(self._outbox) >= self._max:
                raise _End(CLOSE_TRY_AGAIN, "you read too slowly; connect again")
            if frame := _frame_of(message):
                self._put(frame, message.seq)

    def _take_live(self, frame: str) -> None:
        """Put what passes by into the outbox; a slow reader misses it, what is stored comes."""
        if len(self._outbox) < min(self._max, TOKENS_WAITING_MAX):
            self._put(frame, 0)

    def _put(self, frame: str, cursor: int) -> None:
        self._outbox.append((frame, cursor))
        self._arrived.set()

    async def _wait_for_room(self) -> None:
        while len(self._outbox) >= self._max:
            self._room.clear()
            await self._room.wait()

    async def _write(self) -> None:
        while True:
            self._check_token()
            self._arrived.clear()
            while self._outbox:
                self._check_token()  # it may have ended while the frame before was sent
                frame, cursor = self._outbox.popleft()
                self._room.set()
                await self._transmit(frame)
                if cursor:
                    self._sent = cursor
                    crash.point("gateway.cursor.after_send")
            await self._arrived.wait()

    def _check_token(self) -> None:
        edge = self._edge
        if edge.tokens.find_id(self.principal.token_id, edge.clock.now()) is None:
            raise _End(CLOSE_UNAUTHORIZED, "the token was revoked or expired")

    async def _transmit(self, frame: str) -> None:
        try:
            await self._send({"type": "websocket.send", "text": frame})
        except (OSError, RuntimeError) as error:
            raise _End(0, "the client went") from error

    # ------------------------------------------------------------ from the client

    async def _read(self) -> None:
        while True:
            event = await self._receive()
            if event["type"] == "websocket.disconnect":
                raise _End(0, "the client went")
            frame: ClientFrame | None = None
            try:
                frame = self._decode(event)
                await self._take(frame)
            except Exception as error:
                await self._complain(error, frame)

    def _decode(self, event: Any) -> ClientFrame:
        text = event.get("text")
        if text is None:
            raise InvalidInput("frame", "must be text")
        data = text.encode()
        frame: ClientFrame = body.decode(data, _decoder, self._edge.config.json_depth_max)
        return frame

    async def _take(self, frame: ClientFrame) -> None:
        edge = self._edge
        self._check_token()
        if isinstance(frame, ClientAck):
            if frame.cursor > self._sent:
                raise InvalidInput("cursor", "is beyond what was sent")
            for key in self._cursor_keys:
                edge.cursors.move(key, frame.cursor)
            return
        if wait_s := edge.limiter.take(self.principal.token_id, edge.clock.monotonic()):
            raise too_many("this token makes too many requests", wait_s)
        accepted = await keep.accepted(
            edge,
            self.principal.user,
            self._session,
            frame.attachments,
            lambda files: edge.intake.accept(
                self.principal.user,
                self._session,
                frame.text,
                key=frame.id,
                key_field="id",
                attachments=files,
                reply_to=frame.reply_to,
                parent=self._parent,
            ),
        )
        if frame.id is not None:
            answer = AcceptedFrame(id=frame.id, event_id=accepted.event_id, seq=accepted.seq)
            await self._answer(answer)

    async def _complain(self, error: Exception, frame: ClientFrame | None) -> None:
        """Tell the client what is wrong with its frame; the socket stays open."""
        problem = of_error(error)
        if problem is None:
            raise error
        given = frame.id if isinstance(frame, ClientMessage) else None
        answer = ErrorFrame(
            detail=problem.detail, status=problem.status, field=problem.field, id=given
        )
        await self._answer(answer)

    async def _answer(self, frame: AcceptedFrame | ErrorFrame) -> None:
        await self._wait_for_room()
        self._put(_encode(frame).decode(), 0)


def _frame_of(message: Message) -> str:
    """Return the frame of something said; empty if the record can't be read."""
    try:
        said = decode_said(message.data)
    except InvalidInput as error:
        log.warning("unreadable", action="gateway.unreadable", seq=message.seq, error=str(error))
        return ""
    frame = MessageFrame(
        id=said.id,
        text=said.text,
        cursor=message.seq,
        caused_by=said.caused_by,
        at=said.at,
        tag=said.tag,
    )
    return _encode(frame).decode()
