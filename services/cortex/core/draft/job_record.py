"""What a job's record says after each change (SPEC J-1). Pure values: nothing here knows a session.

Its size is bounded, however much its tools tell: a turn holds it twice, in the state and as the
entry of the board.

    queued ──► running ──► succeeded    every step was run, whatever came of it
       ▲          ├──────► failed       no plan, no model, or given up
       └──────────┴──────► cancelled    by a person; ended jobs may be queued again
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from vigil.contracts import Job, JobStatus, Note, Outcome, Step, StepRun

OUTPUTS_BYTES_MAX: Final = 64 * 1024
"""What the steps of one job told, together, as it is stored."""
OUTPUT_BYTES_MAX: Final = 8 * 1024
"""The most bytes of one step's output."""
ERROR_BYTES_MAX: Final = 1024
NOTE_BYTES_MAX: Final = 6 * 1024
NOTED_BYTES_MAX: Final = 400
"""The most bytes of one step in the note."""
CUT: Final = "… (cut off)"


def begun(job: Job, now: datetime) -> Job:
    """Return the job at the beginning of a run; nothing of an earlier run is left."""
    return replace(
        job,
        status="running",
        started_at=now,
        completed_at=None,
        runs=job.runs + 1,
        plan=None,
        step_runs=(),
        error="",
    )


def ended(job: Job, status: JobStatus, now: datetime, error: str = "") -> Job:
    """Return the job at its end; a step that was under way ended with it."""
    runs = job.step_runs
    if runs and runs[-1].completed_at is None:
        reason = error or "the job ended before it did"
        runs = (*runs[:-1], replace(runs[-1], completed_at=now, error=fitted(reason, 200)))
    return replace(
        job,
        status=status,
        completed_at=now,
        step_runs=runs,
        error=fitted(error, ERROR_BYTES_MAX),
    )


def closed(job: Job, outcome: Outcome, notes: Sequence[Note], now: datetime) -> Job:
    """Return the job after its loop was ended by something else than the job itself."""
    status: JobStatus = "cancelled" if outcome in ("stopped", "cancelled") else "failed"
    why = next((note.text for note in reversed(notes) if note.text), f"it ended as {outcome}")
    return ended(job, status, now, why)


def with_run(job: Job, step: Step, now: datetime, *, call_id: str = "", error: str = "") -> Job:
    """Return the job with one more step: under way, or failed before it began."""
    run = StepRun(
        tool=step.tool,
        input=step.input,
        started_at=now,
        completed_at=now if error else None,
        error=fitted(error, ERROR_BYTES_MAX),
        call_id=call_id,
    )
    return replace(job, step_runs=(*job.step_runs, run))


def with_call(job: Job, call_id: str) -> Job:
    """Return the job whose last step is now that call: a request for it was accepted."""
    return replace(
        job, step_runs=(*job.step_runs[:-1], replace(job.step_runs[-1], call_id=call_id))
    )


def with_result(
    job: Job, content: str, now: datetime, *, is_error: bool, is_tainted: bool = False
) -> Job:
    """Return the job with what came of its last step."""
    steps = len(job.plan.steps) if job.plan is not None else 1
    room = min(OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX // steps)
    error = fitted(content.strip() or "it failed and said nothing", min(room, ERROR_BYTES_MAX))
    run = replace(
        job.step_runs[-1],
        completed_at=now,
        output="" if is_error else fitted(content, room),
        error=error if is_error else "",
        is_tainted=is_tainted,
    )
    return replace(job, step_runs=(*job.step_runs[:-1], run))


def note_of(job: Job) -> str:
    """Return what memory keeps of a job that was run to its end."""
    name = f"Job {job.skill!r}" if job.skill else "A job"
    worked = sum(not run.error for run in job.step_runs)
    lines = [
        f"{name} ended on {job.completed_at:%Y-%m-%d %H:%M} UTC: "
        f"{worked} of {len(job.step_runs)} steps worked.",
        f"Goal: {line(job.goal)}",
    ]
    if job.input:
        lines.append(f"Input: {line(job.input)}")
    for number, run in enumerate(job.step_runs, start=1):
        result = f"failed: {run.error}" if run.error else run.output or "(nothing)"
        lines.append(f"{number}. {run.tool}: {line(result)}")
    # NUL is the one character that memory can't hold.
    return fitted("\n".join(lines).replace("\0", ""), NOTE_BYTES_MAX)


def last_words(job: Job, *, is_quotable: bool) -> str:
    """Return what the person is told of a job that ended.

    Args:
        is_quotable: whether nothing of it is from outside; else only its counts are told.
    """
    name = f"The job {job.skill!r}" if job.skill else "A job"
    about = f" ({line(job.goal)})" if is_quotable and job.goal and not job.skill else ""
    if job.status != "succeeded":
        why = f": {line(job.error)}" if is_quotable and job.error else "."
        return f"{name}{about} {job.status}{why} (`vigil jobs show {job.id}`)"
    worked = sum(not run.error for run in job.step_runs)
    result = f"{name}{about} is done: {worked} of {len(job.step_runs)} steps worked."
    output = job.step_runs[-1].output.strip() if job.step_runs else ""
    if is_quotable and output:
        return f"{result}\n\n{fitted(output, OUTPUT_BYTES_MAX)}"
    return f"{result} (`vigil jobs show {job.id}`)"


def line(text: str) -> str:
    return fitted(" ".join(text.split()), NOTED_BYTES_MAX)


def fitted(text: str, bytes_max: int) -> str:
    r"""Cut a text to so many bytes as it is stored, where control characters take six.

    >>> fitted("short", 100), fitted("a" * 50, 20), len(fitted("\x1b" * 50, 40))
    ('short', 'aaaaaaa… (cut off)', 15)
    """
    text = text.encode("utf-8", "replace").decode()
    if _size(text) <= bytes_max:
        return text
    room = max(bytes_max - len(CUT.encode()), 0)
    while text and (size := _size(text)) > room:
        text = text[: min(len(text) - 1, len(text) * room // size)]
    return text + CUT


def _size(text: str) -> int:
    return len(msgspec.json.encode(text)) - 2


def may_use(job: Job, tool: str) -> bool:
    """Whether the job's skill names the tool; without a list, all may be used."""
    return not job.tools or any(is_named(name, tool) for name in job.tools)


def is_named(name: str, tool: str) -> bool:
    """Whether a name in a skill's list stands for the tool.

    >>> is_named("github__*", "github__search"), is_named("shell", "shell2")
    (True, False)
    """
    return tool.startswith(name[:-1]) if name.endswith("*") else tool == name


def is_running(job: Job | None) -> bool:
    return job is not None and job.status in ("queued", "running")


__all__ = [
    "begun",
    "closed",
    "ended",
    "fitted",
    "is_named",
    "is_running",
    "last_words",
    "line",
    "may_use",
    "note_of",
    "with_call",
    "with_result",
    "with_run",
]
