"""Find: every page, conversation, task, preference and memory by its words; Ctrl-K asks it from
anywhere."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from vigil.board.kinds.preference import PreferenceListing
from vigil.board.kinds.task import TaskListing
from vigil.memory.wire import MemoryPage

from ...http.problem import Problem
from ...http.wire import SessionList
from ...shelf.titles import is_found
from ..visit import Visit
from .board.preferences import PATH as PREFERENCES
from .board.preferences import written

EACH_MAX: Final = 8
"""Of each kind that are shown."""
SEARCHED_MAX: Final = 200
LENGTH_MAX: Final = 200
SHORTEST: Final = 2
"""Characters from which on more than pages is looked for."""


async def show(visit: Visit) -> dict[str, Any]:
    words = visit.query.get("q", "").strip()[:LENGTH_MAX]
    pages = [one for one in visit.pages if is_found(words, one.title)][:EACH_MAX]
    if len(words) < SHORTEST:
        nothing: dict[str, Any] = dict.fromkeys(("talks", "tasks", "preferences", "memories"), ())
        return nothing | {"q": words, "found_pages": pages if words else visit.pages}
    talks, open_tasks, done, held, known = await asyncio.gather(
        visit.api.get(SessionList, "/api/sessions", order="newest", words=words, limit=EACH_MAX),
        visit.api.get(TaskListing, "/api/tasks", limit=SEARCHED_MAX),
        visit.api.get(TaskListing, "/api/tasks", status="done", limit=SEARCHED_MAX),
        visit.api.get(PreferenceListing, PREFERENCES, limit=SEARCHED_MAX),
        _memories(visit, words),
    )
    tasks = [
        one
        for one in (*open_tasks.tasks, *done.tasks)
        if is_found(words, f"{one.title} {one.description}")
    ]
    return {
        "q": words,
        "each_max": EACH_MAX,
        "found_pages": pages,
        "talks": talks.sessions,
        "tasks": tasks[:EACH_MAX],
        "preferences": [
            one
            for one in held.preferences
            if is_found(words, f"{one.key.replace('_', ' ')} {written(one.value)}")
        ][:EACH_MAX],
        "written": written,
        "memories": () if known is None else known.memories,
        "agent": "" if known is None else known.agent_id,
    }


async def _memories(visit: Visit, words: str) -> MemoryPage | None:
    try:
        return await visit.api.get(MemoryPage, "/api/memories", q=words, limit=EACH_MAX)
    except Problem:  # the memory is away: the rest is found all the same
        return None
