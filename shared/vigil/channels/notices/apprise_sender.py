"""What sends a message by Apprise.

The library says yes or no, and not why: after a no the receiver may have it, as of an answer that
was lost. So only a yes is a yes, and a no isn't tried again by itself. It works in a thread of its
own, which can't be stopped: what takes longer than `timeout_s` is unclear, too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from apprise import Apprise, NotifyFormat, NotifyType

from ...contracts import Said
from ...errors import InvalidInput
from ..answers import Answer, Taken, Unclear
from .words import not_theirs, shortened

if TYPE_CHECKING:
    from .apprise import AppriseWay

TITLE: Final = "Vigil"
BYTES_MAX: Final = 32_000


class AppriseSender:
    """One person's way."""

    def __init__(self, section: AppriseWay, url: str) -> None:
        self._section = section
        self._ways = Apprise()
        if not self._ways.add(url):
            raise InvalidInput("url_file", "holds no URL that Apprise knows")

    def __repr__(self) -> str:
        return f"AppriseSender({self._section.user!r})"

    async def send(self, said: Said, seq: int) -> Answer:
        """Try once; never raises but when cancelled."""
        if (refusal := not_theirs(said, self._section.user)) is not None:
            return refusal
        kind = NotifyType.WARNING if said.is_urgent or said.asks else NotifyType.INFO
        told: dict[str, Any] = {
            "body": shortened(said, BYTES_MAX),
            "title": TITLE,
            "notify_type": kind,
            "body_format": NotifyFormat.TEXT,
        }
        try:
            async with asyncio.timeout(self._section.timeout_s):
                is_taken = await asyncio.to_thread(self._ways.notify, **told)
        except TimeoutError:
            return Unclear(reason=f"no answer within {self._section.timeout_s:g} s")
        except (OSError, RuntimeError, TypeError, ValueError) as error:
            return Unclear(reason=f"failed: {type(error).__name__}")
        if is_taken:
            return Taken()
        return Unclear(reason="Apprise says that it failed, and not how far it came")

    async def close(self) -> None:
        """Nothing: each try has a connection of its own."""
