"""How long a call of a model is waited for: while it gives signs of life, and in all.

A healthy stream of a slow model may take many minutes. What tells that nothing more will come is
silence: no first token, or none after the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from vigil.words.amounts import span_of

from ...model import ENDLESS, TIMEOUT, ModelError, ModelRequest


class CallTimeout:
    """Ends the block it is entered for with TimeoutError; `heard` tells it of each sign of life."""

    def __init__(self, request: ModelRequest) -> None:
        self.silence_s = request.timeout_s
        self.total_s = max(request.total_s, request.timeout_s)
        self._ends_at = 0.0
        self._timeout: asyncio.Timeout | None = None
        self._has_begun = False

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Wait for what the block does. Raises: TimeoutError."""
        now_s = asyncio.get_running_loop().time()
        self._ends_at = now_s + self.total_s
        async with asyncio.timeout_at(now_s + self.silence_s) as self._timeout:
            yield

    def heard(self) -> None:
        """Take in that an event of the answer came, whatever is in it."""
        self._has_begun = True
        if self._timeout is not None:
            until_s = asyncio.get_running_loop().time() + self.silence_s
            self._timeout.reschedule(min(until_s, self._ends_at))

    def error(self) -> ModelError:
        """Return what the end of it means.

        An answer that came all the time, and didn't end, would take as long once more.
        """
        if asyncio.get_running_loop().time() >= self._ends_at > 0 and self._has_begun:
            reason = f"the model's answer had no end within {span_of(self.total_s)}"
            return ModelError(reason, is_retryable=False, kind=ENDLESS)
        silence = span_of(self.silence_s)
        reason = f"the model did not answer within {silence}"
        if self._has_begun:
            reason = f"the model fell silent for {silence} in the middle of its answer"
        return ModelError(reason, is_retryable=True, kind=TIMEOUT)
