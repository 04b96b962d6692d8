"""Questions over the bus, and their answers: plain NATS requests, nothing stored.

Answers come to ``rpc.answer.{role}.…``, a place that holds nothing else: everybody who listens to a
question sees where its answer goes, so that place tells nothing of our inboxes (docs/adr/0014).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from ..errors import OutcomeUnknown, Unavailable
from ..topology import answers_prefix


class Asker:
    """Asks for one connection."""

    def __init__(self, connection: Client, role: str) -> None:
        self._nc = connection
        self._prefix = answers_prefix(role)
        self._place = f"{self._prefix}.{secrets.token_hex(11)}"
        self._subscribing: asyncio.Future[Any] | None = None
        self._waiting: dict[str, asyncio.Future[Msg]] = {}
        self._next = 0

    async def ask(
        self, subject: str, data: bytes, *, timeout: float, headers: dict[str, str] | None = None
    ) -> Msg:
        """Ask whoever listens; return the first answer, as it came.

        Raises:
            Unavailable: nobody listens, or the connection is away.
            OutcomeUnknown: no answer within `timeout` seconds.
        """
        await self._subscribe()
        self._next += 1
        token = str(self._next)
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._waiting[token] = answer
        try:
            await self._nc.publish(subject, data, f"{self._place}.{token}", headers)
            async with asyncio.timeout(timeout):
                msg = await answer
        except TimeoutError as error:
            raise OutcomeUnknown(f"{subject}: no answer within {timeout:g} s") from error
        except nats.errors.Error as error:
            raise Unavailable(f"{subject}: {error!r}") from error
        finally:
            self._waiting.pop(token, None)
        if _is_status(msg):
            raise Unavailable(f"{subject}: nobody listens")
        return msg

    async def _subscribe(self) -> None:
        if self._subscribing is None:
            self._subscribing = asyncio.ensure_future(
                self._nc.subscribe(f"{self._place}.*", cb=self._on_answer)
            )
        try:
            await asyncio.shield(self._subscribing)
        except nats.errors.Error as error:
            self._subscribing = None
            raise Unavailable(f"can't listen for answers: {error!r}") from error

    async def _on_answer(self, msg: Msg) -> None:
        answer = self._waiting.get(msg.subject.rpartition(".")[2])
        if answer is not None and not answer.done():
            answer.set_result(msg)

    async def ask_all(
        self, subject: str, data: bytes, *, count: int, timeout: float
    ) -> list[bytes]:
        """Ask every listener: return once `count` answered or `timeout` seconds passed."""
        answers: list[bytes] = []
        enough = asyncio.Event()
        inbox = f"{self._prefix}.{secrets.token_hex(11)}"

        async def on_answer(msg: Msg) -> None:
            if _is_status(msg):
                enough.set()
                return
            answers.append(msg.data)
            if len(answers) >= count:
                enough.set()

        try:
            subscription = await self._nc.subscribe(inbox, cb=on_answer)
        except nats.errors.Error as error:
            raise Unavailable(f"{subject}: {error!r}") from error
        try:
            await self._nc.publish(subject, data, inbox)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await enough.wait()
        except nats.errors.Error as error:
            raise Unavailable(f"{subject}: {error!r}") from error
        finally:
            with contextlib.suppress(nats.errors.Error):
                await subscription.unsubscribe()
        return answers


def _is_status(msg: Msg) -> bool:
    """Whether the broker says that nobody listens."""
    return bool(msg.headers and "Status" in msg.headers)
