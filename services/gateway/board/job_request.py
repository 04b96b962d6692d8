"""What a caller may do with a job (SPEC J-1).

A job is a session of the cortex, begun here with one event; its id is the session's. What is listed
comes from the board, which is written from the session's turns, so an order that is given here
shows there a moment later. Two entries are this gateway's own: `queued`, before the session's first
turn and before that of another run. Neither is ever put over a newer one.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import msgspec
import structlog
from fastapi import Response
from msgspec.structs import replace

from vigil import crash
from vigil.board.kinds.job import JobAccepted, JobBody, JobChange, JobsQuery
from vigil.board.mirror import Located
from vigil.contracts import BoardEntry, ControlPayload, Job, JobStatus, Start, encode
from vigil.errors import InvalidInput, NotFound, Unavailable, WrongLastSequence
from vigil.subjects import SessionKey, check_part

from ..access import check_reach, listed
from ..callers import Shared
from ..http.decide import check_text, keyed_event_id
from ..http.json import Json
from ..http.problem import Problem, erasing
from ..http.wire import Accepted
from ..known_agents import check_agent
from ..work import skills
from .mirrored_request import MirroredRequest

log = structlog.get_logger("vigil.gateway")

INPUT_BYTES_MAX: Final = 16 * 1024
_ENDED: Final = ("succeeded", "failed", "cancelled")


class JobRequest(MirroredRequest[Job]):
    """Answers one request about jobs."""

    async def list(self, *, wanted: JobsQuery) -> Response:
        """Answer a list."""
        if wanted.agent_id is not None:
            check_part("agentId", wanted.agent_id)

        def is_wanted(job: Job) -> bool:
            agent = SessionKey.parse(job.session_key).agent
            return wanted.agent_id in (None, agent) and wanted.status in (None, job.status)

        whose = listed(self._caller, wanted.user_id, "userId")
        return await self._listed(whose, wanted.limit, is_wanted, wanted.after)

    async def make(self, *, wanted: JobBody, parent: str | None) -> Response:
        """Begin one: it's stored when this answers."""
        key = self._key_of(wanted)
        await check_agent(self._edge, self._caller, key.agent)
        task, tools = await self._task(wanted)
        if wanted.input:
            check_size("input", wanted.input, INPUT_BYTES_MAX)
        event_id = self._edge.context.new_id()
        what = (str(key), wanted.skill, wanted.goal, wanted.input)
        if wanted.idempotency_key is not None:
            event_id = keyed_event_id(self._caller.user, f"job:{key}", wanted.idempotency_key)
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
            created_at=self._edge.clock.now(),
        )
        await self._edge.intake.start(
            session,
            event_id,
            Start(prompt=task, root_id=event_id, is_ordered=True, job=job),
            body=msgspec.json.encode((*what, "vouch") if wanted.vouch else what),
            is_keyed=wanted.idempotency_key is not None,
            parent=parent,
        )
        crash.point("gateway.job.stored")
        await self._show_queued(session, job, turn_seq=0, expect=0)
        return Json(JobAccepted(id=id_, session_key=str(session)), 202)

    async def change(self, *, id_: str, wanted: JobChange, parent: str | None) -> Response:
        """Cancel one, or have it run again."""
        found = await self._located(id_)
        job = found.entity
        session = SessionKey.parse(job.session_key)
        if self._edge.switches.is_erasing(session.user):
            raise erasing()
        is_over = job.status in _ENDED
        if wanted.status == "cancelled":
            if is_over:
                raise Problem(409, f"the job has {_said(job.status)}; there is nothing to cancel")
            order = ControlPayload(op="cancel", reason=f"{self._caller.user} cancelled the job")
            return Json(await self._edge.intake.control(session, order, parent=parent), 202)
        if not is_over:
            raise Problem(409, f"the job is {job.status}; it can be run again once it has ended")
        return Json(await self._again(session, found, parent), 202)

    # ------------------------------------------------------------ inside

    def _key_of(self, wanted: JobBody) -> SessionKey:
        """Return a session of whom the job is for. Raises: InvalidInput; Problem, 403."""
        agent, user = wanted.agent_id, wanted.user_id
        user = self._caller.owner_of(agent) if user is None else user
        key = SessionKey.of(user, agent, "_planner")
        check_reach(self._caller, user, key.agent, "userId")
        if self._edge.switches.is_erasing(user):
            raise erasing()
        return key

    async def _task(self, wanted: JobBody) -> tuple[str, tuple[str, ...]]:
        """Return what is to be done and with which tools. Raises: InvalidInput."""
        if (wanted.skill is None) == (wanted.goal is None):
            raise InvalidInput("skill", "give either a skill or a goal")
        if wanted.skill is None:
            return check_size("goal", wanted.goal or "", skills.GOAL_BYTES_MAX), ()
        folder = self._edge.context.settings.skills
        try:
            skill = await asyncio.to_thread(skills.find, folder, wanted.skill)
        except NotFound as error:
            raise InvalidInput("skill", str(error)) from error
        return skill.task, skill.tools

    async def _again(
        self, session: SessionKey, found: Located[Job], parent: str | None
    ) -> Accepted:
        """Have the session run the job anew; of two who ask at once, one gets a run."""
        job = found.entity
        of_its_run = {"started_at": None, "completed_at": None, "plan": None, "step_runs": ()}
        fresh = replace(job, status="queued", trigger="manual", error="", **of_its_run)
        event_id = self._edge.context.new_id()
        start = Start(prompt=job.goal, root_id=event_id, is_ordered=True, job=fresh)
        order = ControlPayload(op="start", start=start)
        accepted = await self._edge.intake.control(session, order, event_id=event_id, parent=parent)
        crash.point("gateway.job.stored")
        await self._show_queued(session, fresh, turn_seq=found.turn_seq, expect=found.seq)
        return accepted

    async def _show_queued(
        self, session: SessionKey, job: Job, *, turn_seq: int, expect: int
    ) -> None:
        """Put the job onto the board as `queued`, unless its session did more already.

        If it can't be, the session's own entry follows anyway.
        """
        entry = BoardEntry(entity=job, turn_seq=turn_seq, at=self._edge.clock.now())
        place = session.board("job", job.id)
        with contextlib.suppress(WrongLastSequence):
            try:
                await self._edge.bus.publish(place, encode(entry), expect=expect)
            except Unavailable as error:
                log.info("not on the board yet", action="gateway.job", job=job.id, error=str(error))


async def list_skills(edge: Shared) -> Response:
    """List the skills that jobs can have, and the files that can't be used."""
    found, broken = await asyncio.to_thread(skills.read_all, edge.context.settings.skills)
    return Json(skills.SkillList(skills=tuple(found), broken=tuple(broken)))


def _said(status: JobStatus) -> str:
    return "been cancelled" if status == "cancelled" else status


def check_size(field: str, text: str, bytes_max: int) -> str:
    """Return `text` if it may be part of a job, which every turn of it holds twice.

    Raises:
        InvalidInput, TooLarge: as `check_text`; as it is stored, control characters take six bytes.
    """
    check_text(field, text, bytes_max=bytes_max)
    if len(msgspec.json.encode(text)) > 2 * bytes_max:
        raise InvalidInput(field, "has too many control characters")
    return text
