"""The end of a loop: what waited for it goes on, and who started the session is told. Pure."""

from __future__ import annotations

from typing import Final

from vigil.contracts import Loop, Outcome, Waiting
from vigil.contracts.turns import RecentExchange

from .. import loops
from .. import sway as sways
from ..draft import CALL_TIMER, RETRY_TIMER, Draft
from ..pending import tasks
from ..sway import Sway
from . import findings

ANSWER: Final = "answer"
"""The purpose of a loop in which the session's own kind thinks."""


def end_loop(
    draft: Draft,
    outcome: Outcome | None,
    *,
    is_interrupted: bool = False,
    is_unanswered: bool = False,
) -> None:
    """Close the loop; the exchange of its cause is over.

    `outcome` None: another event ends it, and gives the turn its outcome. `is_interrupted`: nothing
    in it failed; whoever was at it was ended, again and again. `is_unanswered`: no model answered,
    and one may later.
    """
    loop, sway, tells_end = draft.loop, draft.sway, draft.profile.tells_end
    if loop.retry is not None:
        draft.cancel_deadline(RETRY_TIMER, loop.retry.generation)
    if loop.waiting is not None:
        _stop_waiting(draft, loop.waiting)
    draft.ended += (*loop.joined, loop.cause.id)
    if not draft.is_aside:
        is_outside = sways.of_loop(loop).is_outside and loop.begun_turn > 0
        ended = RecentExchange(
            begun_turn=loop.begun_turn, files_from=loop.files_from, ended_at=draft.moment.now
        )
        draft.update(exchange=ended if is_outside else None)
    draft.update(loop=None)
    tasks.close_task(draft, loop.task_id)
    if tells_end:
        is_untouched = not loop.calls and loop.purpose == ANSWER
        _report_end(
            *(draft, loop, outcome, sway),
            is_interrupted=is_interrupted,
            is_unanswered=is_unanswered and is_untouched,
        )
    draft.is_tainted = draft.is_tainted or (sways.of_own_rows(loop).is_outside and bool(draft.rows))
    if loop.is_direct:
        loops.await_pause_after(draft, loop)
    if outcome is not None:
        draft.outcome = outcome


def report_end(draft: Draft, outcome: Outcome) -> None:
    """Tell now what came of this session, of which the open loop is; what it does yet is for itself
    (`Profile.tells_end`)."""
    _report_end(draft, draft.loop, outcome, draft.sway)


def _stop_waiting(draft: Draft, waiting: Waiting) -> None:
    """See to it that nobody works on what no loop waits for any more."""
    if waiting.generation:
        draft.cancel_deadline(CALL_TIMER, waiting.generation)
    for call in waiting.calls:
        tasks.abandon(draft, call, "nobody waits for it any more")


def _report_end(
    draft: Draft,
    loop: Loop,
    outcome: Outcome | None,
    sway: Sway,
    *,
    is_interrupted: bool = False,
    is_unanswered: bool = False,
) -> None:
    """Tell who started this session, if somebody did, that it is over and what came of it."""
    if draft.state.start is not None:
        state, content = tasks.ending(
            outcome, draft.notes, draft.last_words, loop.unsaid, loop.retry
        )
        if draft.state.start.slot is not None and state == "done":
            content = draft.last_words  # without any, nobody is told anything (SPEC J-5)
            findings.keep(draft, draft.state.start.slot, content, sway)
        next_s = loop.next_s if state == "done" else 0
        is_over = not loop.calls and any(note.code == "budget_exhausted" for note in draft.notes)
        tasks.report_end(
            draft,
            state,
            content,
            sway,
            next_s=next_s,
            facts=loop.facts if state == "done" else {},
            steps=loop.calls if state == "done" and draft.state.start.steps else 0,
            is_over_budget=is_over,
            is_interrupted=is_interrupted,
            is_unanswered=is_unanswered,
        )
