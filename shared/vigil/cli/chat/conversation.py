"""A conversation over the socket: say, hear, acknowledge, reconnect, lose nothing.

What the person says carries an id of ours and is repeated after a reconnect until the gateway
confirms it; with the same id it is stored once. What the agent says is acknowledged once it is on
the screen; the gateway repeats the rest, and a message that was shown is not shown again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

import websockets
from websockets.asyncio.client import ClientConnection, connect

from vigil.errors import VigilError
from vigil.sdk.client import ApiError, Client
from vigil.texts.trouble import reason_of

from ...background.end import end_tasks
from ...backoff import Backoff
from .screen import Screen

DEVICE: Final = "cli"
"""The name of the cursor that this command line reads with."""
RECONNECTS: Final = Backoff(0.2, 5.0)
STEADY_AFTER_S: Final = 5.0
CLOSED_S: Final = 1.0
"""How long somebody who leaves waits for a gateway that says nothing."""
_HOPELESS: Final = frozenset({400, 401, 403, 404, 405, 422})


class Conversation:
    """One session, followed on a socket for as long as `run` runs."""

    def __init__(
        self, client: Client, session_key: str, screen: Screen, *, device: str = DEVICE
    ) -> None:
        self._client = client
        self._device = device
        self._cursor: int | None = None
        self._key = session_key
        self._screen = screen
        self._socket: ClientConnection | None = None
        self._unconfirmed: dict[str, dict[str, Any]] = {}
        """Messages that may not be stored yet, as frames by their id."""
        self._shown: set[str] = set()
        self.said: list[str] = []
        """Ids of what the agent said that was shown, the oldest first."""
        self._answered: set[str] = set()
        self._changed = asyncio.Event()
        self._is_away = False
        self.unseen: OSError | None = None
        """What came of showing something, if whoever is to see it is gone."""
        self._due: dict[str, str] = {}
        """What was said and isn't answered yet: the id of its frame, and its event's once known."""

    async def run(self) -> None:
        """Keep the socket open until cancelled.

        Raises:
            ApiError: the gateway will not open it, now or later.
            OSError: nobody sees any more what is shown.
        """
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            begun = loop.time()
            try:
                await self._follow()
            except websockets.InvalidStatus as error:
                refusal = _refusal(error)
                if refusal.status in _HOPELESS:
                    raise refusal from error
                reason = str(refusal)
            except (OSError, TimeoutError, websockets.WebSocketException) as error:
                if error is self.unseen:
                    raise
                reason = reason_of(error)
            else:
                reason = "closed"
            if not self._is_away:
                self._is_away = True
                self._screen.notice(f"connection lost ({reason}); reconnecting, nothing is lost")
            if loop.time() - begun > STEADY_AFTER_S:
                failures = 0
            failures += 1
            spread = random.uniform(0.8, 1.2)  # noqa: S311 - no secret
            await asyncio.sleep(RECONNECTS.after(failures) * spread)

    async def _follow(self) -> None:
        url = self._client.socket_url(self._key, client=self._device, cursor=self._cursor)
        async with connect(
            url,
            additional_headers=self._client.headers,
            proxy=None,
            open_timeout=10,
            close_timeout=CLOSED_S,
        ) as socket:
            if self._is_away:
                self._is_away = False
                self._screen.notice("connected again")
            self._socket = socket
            try:
                for frame in list(self._unconfirmed.values()):
                    await self._send(frame)
                self._note_change()
                async for raw in socket:
                    await self._hear(json.loads(raw))
            finally:
                self._socket = None

    async def _send(self, frame: dict[str, Any]) -> None:
        if self._socket is None:
            return
        try:
            await self._socket.send(json.dumps(frame))
        except websockets.ConnectionClosed:
            return  # the reader notices, and what isn't confirmed is sent again

    async def _hear(self, frame: dict[str, Any]) -> None:
        try:
            await self._take(frame)
        except OSError as error:
            self.unseen = error
            raise

    async def _take(self, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "token":
                self._screen.token(frame)
            case "progress":
                self._screen.progress(frame)
            case "message":
                # Not where the device is: another chat in this thread moves that, too.
                self._cursor = frame["cursor"]
                self.show(frame)
                await self._send({"type": "ack", "cursor": frame["cursor"]})
            case "accepted":
                self._unconfirmed.pop(frame["id"], None)
                if frame["id"] in self._due:
                    self._due[frame["id"]] = frame["event_id"]
                self._note_change()
            case "error":
                self._due.pop(frame.get("id") or "", None)
                refused = self._unconfirmed.pop(frame.get("id") or "", {})
                self._screen.notice(_complaint(frame, refused.get("text")))
                self._note_change()

    def show(self, frame: dict[str, Any]) -> None:
        """Show a message, unless it was shown."""
        if frame["id"] in self._shown:
            return
        self._shown.add(frame["id"])
        self.said.append(frame["id"])
        self._answered.add(frame["caused_by"])
        self._settle(frame["caused_by"])
        self._screen.message(frame)
        self._note_change()

    @property
    def is_answer_due(self) -> bool:
        """Whether something was said that wasn't answered yet."""
        return bool(self._due)

    @property
    def unconfirmed(self) -> list[str]:
        """What was said and may not be stored, the oldest first."""
        return [frame["text"] for frame in self._unconfirmed.values()]

    def give_up(self) -> None:
        """Wait for no answer any more."""
        self._due.clear()

    def _settle(self, event_id: str | None) -> None:
        """Take what was said as answered, and what was said before it: one answer may be to both.
        What was said after it is due still."""
        if event_id not in self._due.values():
            return
        for id_, event in list(self._due.items()):
            del self._due[id_]
            if event == event_id:
                return

    def has_answer(self, event_id: str) -> bool:
        """Whether a message that the event caused was shown."""
        return event_id in self._answered

    async def say(
        self, text: str, attachments: Sequence[str] = (), *, reply_to: str | None = None
    ) -> None:
        """Say something: now, or as soon as there is a connection."""
        frame: dict[str, Any] = {"type": "message", "id": str(uuid4()), "text": text}
        frame |= {"attachments": list(attachments)} if attachments else {}
        frame |= {"reply_to": reply_to} if reply_to else {}
        self._unconfirmed[frame["id"]] = frame
        self._due[frame["id"]] = ""
        await self._send(frame)

    async def wait_confirmed(self, timeout_s: float) -> bool:
        """Wait until all that was said is stored; return whether it is."""
        return await self.wait_until(lambda: not self._unconfirmed, timeout_s)

    async def wait_shown(self, ids: set[str], timeout_s: float) -> bool:
        """Wait until these messages were shown; return whether they were."""
        return await self.wait_until(lambda: ids <= self._shown, timeout_s)

    async def wait_open(self, timeout_s: float) -> bool:
        """Wait until the socket is open; return whether it is."""
        return await self.wait_until(lambda: self._socket is not None, timeout_s)

    def begin_at(self, cursor: int) -> None:
        """Show what was said behind that, whatever this device acknowledged."""
        self._cursor = cursor

    async def wait_changed(self, timeout_s: float) -> None:
        """Return when something was heard, or after so long."""
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    async def wait_until(self, is_true: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for a condition on what was heard."""
        try:
            async with asyncio.timeout(timeout_s):
                while not is_true():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _note_change(self) -> None:
        self._changed.set()


def _refusal(error: websockets.InvalidStatus) -> ApiError:
    response = error.response
    try:
        problem = json.loads(response.body or b"")
    except ValueError:
        problem = {}
    return ApiError(response.status_code, problem if isinstance(problem, dict) else {})


def _complaint(frame: dict[str, Any], text: str | None) -> str:
    detail = str(frame.get("detail", "refused"))
    return f"not accepted: {detail}" if text is None else f"not accepted: {detail}: {text[:60]!r}"


async def until_done(talk: Callable[[], Any], conversation: Conversation) -> Any:
    """Run `talk` beside the socket; end with it, or with what makes the socket impossible."""
    following = asyncio.create_task(conversation.run(), name="chat-socket")
    talking = asyncio.create_task(talk(), name="chat-talk")
    try:
        await asyncio.wait({following, talking}, return_when=asyncio.FIRST_COMPLETED)
        if not talking.done():
            following.result()
            raise VigilError("the socket ended")
        said = talking.result()
        if conversation.unseen is not None:
            raise conversation.unseen
        return said
    finally:
        await end_tasks(following, talking)
