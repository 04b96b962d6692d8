"""Jobs: work that is handed in and runs by itself (SPEC J-1). Pure.

Each is a session of its own, which is begun, ended and begun anew by orders.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from ...contracts import Instant, Job, JobStatus, Plan, StepRun
from ...contracts.board.vocabulary import Trigger
from ...fields.bodies import Answer, IdempotencyKey, MakingBody, RequestBody
from ...fields.schema import MAYBE_ID, SAID, given
from ...skills import form as skills
from ...subjects import PartText, SessionKey
from ...teams import DEFAULT_AGENT
from ...texts.columns import Column
from ..commands import CommandGroup, Given, Shown
from ..mirrored import MirroredKind, OrderOperation
from ..outside import ListForm, Paged

_NAMES: Final = {"user_id": "userId", "agent_id": "agentId"}


# ---------------------------------------------------------------- what comes in and goes out


class JobBody(MakingBody, frozen=True, kw_only=True):
    """Hand in a job: by the name of a skill, or with a goal in words."""

    user_id: PartText | None = None
    """Whose; absent: yours, or your team's."""
    agent_id: PartText = DEFAULT_AGENT
    skill: str | None = None
    goal: str | None = None
    """What is to be done; with a skill, its file says that."""
    input: str = ""
    """Material to work on: it orders nothing. With it, what is more than looking asks."""
    vouch: bool = False
    """Whether you wrote the input, or have read it: what it asks for is then ordered by you."""
    idempotency_key: IdempotencyKey | None = None
    """A name of yours for this job: repeating it is harmless for a day."""


class JobAccepted(Answer, frozen=True, kw_only=True):
    """It's stored and will run."""

    id: str
    session_key: str


class JobChange(RequestBody, frozen=True, kw_only=True):
    """`cancelled`: end it; `queued`: run it again, anew."""

    status: Literal["cancelled", "queued"]


class JobsQuery(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_NAMES
):
    """The query of ``GET /api/jobs``."""

    user_id: PartText | None = None
    """Whose; absent: the caller's own and their teams', or for an admin everybody's."""
    agent_id: PartText | None = None
    status: JobStatus | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    after: Annotated[str, msgspec.Meta(pattern=str(MAYBE_ID["pattern"]))] = ""
    """Continue after this id."""


class JobSummary(Answer, frozen=True, kw_only=True, rename=_NAMES):
    """A job in a list."""

    id: str
    user_id: str
    agent_id: str
    status: JobStatus
    created_at: Instant
    trigger: Trigger
    """What had it begin."""
    skill: str = ""
    goal: str = ""
    started_at: Instant | None = None
    completed_at: Instant | None = None
    runs: int = 0
    """How often it was begun."""
    steps: int = 0
    """Of its plan; 0: there is none yet."""
    steps_done: int = 0
    steps_failed: int = 0
    """Of those done."""
    error: str = ""


class JobList(Paged, frozen=True, kw_only=True):
    """Jobs, the newest first."""

    jobs: tuple[JobSummary, ...]


class JobDetail(JobSummary, frozen=True, kw_only=True):
    """A job with its plan, and what became of each step."""

    session_key: str
    input: str = ""
    tools: tuple[str, ...] = ()
    plan: Plan | None = None
    step_runs: tuple[StepRun, ...] = ()


def _facts(job: Job) -> dict[str, Any]:
    key = SessionKey.parse(job.session_key)
    done = [run for run in job.step_runs if run.completed_at is not None]
    return {
        "user_id": key.user,
        "agent_id": key.agent,
        "steps": 0 if job.plan is None else len(job.plan.steps),
        "steps_done": len(done),
        "steps_failed": sum(bool(run.error) for run in done),
    }


def _brief(job: Job) -> dict[str, Any]:
    """Return what a list shows otherwise: the first line of the goal stands for it."""
    return {"goal": job.goal.strip().split("\n", 1)[0][:200]}


# ---------------------------------------------------------------- on the command line


def _steps(job: Shown) -> str:
    """Say how many steps are done, and how many of them failed.

    >>> _steps({"steps": 3, "steps_done": 2, "steps_failed": 1}), _steps({})
    ('2/3, 1 failed', '-')
    """
    if not job.get("steps"):
        return "-"
    failed = job.get("steps_failed", 0)
    done = f"{job.get('steps_done', 0)}/{job['steps']}"
    return f"{done}, {failed} failed" if failed else done


COMMANDS: Final = CommandGroup(
    help="Work that runs by itself: list, run, show, cancel, again. Default: list.",
    list_text="List jobs, the newest first: your own, or with an admin token everybody's.",
    choice=Given("status", "Only those that are so.", "--status", kind=JobStatus),
    limit_text="How many.",
    empty="No jobs. `vigil jobs skills` lists what there is to run.",
    columns=(
        Column("ID", "id"),
        Column("CREATED", "created_at", is_instant=True),
        Column("STATUS", "status"),
        Column("STEPS", _steps, rank=1),
        Column("SKILL", "skill", rank=2),
        Column("GOAL", "goal", length_max=60),
    ),
    show_text="Show a job: its plan, and what became of each step.",
    fields=(
        Column("id", "id"),
        Column("session", "session_key"),
        Column("status", "status"),
        Column("error", "error"),
        Column("skill", "skill"),
        Column("goal", "goal"),
        Column("input", "input"),
        Column("tools", lambda job: ", ".join(job.get("tools", ()))),
        Column("created", "created_at", is_instant=True),
        Column("begun by", lambda job: job.get("trigger", "manual")),
        Column("started", "started_at", is_instant=True),
        Column("ended", "completed_at", is_instant=True),
        Column("runs", "runs"),
        Column("reasoning", lambda job: (job.get("plan") or {}).get("reasoning")),
    ),
)

KIND: Final = MirroredKind(
    record=Job,
    called="a job",
    plural="jobs",
    view=JobSummary,
    detail=JobDetail,
    facts=_facts,
    brief=_brief,
    query=JobsQuery,
    lists=ListForm(
        text="List jobs, the newest first.",
        answer=JobList,
        by="status",
        choices=JobStatus,
        limit=50,
        limit_max=200,
    ),
    show_text="Show a job: its plan, and what became of each step.",
    makes=OrderOperation(
        name="start_job",
        text="Hand in a job. It's stored when this answers, and runs by itself.",
        body=JobBody,
        answer=JobAccepted,
    ),
    changes=OrderOperation(
        name="change_job",
        text="Cancel a job, or run it again; 409 if that can't be as things are.",
        body=JobChange,
    ),
    limits={JobBody: {"skill": skills.SCHEMA, "goal": SAID}},
    together={JobBody: {"oneOf": [given("skill"), given("goal")]}},
    examples={
        JobBody: {
            "a goal": {"goal": "Compare three ways to store time zones"},
            "a skill": {"skill": "keep-notes", "input": "Milk, and the invoice of Monday"},
        },
        JobChange: {"end it": {"status": "cancelled"}, "run it again": {"status": "queued"}},
    },
    commands=COMMANDS,
)
