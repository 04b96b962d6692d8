"""Hermes' home (hermes-agent.nousresearch.com: *Persistent memory*, *Cron*). Pure.

memories/MEMORY.md  what it noted, with a line of ``§`` between two notes
memories/USER.md    what it knows of the person, in the same form
SOUL.md             who the agent is
cron/jobs.json      ``{"jobs": [{"name", "prompt", "enabled", "schedule"}]}``
state.db            conversations, in SQLite; here as its own export has them, a line for each
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from .home import NOT_ASKED, HomeForm, Texts, entries, prompt_of, title
from .talks import ForeignTalk, instant, lines_of, said

_BETWEEN: Final = re.compile(r"\n\s*§\s*(?:\n|$)")


def _memories(path: str, text: str) -> Iterator[dict[str, Any]] | None:
    kind = {"memories/MEMORY.md": "fact", "memories/USER.md": "identity"}.get(path)
    return None if kind is None else entries(_BETWEEN.split(text), type=kind)


def _row(job: dict[str, Any]) -> dict[str, Any]:
    prompt = prompt_of(None if job.get("no_agent") else job.get("prompt"))
    return {
        "name": title(job, prompt),
        "prompt": prompt,
        "is_enabled": job.get("enabled", True) is not False,
        **_schedule(job["schedule"]),
    }


def _schedule(found: dict[str, Any]) -> dict[str, Any]:
    """Return a schedule as rows have it. Raises: ValueError.

    >>> _schedule({"kind": "interval", "minutes": 30, "display": "every 30m"})
    {'interval_s': 1800}
    """
    match found:
        case {"kind": "cron", "expr": str(expression)}:
            return {"cron": expression}
        case {"kind": "interval", "minutes": int(minutes)} if minutes > 0:
            return {"interval_s": minutes * 60}
        case {"kind": "once", "run_at": str(at)}:
            return {"at": at}
    raise ValueError(f"its schedule is of a kind that isn't known ({found.get('kind')})")


_BY_ITSELF: Final = ("cron", "subagent", "kanban")
"""Sources of sessions that no person talked in."""


def _talks(texts: Texts) -> Iterator[tuple[str, ForeignTalk]]:
    for session in lines_of(texts.get(DATABASE, ""))[0]:
        stored, id_ = session.get("messages"), str(session.get("id") or "")
        if session.get("source") in _BY_ITSELF or not id_ or not isinstance(stored, list):
            continue
        messages = [
            message
            for one in stored
            if isinstance(one, dict)
            for message in said(
                str(one.get("id")),
                one.get("role"),
                one.get("content"),
                instant(one.get("timestamp")),
            )
        ]
        yield DATABASE, ForeignTalk(id_, str(session.get("title") or ""), messages)


DATABASE: Final = "state.db"
FORM: Final = HomeForm(
    name="hermes",
    files=("SOUL.md", "memories/*.md", "cron/jobs.json", DATABASE),
    memories=_memories,
    jobs="cron/jobs.json",
    row=_row,
    kept={"SOUL.md": NOT_ASKED},
    talks=_talks,
)
