"""What sends a message by Apprise.

The library says yes or no, and not why: after a no the receiver may have it, as of an answer that
was lost. So only a yes is a yes, and a no isn't tried again by itself. Each try has a thread of its
own, which can't be stopped: what takes longer than `timeout_s` is unclear, too. A few may hang so;
none of the threads that the rest of the process needs does.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from apprise import Apprise, NotifyFormat, NotifyType

from ...contracts import Said
from ...errors import InvalidInput
from ..answers import Answer, NotTaken, Taken, Unclear
from .words import not_theirs, shortened

if TYPE_CHECKING:
    from .apprise import AppriseWay

TITLE: Final = "Vigil"
BYTES_MAX: Final = 32_000
NO: Final = "Apprise says that it failed, and not how far it came"
FAILURES: Final = (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What one of a hundred services may raise of an answer that it doesn't expect."""
HANGING_MAX: Final = 4
"""Tries that may hang; until one ends nothing more is said."""


class AppriseSender:
    """One person's way."""

    def __init__(self, section: AppriseWay, url: str, console_url: str) -> None:
        self._section = section
        self._console_url = console_url
        self._hanging = 0
        self._ways = Apprise()
        if not self._ways.add(url):
            raise InvalidInput("url_file", "holds no URL that Apprise knows")

    def __repr__(self) -> str:
        return f"AppriseSender({self._section.user!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        if (refusal := not_theirs(said, self._section.user)) is not None:
            return refusal
        if self._hanging >= HANGING_MAX:
            return NotTaken(reason=f"{self._hanging} messages before it hang")
        kind = NotifyType.WARNING if said.is_urgent or said.asks else NotifyType.INFO
        notice: dict[str, Any] = {
            "body": shortened(said, BYTES_MAX, self._console_url),
            "title": TITLE,
            "notify_type": kind,
            "body_format": NotifyFormat.TEXT,
        }
        try:
            async with asyncio.timeout(self._section.timeout_s):
                failure = await self._notified(notice)
        except TimeoutError:
            return Unclear(reason=f"no answer within {self._section.timeout_s:g} s")
        return Unclear(reason=failure) if failure else Taken()

    async def _notified(self, notice: dict[str, Any]) -> str:
        """Say it in a thread; return why that may have failed, or nothing."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()

        def end(failure: str) -> None:
            self._hanging -= 1
            if not ended.done():  # else nobody waits any more
                ended.set_result(failure)

        def run() -> None:
            failure = "failed"
            try:
                failure = "" if self._ways.notify(**notice) else NO
            except FAILURES as error:
                failure = f"failed: {type(error).__name__}"
            finally:
                with contextlib.suppress(RuntimeError):  # the process is ending
                    loop.call_soon_threadsafe(end, failure)

        self._hanging += 1
        threading.Thread(target=run, name="apprise", daemon=True).start()
        return await ended

    async def close(self) -> None:
        """Nothing: each try has a connection of its own."""
