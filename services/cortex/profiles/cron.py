"""A run of the timetable: a row's prompt, worked on when it is due (SPEC J-2). Pure.

Nobody watches it: what needs leave is asked at home, and it goes on without (ADR 26).
"""

from __future__ import annotations

from ..core import conclusion
from ..core.cycles import run_facts
from ..core.draft.profile import MCP, MEMORY, Profile, converse
from ..core.work import runs

PROFILE = Profile(
    name="cron",
    prompt="cron.md.j2",
    begins={"start": runs.begin},
    question=converse,
    conclude=conclusion.conclude,
    wrap_up=run_facts.wrap_up,
    tools=(MEMORY, MCP, "spawn_worker", "research", "branch"),
    first=(
        *("memory_save", "memory_recall", "list_memory", "spawn_worker", "research", "branch"),
        *("http_get", "read_file"),
    ),
    bulletin="whole",
    calls_max=30,
    tier="cheap",
    children_max=3,
    settings={"calls_max": "cortex.cron_max_turns", "children_max": "cortex.cron_max_workers"},
)
