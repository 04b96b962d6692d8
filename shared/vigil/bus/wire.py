"""The protocol of NATS as bytes: what comes in is parted, what goes out is put together.

nats-py matches each line against seven expressions, reads every header of every message, and
queues each message for a task. What a service is brought is known before by the number of its
subscription, so here it's handed on at once, with its headers unread (:class:`Arrivals`).

Source: https://docs.nats.io/reference/reference-protocols/nats-protocol, and NATS ADR-4 (headers).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

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
        self._parts.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return
        whole = data if len(self._parts) == 1 else b"".join(self._parts)
        resets = self._resets
        begin = 0
        while begin < len(whole) and resets == self._resets:
            end = whole.find(_LINE_END, begin)
            if end < 0:
                self._keep(whole[begin:], 1)
                return
            line_end = end + 2
            words = whole[begin:end].split(b" ")
            if words[0] in _MESSAGE:
                line = _MessageLine(words)
                stop = line_end + line.size + 2
                if stop > len(whole):
                    self._keep(whole[begin:], stop - len(whole))
                    return
                await self._message(line, whole[line_end : stop - 2])
                begin = stop
            else:
                self.buf, self.state = bytearray(whole[begin:line_end]), AWAITING_CONTROL_LINE
                await super().parse()
                begin = line_end
        if resets == self._resets:
            self._keep(b"", 0)

    def _keep(self, rest: bytes, more: int) -> None:
        """Keep what came in part, until at least so many bytes more are there."""
        self._parts = [rest] if rest else []
        self._held = len(rest)
        self._needed = self._held + more

    async def _message(self, line: _MessageLine, content: bytes) -> None:
        headers, data = content[: line.headers_size], content[line.headers_size :]
        hear = self._connection.hearers.get(line.sid)
        if hear is None:
            await self.nc._process_msg(line.sid, line.subject, line.reply, data, headers)
            return
        try:
            hear(line.subject.decode(), line.reply.decode(), data, headers)
        except Exception as error:  # as nats-py does: the next message is none the worse for it
            await self.nc._error_cb(error)


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
    if not subject or _SPACE.search(subject) or _SPACE.search(reply):
        raise nats.errors.BadSubjectError
    if not headers:
        return f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + _LINE_END
    lines = [f"{_checked(name)}: {_on_one_line(value)}" for name, value in headers.items()]
    head = ("NATS/1.0\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode()
    command = f"HPUB {subject} {reply} {len(head)} {len(head) + len(data)}\r\n".encode()
    return b"".join((command, head, data, _LINE_END))


@functools.lru_cache(maxsize=256)
def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise nats.errors.BadHeaderError(name)
    return name


def _on_one_line(value: str) -> str:
    return value.strip().translate(_NEW_LINES) if "\n" in value or "\r" in value else value.strip()
