"""Hermes' home (hermes-agent.nousresearch.com: *Persistent memory*, *Cron*). Pure.

memories/MEMORY.md  what it noted, with a line of ``§`` between two notes
memories/USER.md    what it knows of the person, in the same form
SOUL.md             who the agent is
cron/jobs.json      ``{"jobs": [{"name", "prompt", "enabled", "schedule"}]}``
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from .home import NOT_ASKED, HomeForm, entries, prompt_of, title

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


FORM: Final = HomeForm(
    name="hermes",
    files=("SOUL.md", "memories/*.md", "cron/jobs.json"),
    memories=_memories,
    jobs="cron/jobs.json",
    row=_row,
    kept={"SOUL.md": NOT_ASKED},
)
