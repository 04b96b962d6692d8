"""/api/jobs and /api/skills: work that is handed in and runs by itself (SPEC J-1).

A job is a session of the cortex, begun here with one event; its id is the session's. What is listed
comes from the board, which is written from the session's turns, so an order that is given here
shows there a moment later. Two entries are this gateway's own: `queued`, before the session's first
turn and before that of another run. Neither is ever put over a newer one.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any, Final, Literal

import msgspec
import structlog
from fastapi import Depends, Request, Response

from services.gateway.work import skills
from services.gateway.work.skills import Broken, Skill
from vigil import crash
from vigil.board.mirror import Board, Located
from vigil.contracts import (
    BoardEntry,
    ControlPayload,
    Instant,
    Job,
    JobStatus,
    Plan,
    Start,
    StepRun,
    encode,
)
from vigil.contracts.board.vocabulary import Trigger
from vigil.errors import InvalidInput, NotFound, Unavailable, WrongLastSequence
from vigil.memory.wire import IdempotencyKey, Whose
from vigil.settings.tokens import Principal
from vigil.subjects import PartText, SessionKey, check_part
from vigil.teams import DEFAULT_AGENT

from ..access import check_reach, listed
from ..callers import Caller, Shared, body_of, id_of
from ..http.decide import check_text, keyed_event_id
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.query import query_of
from ..http.wire import Accepted, Answer, RequestBody
from ..sessions.messages import parent_of
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

INPUT_BYTES_MAX: Final = 16 * 1024
_NAMES: Final = {"user_id": "userId", "agent_id": "agentId"}
_ENDED: Final = ("succeeded", "failed", "cancelled")


# ---------------------------------------------------------------- on the wire


class JobBody(Whose, frozen=True, kw_only=True):
    """Hand in a job: by the name of a skill, or with a goal in words."""

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


class JobLook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_NAMES):
    """The query of ``GET /api/jobs``."""

    user_id: PartText | None = None
    """Whose; absent: the caller's own and their teams', or for an admin everybody's."""
    agent_id: PartText | None = None
    status: JobStatus | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


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


class JobList(Answer, frozen=True, kw_only=True):
    """Jobs, the newest first."""

    jobs: tuple[JobSummary, ...]


class JobDetail(JobSummary, frozen=True, kw_only=True):
    """A job with its plan, and what became of each step."""

    session_key: str
    input: str = ""
    tools: tuple[str, ...] = ()
    plan: Plan | None = None
    step_runs: tuple[StepRun, ...] = ()


class SkillList(Answer, frozen=True, kw_only=True):
    """What there is in the folder of skills, and which files can't be used."""

    skills: tuple[Skill, ...]
    broken: tuple[Broken, ...] = ()


def _facts(job: Job) -> dict[str, Any]:
    key = SessionKey.parse(job.session_key)
    done = [run for run in job.step_runs if run.completed_at is not None]
    return {
        "id": job.id,
        "user_id": key.user,
        "agent_id": key.agent,
        "status": job.status,
        "created_at": job.created_at,
        "trigger": job.trigger,
        "skill": job.skill,
        "started_at": job.started_at,
        "completed_at": job.completed_at,
        "runs": job.runs,
        "steps": 0 if job.plan is None else len(job.plan.steps),
        "steps_done": len(done),
        "steps_failed": sum(bool(run.error) for run in done),
        "error": job.error,
    }


def summary_of(job: Job) -> JobSummary:
    """Return what a list shows: the first line of the goal stands for it."""
    return JobSummary(goal=job.goal.strip().split("\n", 1)[0][:200], **_facts(job))


def detail_of(job: Job) -> JobDetail:
    return JobDetail(
        goal=job.goal,
        session_key=job.session_key,
        input=job.input,
        tools=job.tools,
        plan=job.plan,
        step_runs=job.step_runs,
        **_facts(job),
    )


# ---------------------------------------------------------------- endpoints


Id = Annotated[str, Depends(id_of("a job"))]


async def start_job(
    request: Request,
    edge: Shared,
    caller: Caller,
    wanted: Annotated[JobBody, Depends(body_of(JobBody))],
) -> Response:
    """Hand in a job. It's stored when this answers, and runs by itself."""
    key = _key_of(edge, caller, wanted)
    task, tools = await _task(edge, wanted)
    if wanted.input:
        check_size("input", wanted.input, INPUT_BYTES_MAX)
    event_id = edge.context.new_id()
    what = (str(key), wanted.skill, wanted.goal, wanted.input)
    if wanted.idempotency_key is not None:
        event_id = keyed_event_id(caller.user, f"job:{key}", wanted.idempotency_key)
    id_ = event_id.replace("-", "")
    session = key.of_kind("planner", id_)
    job = Job(
        id=id_,
        session_key=str(session),
        skill=wanted.skill or "",
        goal=task,
        tools=tools,
        input=wanted.input,
        is_vouched=wanted.vouch,
        created_at=edge.clock.now(),
    )
    await edge.intake.start(
        session,
        event_id,
        Start(prompt=task, root_id=event_id, is_ordered=True, job=job),
        body=msgspec.json.encode((*what, "vouch") if wanted.vouch else what),
        is_keyed=wanted.idempotency_key is not None,
        parent=parent_of(request.scope),
    )
    crash.point("gateway.job.stored")
    await _show_queued(edge, session, job, turn_seq=0, expect=0)
    return Json(JobAccepted(id=id_, session_key=str(session)), 202)


