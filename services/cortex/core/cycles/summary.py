"""Merged summaries, written anew one after the other: each by a call that is shown it alone (M-6).
Pure.

What the model says takes the place of the notes that were put one below the other; they stay behind
it. An answer that is no such text leaves the notes in its place word for word, so it isn't asked
for again. What is done is done: a call that fails ends the session, and the rest is for the next.
"""

from __future__ import annotations

from typing import Final

from vigil.contracts import Cause, Control, SaveMemoryPayload
from vigil.contracts.board import MergedSummary

from ...model import ModelAnswer
from ..context.offers import TRUNCATING
from ..draft import Draft
from ..work import children
from ..work.loop_end import end_loop
from .bulletin import plain

PURPOSE: Final = "rewriting"
"""What its loops are marked with."""
LONGER_MAX: Final = 200
"""Bytes that a text may have more than its notes; beyond, it's no summary of them."""


def begin(draft: Draft, cause: Cause, event: Control) -> None:
    """Begin with the first, if there is one."""
    children.begin(draft, cause, event)
    if draft.state.loop is not None and not left(draft):
        end_loop(draft, "silent")


def left(draft: Draft) -> tuple[MergedSummary, ...]:
    """Return those that are still to be written."""
    start = draft.state.start
    return () if start is None else start.summaries[draft.loop.calls :]


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Take the answer as the text of one, and go on with the next."""
    summary = left(draft)[0]
    draft.update_loop(calls=draft.loop.calls + 1, retries=0)
    draft.usage.append(answer.usage)
    text, problem = read(summary, answer)
    if problem:
        draft.note("rewriting_refused", problem, summary.id)
    given = SaveMemoryPayload(content=text, type="summary", rewrites=summary.id)
    draft.save_memory(given, draft.sway)
    if left(draft):
        draft.outcome = "continued"
    else:
        end_loop(draft, "silent")


def read(summary: MergedSummary, answer: ModelAnswer) -> tuple[str, str]:
    """Return the text that a summary has from now on, and why that is still its notes."""
    text = plain(answer.text)
    if answer.stop_reason == "refusal":
        return summary.text, "the model declined to answer"
    if not text:
        return summary.text, "the answer holds no text"
    is_longer = len(text.encode()) > len(summary.text.encode()) + LONGER_MAX
    if answer.stop_reason in TRUNCATING or is_longer:
        return summary.text, "the answer is longer than the notes"
    return text, ""
