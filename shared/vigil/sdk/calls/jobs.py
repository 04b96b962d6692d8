"""What `vigil.Client` can do with jobs: one method for each endpoint of /api/jobs."""

from __future__ import annotations

from typing import Any

from .kind import KindCalls
from .method_group import MethodGroup


class JobCalls(MethodGroup):
    """Base of `vigil.Client`: whose jobs are the token's user's, or `user`'s for an admin."""

    def start_job(
        self,
        skill: str | None = None,
        *,
        goal: str | None = None,
        input: str = "",  # noqa: A002 - the name it has everywhere
        vouch: bool = False,
        idempotency_key: str | None = None,
        user: str | None = None,
        agent: str | None = None,
    ) -> dict[str, Any]:
        """Hand in a job: a skill, or a goal in words; return ``{id, session_key}`` at once.

        With the same key it is handed in once. `vouch`: you wrote the input, or have read it; else
        it is material, and what is more than looking asks for leave.
        """
        return KindCalls(self, "jobs").make(
            skill=skill,
            goal=goal,
            input=input or None,
            vouch=vouch or None,
            idempotency_key=idempotency_key,
            userId=user,
            agent=agent,
        )

    def jobs(
        self,
        *,
        status: str | None = None,
        limit: int = 50,
        user: str | None = None,
        agent: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return jobs, the newest first: one's own, or with an admin token everybody's."""
        wanted = {"status": status, "limit": limit, "userId": user, "agentId": agent}
        return KindCalls(self, "jobs").listed(**wanted)

    def job(self, id_: str) -> dict[str, Any]:
        """Return a job, its plan, and what became of each step."""
        return KindCalls(self, "jobs").get(id_)

    def cancel_job(self, id_: str) -> None:
        """End a job. Raises: ApiError with status 409, it has ended."""
        KindCalls(self, "jobs").change(id_, status="cancelled")

    def run_job_again(self, id_: str) -> None:
        """Run a job anew. Raises: ApiError with status 409, it has not ended."""
        KindCalls(self, "jobs").change(id_, status="queued")

    def skills(self) -> dict[str, Any]:
        """Return ``{skills, broken}``: what jobs can do, and which files can't be used."""
        return self._object("GET", "/api/skills")
