"""People who talk over real HTTP and listen on a real WebSocket, whatever happens meanwhile.

A message is posted with an idempotency key again and again until it is accepted. The socket
has a client name, acknowledges what it gets, and connects again when it is cut. Everything is
written down in :class:`~tests.chaos.records.Records`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from random import Random
from typing import Any, Final
from urllib.parse import urlencode

import httpx2
import websockets

from tests.chaos.records import Received, Records, Sent

TEXTS: Final = (
    "hello, this is {m}",
    "hello, this is {m}",
    "what is pending, asks {m}",
    "check back in 1 seconds about {m}",
    "check back in 1 seconds and check back in 2 seconds and check back in 3 seconds: {m}",
    "remind me in 1 seconds to feed {m}",
    "remind me in 1 seconds to call {m} and check back in 2 seconds",
    "never mind {m}",
)
AGAIN: Final = frozenset({429, 500, 502, 503, 504})
AGAIN_AFTER_S: Final = 0.1
TRY_TIMEOUT_S: Final = 10.0


class Client:
    """One person in one session."""

    def __init__(self, port: int, session: str, token: str, random: Random) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {token}"}
        self._random = random
        self._marks = 0
        self._answers: dict[str, asyncio.Event] = {}
        self._is_enqueued = session.split(":")[1] == "vigil"
        self.records = Records(session=session)
        self.is_talking = True

    # ------------------------------------------------------------ talking

    async def talk(self) -> None:
        """Say something, mostly wait for the answer, pause, until told to stop."""
        while self.is_talking:
            if not self._is_enqueued:  # something to interrupt, or to join
                for _ in range(self._random.randint(0, 3)):
                    await self.say(self._random.choice(TEXTS))
            sent = await self.say(self._random.choice(TEXTS))
            if self._random.random() < 0.8:
                await self.answered(sent)
            await self._pause(self._pause_s())

    def _pause_s(self) -> float:
        kind = self._random.random()
        if kind < 0.25:  # follow-ups come, and the session is released
            return self._random.uniform(1.5, 4.0)
        if kind < 0.5:  # just when follow-ups come
            return self._random.uniform(0.95, 1.05)
        return 0.3

    async def _pause(self, seconds: float) -> None:
        until_s = asyncio.get_running_loop().time() + seconds
        while self.is_talking and (left_s := until_s - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(left_s, 0.1))

    async def say(self, text: str) -> Sent:
        """Post a message until it is accepted; `{m}` becomes a mark of its own."""
        self._marks += 1
        mark = f"{self.records.session.partition(':')[0]}x{self._marks}"
        sent = Sent(
            text=text.format(m=mark), idempotency_key=mark,
            sent_at_s=asyncio.get_running_loop().time(),
        )  # fmt: skip
        self.records.sent.append(sent)
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self._port}", headers=self._headers, timeout=TRY_TIMEOUT_S
        ) as http:
            while not await self._post(http, sent):
                await asyncio.sleep(AGAIN_AFTER_S)
        return sent

    async def _post(self, http: httpx2.AsyncClient, sent: Sent) -> bool:
        """Try once; return whether there's nothing more to try."""
        sent.tries += 1
        try:
            answer = await http.post(
                f"/api/sessions/{self.records.session}/messages",
                json={"text": sent.text, "idempotency_key": sent.idempotency_key},
            )
        except (httpx2.TransportError, AttributeError):
            # anyio looks at a socket that uvloop has closed already: killed just after the accept
            return False
        if answer.status_code in AGAIN:
            if answer.status_code == 500:
                self.records.refusals.append(f"500 for {sent.text!r}")
            return False
        if answer.status_code != 202:
            self.records.refusals.append(f"{answer.status_code} for {sent.text!r}: {answer.text}")
            return True
        accepted = answer.json()
        sent.accepted_at_s = asyncio.get_running_loop().time()
        sent.event_id, sent.seq = accepted["event_id"], accepted["seq"]
        if any(received.caused_by == sent.event_id for received in self.records.received):
            self._note_answer(sent)
        return True

    async def answered(self, sent: Sent) -> None:
        """Wait for the answer; whoever stops the client ends the waiting."""
        while sent.answered_at_s is None and self.is_talking and sent.accepted_at_s is not None:
            event = self._answers.setdefault(sent.event_id, asyncio.Event())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), 0.5)

    # ------------------------------------------------------------ listening

    async def listen(self) -> None:
        """Hold a socket, for good."""
        connection = 0
        query = urlencode({"session": self.records.session, "client": "chaos"})
        while True:
            connection += 1
            # Cut, refused, or not there: what matters is only what arrived.
            with contextlib.suppress(OSError, TimeoutError, websockets.WebSocketException):
                async with websockets.connect(
                    f"ws://127.0.0.1:{self._port}/api/ws?{query}",
                    additional_headers=self._headers, compression=None, proxy=None,
                    open_timeout=5, close_timeout=1,
                ) as socket:  # fmt: skip
                    async for frame in socket:
                        if cursor := self._take(json.loads(frame), connection):
                            await socket.send(json.dumps({"type": "ack", "cursor": cursor}))
            self.records.closed_at_s[connection] = asyncio.get_running_loop().time()
            await asyncio.sleep(0.1)

    def _take(self, frame: dict[str, Any], connection: int) -> int:
        """Write a frame down; return the cursor to acknowledge, 0 for other frames."""
        if frame["type"] == "error":
            self.records.refusals.append(f"socket: {frame}")
        if frame["type"] != "message":
            return 0
        received = Received(
            connection=connection,
            id=frame["id"],
            cursor=frame["cursor"],
            text=frame["text"],
            caused_by=frame["caused_by"],
            at_s=asyncio.get_running_loop().time(),
            tag=frame.get("tag"),
        )
        self.records.received.append(received)
        for sent in reversed(self.records.sent):
            if sent.event_id == received.caused_by:
                self._note_answer(sent)
                break
        return received.cursor

    def _note_answer(self, sent: Sent) -> None:
        if sent.answered_at_s is None:
            sent.answered_at_s = asyncio.get_running_loop().time()
            self._answers.setdefault(sent.event_id, asyncio.Event()).set()
