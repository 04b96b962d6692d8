"""A cycle: the agent looks after what is its to look after, and nobody watches (SPEC C-7). Pure.

It is first shown only what may be trusted. What earlier cycles took in from outside it has to ask
for, and what it decides from then on is swayed, as in any session; so it starts who is to look
something up before that.
"""

from __future__ import annotations

from vigil.timetable.cycles import KIND

from ..core import conclusion
from ..core.cycles import run_facts
from ..core.draft.profile import MCP, MEMORY, Profile, converse
from ..core.work import runs

PROFILE = Profile(
    name=KIND,
    prompt="autonomy_loop.md.j2",
    begins={"start": runs.begin_cycle},
    question=converse,
    conclude=conclusion.conclude,
    wrap_up=run_facts.wrap_up,
    tools=(MEMORY, MCP, "spawn_worker", "research"),
    first=(
        *("memory_save", "memory_recall", "spawn_worker", "research"),
        *("task_create", "task_list", "goal_list", "goal_update"),
    ),
    bulletin="whole",
    calls_max=15,
    tier="cheap",
    children_max=3,
    source="cortex:autonomy",
)
