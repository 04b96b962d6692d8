"""Why something was said, or wasn't: the whole chain of causes, from the log."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlencode

from msgspec.structs import replace

from vigil.board.kinds.job import JobList

from ...http.wire import Transcript
from ...why.answer import WhyAnswer
from ...work.letters import DeadLetterPage
from ..shapes import journal
from ..visit import Visit

SHOWN_MAX: Final = 12


async def show(visit: Visit) -> dict[str, Any]:
    wanted = visit.query.get("id", "").strip()
    if not wanted:
        return {"wanted": "", "story": None, "recent": await _recent(visit), "names": {}}
    session = visit.query.get("session") or None
    story = await visit.api.get(WhyAnswer, f"/api/why/{wanted}", session=session)
    keys = [key for key in (story.session_key, *story.others) if key]
    names = await visit.titles(keys)
    return {"wanted": wanted, "story": story, "recent": (), "names": names}


async def _recent(visit: Visit) -> list[journal.JournalLine]:
    """Return what one may ask about: what was said lately at home, and what was given up."""
    home = str(visit.home)
    talk, dead, jobs = await asyncio.gather(
        visit.api.get(Transcript, f"/api/sessions/{home}", limit=SHOWN_MAX),
        visit.api.get(DeadLetterPage, "/api/dead", open=True, limit=SHOWN_MAX),
        visit.api.get(JobList, "/api/jobs", limit=SHOWN_MAX),
    )
    said = (
        journal.JournalLine(
            at=one.at,
            what="said",
            text=one.text,
            page="",
            why=urlencode({"id": one.id, "session": home}),
            whose=visit.home.scope,
        )
        for one in talk.messages
        if one.role == "assistant"
    )
    ended = (replace(one, why=one.page.partition("?")[2]) for one in journal.of_jobs(jobs.jobs))
    found = [*said, *ended, *journal.of_letters(dead.letters)]
    return sorted(found, key=lambda one: one.at, reverse=True)[:SHOWN_MAX]
