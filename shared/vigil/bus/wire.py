"""The protocol of NATS as bytes: what comes in is parted, what goes out is put together.

nats-py matches each line against seven expressions, reads every header of every message, and
queues each message for a task. What a service is brought is known before by the number of its
subscription, so here it's handed on at once, with its headers unread (:class:`Arrivals`).

Source: https://docs.nats.io/reference/reference-protocols/nats-protocol, and NATS ADR-4 (headers).
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import nats.errors
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

if TYPE_CHECKING:
    from .connection import Connection

Hear = Callable[[str, str, bytes, bytes], None]
"""Takes a message: its subject, where an answer goes, the data and the headers as they came."""

_LINE_END: Final = b"\r\n"
_MESSAGE: Final = (b"MSG", b"HMSG")
_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SPACE: Final = re.compile(r"[ \t\r\n]")
_NEW_LINES: Final = str.maketrans("\r\n", "  ")


class _MessageLine:
    """``MSG subject sid [reply] size`` or ``HMSG subject sid [reply] headers size``."""

    __slots__ = ("headers_size", "reply", "sid", "size", "subject")

    def __init__(self, words: list[bytes]) -> None:
        """Raises: ProtocolError."""
        sizes_at = -2 if words[0] == b"HMSG" else -1
        try:
            _, self.subject, sid, *reply = words[:sizes_at]
            (self.reply,) = reply or (b"",)
            self.sid, self.size = int(sid), int(words[-1])
            self.headers_size = int(words[-2]) if sizes_at == -2 else 0
        except ValueError as error:
            raise nats.errors.ProtocolError("nats: malformed MSG") from error


class Arrivals(Parser):
    """Parts what comes in: messages here, the rare other lines as nats-py does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._faults: list[Exception] = []
        """Of who heard a message, to be told."""
        self.is_parsing = False
        """Whether `parse` is at something that comes before what is read meanwhile."""
        super().__init__(connection)

    def reset(self) -> None:
        """Forget what came in part: the connection is another one."""
        super().reset()
        self._parts: list[bytes] = []
        self._held = 0
        self._needed = 0
        self._resets = getattr(self, "_resets", 0) + 1

    async def parse(self, data: bytes = b"") -> None:
        """Take in what was read. Raises: ProtocolError."""
        self.is_parsing = True
        try:
            resets, rest = self._resets, self.take(data)
            await self._report_faults()
            while rest:
                rest = await self._pass_on(rest)
                if resets != self._resets:
                    return
                rest = self.take(rest)
                await self._report_faults()
        finally:
            self.is_parsing = False

    def take(self, data: bytes) -> bytes:
        """Hand messages on to who hears them; return what begins with something else, or nothing.

        What came in part is kept until the rest of it comes.
        """
        self._parts.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return b""
        whole = data if len(self._parts) == 1 else b"".join(self._parts)
        hearers = self._connection.hearers
        begin = 0
        while begin < len(whole):
            end = whole.find(_LINE_END, begin)
            if end < 0:
                self._keep(whole[begin:], 1)
                return b""
            words = whole[begin:end].split(b" ")
            hear = None
            if words[0] in _MESSAGE:
                try:
                    line = _MessageLine(words)
                except nats.errors.ProtocolError:
                    break  # who parses it finds that out again
                stop = end + 2 + line.size + 2
                if stop > len(whole):
                    self._keep(whole[begin:], stop - len(whole))
                    return b""
                hear = hearers.get(line.sid)
            if hear is None:
                break
            content = whole[end + 2 : stop - 2]
            headers, body = content[: line.headers_size], content[line.headers_size :]
            try:
                hear(line.subject.decode(), line.reply.decode(), body, headers)
            except Exception as error:  # as nats-py does: the next message is none the worse for it
                self._faults.append(error)
            begin = stop
        self._keep(b"", 0)
        return whole[begin:]

    def faults(self) -> list[Exception]:
        """Return what failed of who heard messages, to be told; each once."""
        found, self._faults = self._faults, []
        return found

    async def _report_faults(self) -> None:
        for error in self.faults():
            await self.nc._error_cb(error)

    def _keep(self, rest: bytes, more: int) -> None:
        """Keep what came in part, until at least so many bytes more are there."""
        self._parts = [rest] if rest else []
        self._held = len(rest)
        self._needed = self._held + more

    async def _pass_on(self, rest: bytes) -> bytes:
        """Hand the first of it on as nats-py does; return what comes after. Raises: ProtocolError.

        It has a whole line, and the whole message if it is one.
        """
        line_end = rest.index(_LINE_END) + 2
        words = rest[: line_end - 2].split(b" ")
        if words[0] not in _MESSAGE:
            self.buf, self.state = bytearray(rest[:line_end]), AWAITING_CONTROL_LINE
            await super().parse()
            return rest[line_end:]
        line = _MessageLine(words)
        stop = line_end + line.size
        content = rest[line_end:stop]
        headers, data = content[: line.headers_size], content[line.headers_size :]
        await self.nc._process_msg(line.sid, line.subject, line.reply, data, headers)
        return rest[stop + 2 :]


