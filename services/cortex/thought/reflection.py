"""Looking at a conversation from outside: its oldest part summed up, its newest offered to memory.

The shell of `core.compaction` and `core.pausing`: it reads what they decide about, and asks the
model. Neither is a step of the person's loop; both are turns of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from vigil import crash
from vigil.bus.bus import Bus
from vigil.clock import Clock
from vigil.contracts import FollowUp, Row, State
from vigil.subjects import SessionKey

from .. import core
from ..core import Draft, Plan, Policy, Window
from ..core.history import Chunk, memorable
from ..core.remembering import was_offered
from ..session import log as session_log
from ..session.history import History
from .model import ModelAnswer, ModelError
from .thinker import Thinker
from .transcript import transcript

COMPACT_AGAIN_S: Final = 60.0
"""After a summary that failed: the person isn't kept waiting for another one at each step."""
OFFER_SHARE_MAX: Final = 0.4
"""Of the context window: so much of a conversation is looked back on in one call."""


class Question(NamedTuple):
    """A question to the model, and what to do with its answer, or without one."""

    answer: Coroutine[Any, Any, ModelAnswer]
    """Raises ModelError."""
    apply: Callable[[Draft, ModelAnswer], None]
    fail: Callable[[Draft, ModelError], None]


class Reflector:
    """What one open session needs to reflect."""

    def __init__(
        self,
        key: SessionKey,
        *,
        bus: Bus,
        clock: Clock,
        thinker: Thinker,
        policy: Policy,
        timezone: str,
        context_tokens: int,
    ) -> None:
        self._key = key
        self._bus = bus
        self._clock = clock
        self._thinker = thinker
        self._policy = policy
        self._timezone = timezone
        self._context_tokens = context_tokens
        self._not_before: datetime | None = None
        """When a summary may be asked for again, after one that failed."""
        self._fixed: tuple[dict[str, FollowUp], int] | None = None
        """The estimate for what a request holds beside the history, and for which follow-ups."""

    # ------------------------------------------------------------ compacting

    def window(self, draft: Draft, history: History) -> Window:
        """Return the context window of the call that the draft wants."""
        follow_ups = draft.state.follow_ups
        if self._fixed is None or self._fixed[0] is not follow_ups:
            # Rendering the prompt twice for each call would cost a tenth of a turn, and beside
            # them hardly anything of it changes while a session is open.
            tokens = self._thinker.fixed_tokens(
                self._key, draft.state, self._timezone, self._policy
            )
            self._fixed = follow_ups, tokens
        return history.window(self._fixed[1])

    def plan(self, draft: Draft, history: History, window: Window) -> Plan | None:
        """Decide what must go before the model is asked."""
        plan = history.plan(draft.rows, window)
        if plan is None:
            return None
        if plan.kind == "summarise" and self._not_before is not None:
            if self._clock.now() < self._not_before:
                return None
            self._not_before = None
        return plan

    def compact(
        self,
        draft: Draft,
        history: Callable[[], History],
        plan: Plan,
        window: Window,
        parent: str,
    ) -> Question | None:
        """Make room in the window. None: it is done, without a question.

        Args:
            history: gives that of the session as it is when it is called.
        """
        cut = history().cut(plan)
        if plan.kind == "drop":
            core.drop_oldest(draft, cut, window)
            return None

        def apply(draft: Draft, answer: ModelAnswer) -> None:
            if not history().begins_with(cut):
                return  # another replica went on with the session, and compacted it
            if not core.summarise(draft, cut, answer, window):
                self._wait()

        def fail(draft: Draft, error: ModelError) -> None:
            self._wait()
            core.fail_to_summarise(draft, error.reason)

        chunks = [(chunk, was_offered(draft, chunk)) for chunk in cut.chunks]
        offered = _rows_of(chunk for chunk, is_offered in chunks if is_offered)
        text = transcript(
            _rows_of(chunk for chunk, is_offered in chunks if not is_offered), cut.summary, offered
        )
        return Question(self._ask(draft.state, text, "compact", parent), apply, fail)

    def _wait(self) -> None:
        self._not_before = self._clock.now() + timedelta(seconds=COMPACT_AGAIN_S)

    # ------------------------------------------------------------ looking back

    async def look_back(
        self, draft: Draft, fail: Callable[[Draft, ModelError], None], parent: str
    ) -> Question | None:
        """Offer memory what it was not offered yet. None: there is nothing to ask about."""
        tokens_max = int(self._context_tokens * OFFER_SHARE_MAX)
        start = draft.state.unsaved_from
        offer = await session_log.unsaved(self._bus, self._key, start, tokens_max)
        if not offer.has_words:
            core.skip_saving(draft, offer)
            return None

        def apply(draft: Draft, answer: ModelAnswer) -> None:
            core.conclude_saving(draft, answer, offer)

        text = transcript(row for chunk in offer.chunks for row in memorable(chunk))
        return Question(self._ask(draft.state, text, "save", parent), apply, fail)

    async def _ask(
        self, state: State, text: str, purpose: Literal["save", "compact"], parent: str
    ) -> ModelAnswer:
        crash.point("cortex.reflect.before_call")
        answer = await self._thinker.reflect(
            self._key,
            state,
            text,
            purpose=purpose,
            timezone=self._timezone,
            policy=self._policy,
            parent=parent,
        )
        crash.point("cortex.reflect.after_call")
        return answer


def _rows_of(chunks: Iterable[Chunk]) -> tuple[Row, ...]:
    return tuple(row for chunk in chunks for row in chunk.rows)
