"""Making room in the context window: the oldest part of a conversation is summed up.

The shell of `core.context.compaction`: it reads what that decides about, and asks the model. It is
no step of the person's loop, but a turn of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from vigil.clock import Clock
from vigil.contracts import FollowUp, Row
from vigil.settings.sections import Person
from vigil.subjects import SessionKey

from .. import core
from ..core import CompactionPlan, Draft, Policy, Window
from ..core.context.compaction import words_of
from ..core.context.offers import was_offered
from ..core.context.window import tokens_of_rows
from ..core.draft.chunk import Chunk
from ..core.draft.profile import ModelQuestion
from ..history import History
from ..model import CROWDED, TOO_LONG, ModelAnswer, ModelError
from .thinker import Thinker
from .transcript import transcript

COMPACT_AGAIN_S: Final = 60.0
"""After a summary that failed: the person isn't kept waiting for another one at each step."""
REFUSED_SHARE: Final = 0.95
"""Of a request that was refused: a longer one isn't tried again."""
ALONE_SHARE: Final = 0.9
"""Of the window: where the prompt takes so much, no message fits."""
PURPOSE: Final = "compact"
PROMPT: Final = "compact.md.j2"


class Compactor:
    """What one open session needs to keep within the window."""

    def __init__(
        self,
        key: SessionKey,
        *,
        clock: Clock,
        thinker: Thinker,
        policy: Policy,
        person: Callable[[], Person],
    ) -> None:
        self._key = key
        self._clock = clock
        self._thinker = thinker
        self._policy = policy
        self._person = person
        self._not_before: datetime | None = None
        """When a summary may be asked for again, after one that failed."""
        self._fixed: tuple[dict[str, FollowUp], int] | None = None
        """The estimate for what a request holds beside the history, and for which follow-ups."""
        self._refused_at = 0
        """Tokens, as they are estimated, of the shortest request that was refused as too long."""
        self._is_crowded = False
        """Whether room has to be made for a request that was refused, however full it seems."""

    def window(self, draft: Draft, history: History) -> Window:
        """Return the context window of the call that the draft wants."""
        follow_ups = draft.state.follow_ups
        if self._fixed is None or self._fixed[0] is not follow_ups:
            # Rendering the prompt twice for each call would cost a tenth of a turn, and beside
            # them hardly anything of it changes while a session is open.
            tokens = self._thinker.fixed_tokens(
                self._key, draft.state, self._person(), self._policy
            )
            self._fixed = follow_ups, tokens
        window = history.window(self._fixed[1])
        known = self._thinker.window_tokens(self._key, draft.state, self._policy.profile)
        limits = (window.context_tokens, known, self._refused_at)
        return replace(window, context_tokens=min(limit for limit in limits if limit))

    def refused(self, draft: Draft, history: History, error: ModelError) -> ModelError:
        """Take in that a request was too long -> that error, or one that says what there is to do:
        room can be made, or not even the open exchange fits."""
        window = self.window(draft, history)
        sent = history.rows(draft.rows, window)
        self._refused_at = max(int(window.tokens(tokens_of_rows(sent)) * REFUSED_SHARE), 1)
        narrow = self.window(draft, history)
        plan = history.make_room(draft.rows, narrow, may_ask=self._may_ask())
        self._is_crowded = plan is not None
        if self._is_crowded or len(history.rows(draft.rows, narrow)) < len(sent):
            kind, reason = CROWDED, error.reason
        else:
            kind, reason = TOO_LONG, _alone(narrow, error.limit_tokens)
        return ModelError(
            reason, is_retryable=False, kind=kind, notices=error.notices, is_refused=True
        )

    def _may_ask(self) -> bool:
        return self._not_before is None or self._clock.now() >= self._not_before

    def plan(self, draft: Draft, history: History, window: Window) -> CompactionPlan | None:
        """Decide what must go before the model is asked."""
        if self._is_crowded:
            return history.make_room(draft.rows, window, may_ask=self._may_ask())
        plan = history.plan(draft.rows, window)
        if plan is None:
            return None
        if plan.kind == "summarise" and not self._may_ask():
            return None
        return plan

    def compact(
        self,
        draft: Draft,
        history: Callable[[], History],
        plan: CompactionPlan,
        window: Window,
        reflect: Callable[..., Coroutine[Any, Any, ModelAnswer]],
    ) -> ModelQuestion | None:
        """Make room in the window. None: it is done, without a question.

        Args:
            history: gives that of the session as it is when it is called.
            reflect: asks the model (`OpenSession.reflect`).
        """
        self._is_crowded = False
        cut = history().cut(plan)
        seen = core.seen_cut(plan, window)
        if plan.kind == "drop":
            draft.inputs.cut = seen
            core.drop_oldest(draft, cut, window)
            return None

        def apply(draft: Draft, answer: ModelAnswer) -> None:
            draft.inputs.cut = seen
            if not history().begins_with(cut):
                return  # another replica went on with the session, and compacted it
            if not core.summarise(draft, cut, answer, window):
                self._wait()

        def fail(draft: Draft, error: ModelError) -> None:
            draft.inputs.cut = seen
            self._wait()
            core.fail_to_summarise(draft, error.reason)

        chunks = [(chunk, was_offered(draft, chunk)) for chunk in cut.chunks]
        offered = _rows_of(chunk for chunk, is_offered in chunks if is_offered)
        text = transcript(
            _rows_of(chunk for chunk, is_offered in chunks if not is_offered),
            words_of(cut.summary),
            offered,
        )
        asking = partial(reflect, draft, text, purpose=PURPOSE, prompt=PROMPT)
        return ModelQuestion(asking, apply, fail)

    def _wait(self) -> None:
        self._not_before = self._clock.now() + timedelta(seconds=COMPACT_AGAIN_S)


def _alone(window: Window, limit_tokens: int) -> str:
    """Say that not even the open exchange fits, and what to do."""
    reads = f", which reads at most {limit_tokens:,} tokens at once" if limit_tokens else ""
    if window.tokens(0) < ALONE_SHARE * window.context_tokens:
        return f"this is too long for the model{reads}. Please send it in smaller parts."
    needed = f"{round(window.tokens(0), -2):,.0f}"
    return (
        f"what I have to tell the model beside the conversation takes about {needed} tokens, and "
        f"is too long for the model{reads}. Please choose one with a longer window."
    )


def _rows_of(chunks: Iterable[Chunk]) -> tuple[Row, ...]:
    return tuple(row for chunk in chunks for row in chunk.rows)