class AtOnce(asyncio.Protocol):
    """Hands on what a socket brings in the moment it comes, as long as that is messages.

    nats-py has a task that waits for each piece of it. What is anything else, and all that comes
    before that is done, goes this way: to the protocol that was there before.
    """

    def __init__(self, arrivals: Arrivals, reader: asyncio.StreamReader, before: Any) -> None:
        self._arrivals = arrivals
        self._reader = reader
        self._before = before
        self._telling: set[asyncio.Future[None]] = set()

    def data_received(self, data: bytes) -> None:
        if not (self._arrivals.is_parsing or self._reader._buffer):  # type: ignore[attr-defined]
            data = self._arrivals.take(data)
            for error in self._arrivals.faults():
                task = asyncio.ensure_future(self._arrivals.nc._error_cb(error))
                self._telling.add(task)
                task.add_done_callback(self._telling.discard)
        if data:
            self._before.data_received(data)

    def eof_received(self) -> bool | None:
        is_kept_open: bool | None = self._before.eof_received()
        return is_kept_open

    def connection_lost(self, exc: Exception | None) -> None:
        self._before.connection_lost(exc)

    def pause_writing(self) -> None:
        self._before.pause_writing()

    def resume_writing(self) -> None:
        self._before.resume_writing()


def headers_of(raw: bytes) -> dict[str, str]:
    r"""Read headers, and a status that may stand before them.

    >>> headers_of(b"NATS/1.0\r\nmode: x\r\n\r\n")
    {'mode': 'x'}
    >>> headers_of(b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer:7\r\n\r\n")
    {'Status': '100', 'Description': 'Idle Heartbeat', 'Nats-Last-Consumer': '7'}
    >>> headers_of(b"")
    {}
    """
    first, *lines = raw.decode("utf-8", "replace").split("\r\n")
    headers = {}
    _, status, *description = first.split(" ", 2) if " " in first else (first, "")
    if status:
        headers["Status"] = status
    if description:
        headers["Description"] = description[0]
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name] = value.strip()
    return headers


def header_of(raw: bytes, name: str) -> str | None:
    r"""Read one header, as :func:`headers_of` does.

    >>> raw = b"NATS/1.0\r\nmode: x\r\nmode-of: y \r\n\r\n"
    >>> header_of(raw, "mode"), header_of(raw, "mode-of"), header_of(raw, "of")
    ('x', 'y', None)
    """
    before = f"\r\n{name}:".encode()
    found = raw.rfind(before)
    if found < 0:
        return None
    begin = found + len(before)
    return raw[begin : raw.find(_LINE_END, begin)].decode("utf-8", "replace").strip()


def is_unheard(headers: bytes) -> bool:
    """Whether the broker says that nobody listens to what was asked."""
    return headers.startswith(b"NATS/1.0 503")


def publication(subject: str, data: bytes, reply: str, headers: Mapping[str, str] | None) -> bytes:
    r"""Return the command that publishes; what would end a line before its time is refused.

    >>> publication("a.b", b"hi", "", None)
    b'PUB a.b  2\r\nhi\r\n'
    >>> publication("a.b", b"hi", "r", {"mode": "x\r\ny"})
    b'HPUB a.b r 24 26\r\nNATS/1.0\r\nmode: x  y\r\n\r\nhi\r\n'

    Raises:
        BadSubjectError: a subject is empty or has a space in it.
        BadHeaderError: a name of a header is none.
    """
    if not subject or _SPACE.search(f"{subject}{reply}"):
        raise nats.errors.BadSubjectError
    if not headers:
        return f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + _LINE_END
    lines = [f"{_checked(name)}: {value.strip()}" for name, value in headers.items()]
    written = "\r\n".join(lines)
    if written.count("\r") + written.count("\n") != 2 * (len(lines) - 1):
        written = "\r\n".join([line.translate(_NEW_LINES) for line in lines])
    head = f"NATS/1.0\r\n{written}\r\n\r\n".encode()
    command = f"HPUB {subject} {reply} {len(head)} {len(head) + len(data)}\r\n".encode()
    return b"".join((command, head, data, _LINE_END))


@functools.lru_cache(maxsize=256)
def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise nats.errors.BadHeaderError(name)
    return name
