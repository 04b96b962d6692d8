"""Reading what is stored now: single messages, by the stream's leader, and pages of them.

A page is what a follower brings that knows where to stop. A broker that stands alone tells the end
with each message. In a cluster a consumer may sit on a node that is behind, so the end is asked of
the stream's leader, and a node that doesn't get there is left for another.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..errors import OutcomeUnknown, Unavailable
from ..layout import LAYOUT_STREAM, LOG, LogLayout, filter_in, layout_of, named
from ..subjects import SessionKey
from .message import Message, SingleMessage
from .replies import ERR_NO_MESSAGE, ERR_NO_PEERS, ERR_STREAM_NOT_FOUND, BusError
from .wire import headers_of

if TYPE_CHECKING:
    from .consumers import Follower

QUIET_S: Final = 0.5
"""Without a message for so long, it's asked whether there is anything left."""
LEADER_TRY_S: Final = 1.0
"""A leader that was killed doesn't answer, and the next one is never told of the question."""


class Reads(ABC):
    """The reading half of a :class:`vigil.bus.bus.Bus`."""

    _loop: asyncio.AbstractEventLoop
    _layout: LogLayout | None

    @property
    @abstractmethod
    def is_cluster(self) -> bool:
        """Whether the broker is a node of a cluster: leaders of streams may be elsewhere."""

    @abstractmethod
    async def _request(
        self, subject: str, data: bytes, headers: dict[str, str] | None, timeout: float
    ) -> bytes:
        """Publish and wait for the answer. Raises: OutcomeUnknown, Unavailable."""

    @abstractmethod
    async def follow(
        self, stream: str, filters: Sequence[str], start: int, at_most: int = 0
    ) -> Follower:
        """Follow `filters` from sequence `start` on, in order, without gaps or repeats."""

    async def api(self, subject: str, request: dict[str, Any], timeout: float = 5.0) -> Any:
        """Call the JetStream API. Raises: BusError, Unavailable, OutcomeUnknown."""
        body = json.dumps(request).encode()
        answer = await self._request(f"$JS.API.{subject}", body, None, timeout)
        reply = msgspec.json.decode(answer)
        if "error" in reply:
            error = reply["error"]
            code, description = error.get("err_code", 0), error.get("description", "")
            if error.get("code") == 503 or code == ERR_NO_PEERS:
                raise Unavailable(f"{subject}: {description}")
            raise BusError(code, description)
        return reply

    async def layout(self) -> LogLayout:
        """Return in how many partitions the sessions are: the broker was told when it was set up.

        Raises:
            Unavailable: it can't tell.
        """
        if self._layout is None:
            try:
                info = await self._ask_leader(f"STREAM.INFO.{LAYOUT_STREAM}", {})
            except BusError as error:
                if error.code != ERR_STREAM_NOT_FOUND:
                    raise
                return LogLayout()  # as long as there is nothing, it's nowhere
            self._layout = layout_of(info["config"])
        return self._layout

    async def log_of(self, key: SessionKey) -> str:
        """Return the stream that holds a session."""
        return (await self.layout()).stream_of(key.root + ".")

    async def get_last(self, stream: str, subject: str) -> Message | None:
        """Return the newest message on `subject` (may be a wildcard), from the leader."""
        stream, (subject,) = await self.locate(stream, [subject])
        return await self._get(stream, {"last_by_subj": subject})

    async def newest(self, stream: str, filters: Sequence[str]) -> int:
        """Return the sequence of the newest message on `filters`, by the leader; 0: none."""
        found = await asyncio.gather(*(self.get_last(stream, one) for one in filters))
        return max((message.seq for message in found if message is not None), default=0)

    async def get(self, stream: str, seq: int) -> Message | None:
        """Return the message with that sequence, from the leader; of a session, see `get_of`."""
        return await self._get(stream, {"seq": seq})

    async def get_of(self, key: SessionKey, seq: int) -> Message | None:
        """Return the message of the log of a session with that sequence, from the leader."""
        return await self._get(await self.log_of(key), {"seq": seq})

    async def get_next(self, stream: str, subject: str, seq: int) -> Message | None:
        """Return the first message on `subject` at or after `seq`, from the leader."""
        stream, (subject,) = await self.locate(stream, [subject])
        return await self._get(stream, {"next_by_subj": subject, "seq": seq})

    async def locate(self, stream: str, filters: Sequence[str]) -> tuple[str, list[str]]:
        """Return where `filters` are, as the broker knows them: see :meth:`LogLayout.locate`."""
        if stream != LOG:
            return stream, [filter_in(stream, one) for one in filters]
        return (await self.layout()).locate(filters)

    async def _ask_leader(self, subject: str, request: dict[str, Any], timeout: float = 5.0) -> Any:
        """Call the API for something that changes nothing; in a cluster again and again."""
        deadline = self._loop.time() + timeout
        while self.is_cluster:
            try:
                return await self.api(subject, request, LEADER_TRY_S)
            except OutcomeUnknown:
                if self._loop.time() > deadline:
                    raise
        return await self.api(subject, request, timeout)

    async def _get(self, stream: str, request: dict[str, Any]) -> Message | None:
        try:
            found = (await self._ask_leader(f"STREAM.MSG.GET.{stream}", request))["message"]
        except BusError as error:
            if error.code == ERR_NO_MESSAGE:
                return None
            raise
        headers = headers_of(b64decode(found["hdrs"])) if "hdrs" in found else {}
        data = b64decode(found["data"]) if "data" in found else b""
        message = SingleMessage(named(found["subject"]), data, headers, found["seq"], stream=stream)
        message.time = found["time"]
        return message

    async def subjects(self, stream: str, wanted: str) -> dict[str, int]:
        """Return the subjects of a stream that a filter matches, and how many messages each has.

        Raises:
            BusError, Unavailable: the broker can't tell.
        """
        counts: dict[str, int] = {}
        for each in (await self.layout()).streams(stream):
            counts |= await self._subjects_in(each, filter_in(each, wanted))
        return counts

    async def _subjects_in(self, stream: str, wanted: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        offset, total = 0, 1
        while offset < total:
            request = {"subjects_filter": wanted, "offset": offset}
            reply = await self.api(f"STREAM.INFO.{stream}", request)
            found: dict[str, int] = reply["state"].get("subjects") or {}
            counts |= {named(subject): number for subject, number in found.items()}
            offset += len(found)
            total = reply.get("total", 0) if found else 0
        return counts

    async def read(
        self,
        stream: str,
        filters: Sequence[str],
        start: int = 1,
        *,
        limit: int = 0,
        bytes_max: int = 0,
        timeout: float = 30.0,
    ) -> list[Message]:
        """Return what is stored now on `filters` from sequence `start` on, in order.

        `limit` 0 reads all of it, `bytes_max` ends it after the message that exceeds it. What is
        stored or removed while it reads may be missing.

        Raises:
            Unavailable: it took longer than `timeout` seconds.
        """
        page, _ = await self.page(
            stream, filters, start, limit=limit, bytes_max=bytes_max, timeout=timeout
        )
        return page

    async def page(
        self,
        stream: str,
        filters: Sequence[str],
        start: int = 1,
        *,
        limit: int = 0,
        bytes_max: int = 0,
        timeout: float = 30.0,
    ) -> tuple[list[Message], bool]:
        """Read as :meth:`read` does; also tell whether there is more."""
        try:
            async with asyncio.timeout(timeout):
                return await _page(self, stream, filters, start, limit, bytes_max)
        except TimeoutError as error:
            raise Unavailable(f"{stream}: reading took longer than {timeout:g} s") from error


async def _page(
    bus: Reads, stream: str, filters: Sequence[str], start: int, limit: int, bytes_max: int
) -> tuple[list[Message], bool]:
    """Do what :meth:`Reads.page` promises, for as long as it takes."""
    end = await bus.newest(stream, filters) if bus.is_cluster else None
    if end is not None and end < start:
        return [], False
    follower = await bus.follow(stream, filters, start, limit)
    messages: list[Message] = []
    size = 0
    try:
        if end is None and follower.waiting == 0:
            return messages, False
        while True:
            message = await follower.next_within(QUIET_S)
            if message is None:
                # The one it would end on may be gone: is there anything left at all?
                after = messages[-1].seq + 1 if messages else start
                if await _is_nothing_after(bus, stream, filters, after):
                    return messages, False
                if bus.is_cluster:
                    follower.restart()
                continue
            messages.append(message)
            size += len(message.data)
            if _is_last(message, end):
                return messages, False
            if len(messages) == limit or 0 < bytes_max <= size:
                return messages, True
    finally:
        await follower.close()


def _is_last(message: Message, end: int | None) -> bool:
    return message.pending == 0 if end is None else message.seq >= end


async def _is_nothing_after(bus: Reads, stream: str, filters: Sequence[str], seq: int) -> bool:
    if bus.is_cluster:
        return await bus.newest(stream, filters) < seq
    probe = await bus.follow(stream, filters, seq)
    try:
        return probe.waiting == 0
    finally:
        await probe.close()
