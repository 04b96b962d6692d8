"""What the embedded nats-server says: kept, passed on, and searched for streams that broke.

The server writes into a pipe and not into a file: on a full disk the line that matters most would
be the first that is lost. The newest lines stay in memory, all go to a file as far as there is room
for them, and errors go to this process' own log.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger("vigil.broker")

KEPT_LINES: Final = 200
LINE_BYTES_MAX: Final = 2000
PASSED_ON_MAX: Final = 20
PASSED_ON_S: Final = 60.0
"""At most so many lines are passed on in so many seconds: a broken stream is told of each write."""
_CHUNK: Final = 64 * 1024
_BROKEN: Final = re.compile(
    r"\[ERR\].*(?:critical write error|failed to store a msg)", re.IGNORECASE
)
"""What the server says of each stream whose store failed, whatever the cause; from then on it
stores nothing there until it is restarted (nats-server 2.15.1, filestore.go and stream.go)."""
_STREAM: Final = re.compile(r"stream '[^']*> (\w+)'|filestore \[(\w+)\]", re.IGNORECASE)
_ERROR: Final = re.compile(r"\[(?:ERR|FTL)\]")


def broken_stream(line: str) -> str | None:
    """Return the stream that can't be written any more according to `line`; "?": it isn't named.

    >>> broken_stream("[7] [ERR] JetStream failed to store a msg on stream 'VIGIL > BOARD': full")
    'BOARD'
    >>> broken_stream("[7] [ERR] Filestore [SESSIONS] Critical write error: full")
    'SESSIONS'
    >>> broken_stream("[7] [WRN] JetStream stream 'VIGIL > BOARD' is slow")
    """
    if not _BROKEN.search(line):
        return None
    named = _STREAM.search(line)
    return (named[1] or named[2]) if named else "?"


class BrokerLog:
    """The log of one server after another."""

    def __init__(self, file: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._monotonic = monotonic
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._passed_on: deque[float] = deque(maxlen=PASSED_ON_MAX)
        self.broken: set[str] = set()
        """The streams that the server told to be broken."""
        self.has_broken = asyncio.Event()

    def last(self, count: int) -> list[str]:
        """Return the newest lines."""
        return list(self._lines)[-count:]

    def begin(self) -> None:
        """Forget what a server that is gone said of its streams."""
        self.broken.clear()
        self.has_broken.clear()

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Take in what a server says, until it ends."""
        rest = b""
        while chunk := await stream.read(_CHUNK):
            self._write(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[-LINE_BYTES_MAX:]
            for line in lines:
                self._take(line[:LINE_BYTES_MAX].decode("utf-8", "replace"))
        if rest:
            self._take(rest.decode("utf-8", "replace"))

    def _write(self, chunk: bytes) -> None:
        try:
            with self._file.open("ab") as file:
                file.write(chunk)
        except OSError as error:
            # Full. It goes on in memory, and what matters into the log of this process.
            self._pass_on(f"{self._file.name} can't be written: {error.strerror}")

    def _take(self, line: str) -> None:
        self._lines.append(line)
        if (stream := broken_stream(line)) is not None:
            self.broken.add(stream)
            self.has_broken.set()
        if _ERROR.search(line):
            self._pass_on(line)

    def _pass_on(self, line: str) -> None:
        now_s = self._monotonic()
        is_often = len(self._passed_on) == PASSED_ON_MAX
        if is_often and now_s - self._passed_on[0] < PASSED_ON_S:
            return
        self._passed_on.append(now_s)
        log.error("the broker says", action="broker.says", line=line)
