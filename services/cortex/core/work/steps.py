"""The steps of a job: from the model's answer to the note that is kept of it (SPEC J-1).

No model stands between the steps: their arguments are those of the plan, so what a step tells can't
change what the next one does. Whatever goes wrong with a step is recorded as its error and the job
goes on: an unknown tool, arguments that don't fit, a call that fails, is ambiguous or takes too
long, an approval that is refused. Only a plan that is none, twice, or a model that can't be reached
ends it as failed.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from vigil.contracts import (
    Job,
    OpenCall,
    SaveMemoryPayload,
    Step,
    ToolResultBlock,
    ToolUseBlock,
)

from ...model import ModelAnswer
from .. import sway as sways
from ..draft import Draft, job_record
from ..sway import Sway
from ..tools import calls, formed_answer
from ..tools.formed_answer import Unusable
from . import plans
from .loop_end import end_loop
from .routing import route


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Take the model's answer as the plan, and begin with its first step."""
    most = draft.policy.steps_max
    plan = formed_answer.take(draft, answer, "plan", lambda text: plans.read(text, most))
    if isinstance(plan, Unusable):
        _refuse(draft, plan)
        return
    draft.update(job=replace(_job(draft), plan=plan))
    draft.note("planned", f"{len(plan.steps)} steps: {', '.join(s.tool for s in plan.steps)[:500]}")
    _go_on(draft)


def _refuse(draft: Draft, refused: Unusable) -> None:
    """Note that it is asked once more; after that, the job has failed."""
    if not refused.is_last:
        draft.note("plan_refused", refused.reason)
        return
    said = job_record.line(refused.text)
    draft.note("no_plan", f"there is no plan: {refused.reason}" + (f" ({said})" if said else ""))
    end_loop(draft, "failed")


# ---------------------------------------------------------------- steps


def keep_up(draft: Draft) -> None:
    """Follow what an event did to the step that is under way; go on, if it is over.

    Called after every event of a session: a result, a deadline, a verdict may end a step, and a
    call that was accepted has another id than the request for it.
    """
    loop, job = draft.state.loop, draft.state.job
    if loop is None or job is None or job.plan is None:
        return
    if loop.waiting is not None:
        call_id = loop.waiting.calls[0].effect_id
        if call_id != job.step_runs[-1].call_id:
            draft.update(job=job_record.with_call(job, call_id))
    elif draft.wants_call:
        advance(draft)


def advance(draft: Draft) -> None:
    """Take in what came of the step that was waited for, and go on with the next one."""
    job = _job(draft)
    if job.step_runs and job.step_runs[-1].completed_at is None:
        _complete(draft, job)
    _go_on(draft)


def _complete(draft: Draft, job: Job) -> None:
    """Record the result, which the turn has as a row; no model reads it, so the row goes."""
    content, is_error = "there was no result", True
    for row in list(draft.rows):
        results = [block for block in row.blocks if isinstance(block, ToolResultBlock)]
        if results:
            content, is_error = results[-1].content, results[-1].is_error
            draft.rows.remove(row)
    is_tainted = draft.sway.is_outside
    draft.update(
        job=job_record.with_result(
            job, content, draft.moment.now, is_error=is_error, is_tainted=is_tainted
        )
    )
    # The steps to come were decided before this one told anything: they don't descend from it.
    # What began the job does, of which the plan was made.
    start = draft.state.start
    draft.update_loop(taint=sways.taint(Sway.NONE if start is None else sways.of(start)))


def _go_on(draft: Draft) -> None:
    """Begin steps until one has to be waited for, or none is left."""
    while (step := _next_step(_job(draft))) is not None:
        if _begin_step(draft, step):
            draft.cause = draft.loop.cause
            draft.outcome = "continued"
            return
    _finish(draft)


def _next_step(job: Job) -> Step | None:
    steps = () if job.plan is None else job.plan.steps
    return steps[len(job.step_runs)] if len(job.step_runs) < len(steps) else None


def _begin_step(draft: Draft, step: Step) -> bool:
    """Begin a step; whether it is to be waited for. If it isn't, it failed already."""
    job, now = _job(draft), draft.moment.now
    if not job_record.may_use(job, step.tool):
        error = f"the job may not use {step.tool!r}; its skill names other tools"
        draft.update(job=job_record.with_run(job, step, now, error=error))
        return False
    use_id = f"step-{job.runs}-{len(job.step_runs) + 1}"
    outcome = route(draft, ToolUseBlock(id=use_id, name=step.tool, input=step.input))
    if isinstance(outcome, OpenCall):
        draft.update(job=job_record.with_run(job, step, now, call_id=outcome.effect_id))
        calls.wait(draft, (outcome,))
        return True
    content, is_error = outcome
    draft.update(job=job_record.with_run(job, step, now))
    draft.update(job=job_record.with_result(_job(draft), content, now, is_error=is_error))
    return False


def _finish(draft: Draft) -> None:
    now, loop = draft.moment.now, draft.loop
    job = job_record.ended(_job(draft), "succeeded", now)
    draft.update(job=job)
    failed = sum(bool(run.error) for run in job.step_runs)
    draft.note("job_done", f"{len(job.step_runs)} steps were run, {failed} of them failed", job.id)
    draft.save_memory(
        SaveMemoryPayload(
            content=job_record.note_of(job),
            type="summary",
            stability="volatile",
            expires_at=now + timedelta(days=draft.policy.note_days),
            thread=draft.key.rpartition(":")[2],
            occurred_at=now,
            provenance=(loop.cause.id,),
        ),
        draft.sway | sways.of(*job.step_runs),
    )
    end_loop(draft, "answered")


def _job(draft: Draft) -> Job:
    if draft.state.job is None:
        raise AssertionError("this session runs no job")
    return draft.state.job
