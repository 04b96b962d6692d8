"""A job: the session that plans it once and runs its steps (SPEC J-1). Here is how it begins.

One question for a plan, then its steps, one after the other: :mod:`.steps`. How the record changes
is in `job_record`. That every change comes onto the board, and that a job never outlives its loop,
is seen to by `Draft.finish`.
"""

from __future__ import annotations

from msgspec.structs import replace

from vigil.contracts import Cause, Control, Start

from .. import loops
from .. import sway as sways
from ..draft import Draft, job_record


def begin(draft: Draft, cause: Cause, event: Control) -> None:
    """Begin the job that a start brings, or run it again after it ended."""
    start = event.payload.start
    if start is None or start.job is None:
        draft.note("not_served", "a start without a job")
        draft.ended.append(cause.id)
        return
    job, held = start.job, draft.state.job
    if draft.state.loop is not None or (held is not None and held.runs != job.runs):
        draft.note("job_repeat", "it is running, or was run since it was asked for", job.id)
        if held is not None:
            draft.change_board(held)  # whoever asked may have put it there as queued
        draft.ended.append(cause.id)
        return
    sway = sways.of(start) | sways.of_job(job)
    # The state, which every turn holds, has the job once; the start only says who ordered it.
    given = replace(start, prompt="", job=None, is_tainted=sway.is_outside)
    draft.update(job=job_record.begun(job, draft.moment.now), start=given)
    loops.begin(draft, cause, is_direct=False, is_ordered=start.is_ordered, sway=sway)


def refuse(draft: Draft, start: Start) -> None:
    """End a job whose start was passed over: nothing else would take it off the board's queue."""
    if start.job is None:
        return
    if draft.state.job is None:
        reason = "it could not be started"
        draft.update(job=job_record.ended(start.job, "failed", draft.moment.now, reason))
    else:
        draft.change_board(draft.state.job)
