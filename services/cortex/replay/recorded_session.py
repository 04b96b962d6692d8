"""A session that is folded again: it asks nobody, and tells what to do with the answer
that was recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from vigil.contracts import Row
from vigil.contracts.made import SeenCut

from .. import core
from ..core import CompactionPlan, Draft, Window
from ..core.context.letters import opening_of
from ..core.draft.chunk import Offer
from ..core.draft.profile import Inquiry, ModelQuestion, OwnersBoard
from ..history import History
from ..model import CROWDED, ModelAnswer, ModelError, ToolSpec


async def _unasked() -> ModelAnswer:
    raise AssertionError("a replay asks no model")


class RecordedSession:
    """What the profile of one step may ask for, from the log."""

    def __init__(
        self, history: History, cut: SeenCut | None, unsaved: Callable[[int], Awaitable[Offer]]
    ) -> None:
        """`cut`: what made room before the model was asked; None: nothing had to."""
        self._history = history
        self._cut = cut
        self._unsaved = unsaved

    async def converse(self, draft: Draft) -> ModelQuestion | None:
        """Answer from the record, after the same room was made in the window."""
        seen = self._cut
        if seen is None:
            return ModelQuestion(_unasked, _conclude)
        window = Window(
            context_tokens=seen.context_tokens, fixed_tokens=seen.fixed_tokens, ratio=seen.ratio
        )
        self._history.show_to(opening_of(draft.loop, draft.state.vouched))
        plan = CompactionPlan(kind=seen.kind, count=seen.count, fill=seen.fill)
        cut = self._history.cut(plan, lists_letters=seen.lists_letters)
        if seen.kind == "drop":
            core.drop_oldest(draft, cut, window)
            return None

        def apply(draft: Draft, answer: ModelAnswer) -> None:
            core.summarise(draft, cut, answer, window)

        def fail(draft: Draft, error: ModelError) -> None:
            core.fail_to_summarise(draft, error.reason)

        return ModelQuestion(_unasked, apply, fail)

    def ask(self, draft: Draft, asked: Inquiry) -> Coroutine[Any, Any, ModelAnswer]:
        """Ask nobody."""
        return _unasked()

    def reflect(
        self, draft: Draft, text: str, *, purpose: str, prompt: str
    ) -> Coroutine[Any, Any, ModelAnswer]:
        """Ask nobody."""
        return _unasked()

    async def unsaved(self, start: int) -> Offer:
        """Read what was said from the turn `start` on, up to the step."""
        return await self._unsaved(start)

    def newest(self) -> tuple[Row, ...]:
        """Return the rows of the session that were known."""
        return self._history.newest

    async def board(self) -> OwnersBoard:
        """Return nothing: it is only shown to a model."""
        return OwnersBoard()

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return no tools: they are only shown to a model."""
        return ()


def _conclude(draft: Draft, answer: ModelAnswer) -> None:
    conclude = draft.profile.conclude
    if conclude is None:
        raise AssertionError(f"{draft.profile.name} concludes nothing that it asks so")
    core.answered(draft, is_fallback=answer.is_fallback)
    conclude(draft, answer)


def fail(draft: Draft, error: ModelError) -> None:
    """Take in that the model gave no answer to a step of a loop."""
    core.fail(
        draft,
        error.reason,
        is_retryable=error.is_retryable,
        retry_after_s=error.retry_after_s,
        budget_at=error.budget_at,
        is_of_model=error.is_of_model,
        is_unasked=error.is_unasked,
        is_crowded=error.kind == CROWDED,
    )
