"""How far a call is, told to whoever watches its session.

A source may tell it as often as it likes: the newest state is kept, and told twice a second at
most. It goes to people alone, is no record, and gives a call no more time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from vigil.contracts.calls.progress import CallProgress, is_known
from vigil.errors import Unavailable
from vigil.texts.glyphs import is_printable

from .source import Call

PAUSE_S: Final = 0.5
"""Between two states of one call: a person reads no faster."""
TEXT_LENGTH_MAX: Final = 200
"""Characters that are told."""
READ_LENGTH_MAX: Final = 2 * TEXT_LENGTH_MAX
"""Characters that are looked at: white space among them is folded."""

Send = Callable[[str, bytes], Awaitable[None]]


class ProgressReporter:
    """Reports how far one call is."""

    def __init__(self, send: Send, call: Call) -> None:
        self._send = send
        self._subject = call.key.doing
        self._newest = CallProgress(call_id=call.id, tool=call.tool.name, done=0)
        self._is_reported = True
        self._has_reported = self._is_over = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, done: float, total: float | None, text: str | None) -> None:
        """Note how far it is."""
        if self._is_over or not is_known(done, total):
            return
        plain = "".join(c if is_printable(c) else " " for c in (text or "")[:READ_LENGTH_MAX])
        said = " ".join(plain.split())[:TEXT_LENGTH_MAX]
        self._newest = msgspec.structs.replace(self._newest, done=done, total=total, text=said)
        self._is_reported = False
        if self._timer is None:
            self._report()

    def _report(self) -> None:
        self._timer = None
        if self._is_reported:
            return
        self._is_reported = self._has_reported = True
        task = asyncio.ensure_future(self._publish())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._timer = asyncio.get_running_loop().call_later(PAUSE_S, self._report)

    async def end(self) -> None:
        """The call is over, or waits for a person."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._has_reported:
            self._newest = msgspec.structs.replace(self._newest, is_over=True)
            await self._publish()

    async def _publish(self) -> None:
        # A courtesy: the result takes its place, so a lost one is no loss.
        with contextlib.suppress(Unavailable):
            await self._send(self._subject, msgspec.json.encode(self._newest))
