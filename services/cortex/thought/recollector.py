"""Asks memory before a loop asks the model. It may fail or be late; no answer fails for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from vigil.clock import Clock
from vigil.contracts import Cause, Loop, Row
from vigil.errors import OutcomeUnknown, Unavailable, VigilError
from vigil.memory.client import MemoryClient
from vigil.memory.operations.recall import Recall, Recalled
from vigil.memory.questions import NOT_ASKED, Hit
from vigil.observe import metrics, warmth
from vigil.observe.metrics import Metrics
from vigil.settings.config import Config
from vigil.subjects import Scope, SessionKey

from ..core import Draft
from ..core.context.recollection import NOTHING, Recollection, note_recall, query_of

log = structlog.get_logger("vigil.cortex")

MEMORIES_MAX: Final = 40
"""That are given, however short they are."""
EMPTY_FOR_S: Final = 0.5
"""How long a memory that was empty counts as empty. What is saved is to be found within 1 s."""
ASKED_ALONE_S: Final = 0.05
"""How much longer, while one conversation looks whether it still is."""
EMPTY_MAX: Final = 1000
"""Memories of which that is remembered."""


class Recollector:
    """Recalls for all sessions of a replica."""

    def __init__(
        self, *, memory: MemoryClient, config: Config, clock: Clock, counts: Metrics
    ) -> None:
        self._memory = memory
        self._config = config
        self._clock = clock
        self._counts = counts
        self.began_cold: dict[warmth.Lacked, int] = {}
        """How many sessions began here before all was there, by what they lacked (SPEC C-3)."""
        self._empty: dict[Scope, float] = {}
        """Until when a memory counts as empty, by the monotonic clock."""
        self._saves = 0
        """Counts what may have filled one: an answer on its way then tells of the time before."""

    async def recall(self, key: SessionKey, query: str) -> Recollection:
        """Return what the owner's memory has on `query`; never raises, and never takes longer
        than `memory.recall_timeout_s`."""
        tokens = self._config.memory.recall_tokens
        if not tokens or not query:
            return NOTHING
        scope = key.scope
        begun, outcome = self._clock.monotonic(), "failed"
        if self._counts_as_empty(scope, begun):
            return NOTHING
        try:
            question = Recall(query=query, limit=MEMORIES_MAX, tokens=tokens, only_trusted=True)
            found = await self._ask(scope, question)
            outcome = "degraded" if found.missing else "found" if found.hits else "nothing"
            return found
        finally:
            lasted_s = self._clock.monotonic() - begun
            self._counts.observe(metrics.RECALL_SECONDS, lasted_s, outcome)

    def count_cold(self, lacked: warmth.Lacked) -> None:
        """Count a session that begins so."""
        self.began_cold[lacked] = self.began_cold.get(lacked, 0) + 1
        self._counts.count(metrics.COLD_SESSIONS, lacked)

    def may_have_saved(self, key: SessionKey) -> None:
        """Ask again at once: a tool may have saved something."""
        self._saves += 1
        self._empty.pop(key.scope, None)

    async def _ask(self, scope: Scope, question: Recall) -> Recollection:
        saves, timeout_s = self._saves, self._config.memory.recall_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                reply: Recalled = await self._memory.ask(scope, question, timeout_s=timeout_s)
        except (TimeoutError, OutcomeUnknown):
            return self._without(scope, f"no answer within {timeout_s:g} s")
        except Unavailable as error:
            return self._without(scope, "memory could not be reached", str(error))
        except (VigilError, msgspec.MsgspecError) as error:
            return self._without(scope, "memory could not answer", str(error))
        if reply.is_empty and saves == self._saves:
            self._remember_empty(scope)
        else:
            self._empty.pop(scope, None)
        return Recollection(
            hits=reply.hits,
            missing=", ".join(
                f"{NOT_ASKED.get(part, part)} could not be searched" for part in reply.degraded
            ),
        )

    def _counts_as_empty(self, scope: Scope, now: float) -> bool:
        """Tell whether a memory needs no question. When that is over, the first one who asks asks
        for all: a hundred conversations would do so at the same moment otherwise."""
        until = self._empty.get(scope)
        if until is None or until > now:
            return until is not None
        self._empty[scope] = now + ASKED_ALONE_S
        return False

    def _without(self, scope: Scope, reason: str, error: str = "") -> Recollection:
        self._empty.pop(scope, None)
        log.warning(
            "answering without memory",
            action="cortex.recall",
            agent=scope.agent,
            owner=scope.owner,
            error=error or reason,
        )
        return Recollection(missing=reason)

    def _remember_empty(self, scope: Scope) -> None:
        if len(self._empty) >= EMPTY_MAX:
            self._empty.clear()
        self._empty[scope] = self._clock.monotonic() + EMPTY_FOR_S


class LoopMemory:
    """What one session recalled for its open loop: once, and the same for all calls of the model.

    It isn't part of the state: who takes the session over recalls anew.
    """

    def __init__(self, recollector: Recollector, key: SessionKey) -> None:
        self._recollector = recollector
        self._key = key
        self._cause: Cause | None = None
        self._recollection = NOTHING
        self._is_noted = True

    async def recall(self, loop: Loop, rows: Sequence[Row]) -> tuple[Hit, ...]:
        """Return what memory has on what began the loop."""
        if self._cause != loop.cause:
            self._recollection = await self._recollector.recall(self._key, query_of(loop, rows))
            self._cause, self._is_noted = loop.cause, False
        return self._recollection.hits

    def note_recall(self, draft: Draft, *, lacks_bulletin: bool = False) -> None:
        """Let the first turn after the recall say what it gave.

        Args:
            lacks_bulletin: whether the session's kind is shown one and there is none yet.
        """
        if self._is_noted or self._cause != draft.loop.cause:
            return
        self._is_noted = True
        note_recall(draft, self._recollection)
        if draft.ordinal == 1 and self._recollection.missing:
            self._recollector.count_cold("memory")
        elif draft.ordinal == 1 and lacks_bulletin:
            self._recollector.count_cold("bulletin")

    def may_have_saved(self) -> None:
        self._recollector.may_have_saved(self._key)