async def list_jobs(request: Request, edge: Shared, caller: Caller) -> Response:
    """List jobs, the newest first."""
    wanted = query_of(request.scope["query_string"], JobLook)
    if wanted.agent_id is not None:
        check_part("agentId", wanted.agent_id)

    def is_wanted(job: Job) -> bool:
        agent = SessionKey.parse(job.session_key).agent
        is_agents = wanted.agent_id is None or agent == wanted.agent_id
        return is_agents and (wanted.status is None or job.status == wanted.status)

    whose = listed(caller, wanted.user_id, "userId")
    found = await Board(edge.bus, Job).newest(whose, limit=wanted.limit, is_wanted=is_wanted)
    return Json(JobList(jobs=tuple(map(summary_of, found))))


async def get_job(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Show a job: its plan, and what became of each step."""
    return Json(detail_of((await _find(edge, caller, id_)).entity))


async def change_job(
    request: Request,
    edge: Shared,
    caller: Caller,
    id_: Id,
    change: Annotated[JobChange, Depends(body_of(JobChange))],
) -> Response:
    """Cancel a job, or run it again; 409 if that can't be as things are."""
    found = await _find(edge, caller, id_)
    job, parent = found.entity, parent_of(request.scope)
    session = SessionKey.parse(job.session_key)
    if edge.switches.is_erasing(session.user):
        raise erasing()
    is_over = job.status in _ENDED
    if change.status == "cancelled":
        if is_over:
            raise Problem(409, f"the job has {_said(job.status)}; there is nothing to cancel")
        order = ControlPayload(op="cancel", reason=f"{caller.user} cancelled the job")
        return Json(await edge.intake.control(session, order, parent=parent), 202)
    if not is_over:
        raise Problem(409, f"the job is {job.status}; it can be run again once it has ended")
    return Json(await _again(edge, session, found, parent), 202)


async def list_skills(edge: Shared) -> Response:
    """List the skills that jobs can have, and the files that can't be used."""
    found, broken = await asyncio.to_thread(skills.read_all, edge.context.settings.skills)
    return Json(SkillList(skills=tuple(found), broken=tuple(broken)))


# ---------------------------------------------------------------- inside


def _said(status: JobStatus) -> str:
    return "been cancelled" if status == "cancelled" else status


def _key_of(edge: Edge, caller: Principal, wanted: JobBody) -> SessionKey:
    """Return a session of whom the job is for. Raises: InvalidInput; Problem, 403."""
    user = caller.owner_of(wanted.agent_id) if wanted.user_id is None else wanted.user_id
    key = SessionKey.of(user, wanted.agent_id, "_planner")
    check_reach(caller, user, key.agent, "userId")
    if edge.switches.is_erasing(user):
        raise erasing()
    return key


async def _task(edge: Edge, wanted: JobBody) -> tuple[str, tuple[str, ...]]:
    """Return what is to be done and with which tools. Raises: InvalidInput."""
    if (wanted.skill is None) == (wanted.goal is None):
        raise InvalidInput("skill", "give either a skill or a goal")
    if wanted.skill is None:
        return check_size("goal", wanted.goal or "", skills.GOAL_BYTES_MAX), ()
    folder = edge.context.settings.skills
    try:
        skill = await asyncio.to_thread(skills.find, folder, wanted.skill)
    except NotFound as error:
        raise InvalidInput("skill", str(error)) from error
    return skill.task, skill.tools


def check_size(field: str, text: str, bytes_max: int) -> str:
    """Return `text` if it may be part of a job, which every turn of it holds twice.

    Raises:
        InvalidInput, TooLarge: as `check_text`; as it is stored, control characters take six bytes.
    """
    check_text(field, text, bytes_max=bytes_max)
    if len(msgspec.json.encode(text)) > 2 * bytes_max:
        raise InvalidInput(field, "has too many control characters")
    return text


async def _find(edge: Edge, caller: Principal, id_: str) -> Located[Job]:
    """Return a job that the caller may reach. Raises: Problem, 404."""
    board: Board[Job] = Board(edge.bus, Job)
    found = await board.entry(caller.reach, id_)
    if found is None:
        raise Problem(404, f"there is no job {id_}", field="id")
    return found


async def _again(
    edge: Edge, session: SessionKey, found: Located[Job], parent: str | None
) -> Accepted:
    """Have the session run the job anew; of two who ask at once, one gets a run."""
    job = found.entity
    fresh = Job(
        id=job.id,
        session_key=job.session_key,
        skill=job.skill,
        goal=job.goal,
        tools=job.tools,
        input=job.input,
        is_vouched=job.is_vouched,
        created_at=job.created_at,
        runs=job.runs,
    )
    event_id = edge.context.new_id()
    start = Start(prompt=job.goal, root_id=event_id, is_ordered=True, job=fresh)
    accepted = await edge.intake.control(
        session, ControlPayload(op="start", start=start), event_id=event_id, parent=parent
    )
    crash.point("gateway.job.stored")
    await _show_queued(edge, session, fresh, turn_seq=found.turn_seq, expect=found.seq)
    return accepted


async def _show_queued(
    edge: Edge, session: SessionKey, job: Job, *, turn_seq: int, expect: int
) -> None:
    """Put the job onto the board as `queued`, unless its session did more already.

    If it can't be, the session's own entry follows anyway.
    """
    entry = BoardEntry(entity=job, turn_seq=turn_seq, at=edge.clock.now())
    with contextlib.suppress(WrongLastSequence):
        try:
            await edge.bus.publish(session.board("job", job.id), encode(entry), expect=expect)
        except Unavailable as error:
            log.info("not on the board yet", action="gateway.job", job=job.id, error=str(error))


__all__ = [
    "DEFAULT_AGENT",
    "change_job",
    "get_job",
    "list_jobs",
    "list_skills",
    "start_job",
]
