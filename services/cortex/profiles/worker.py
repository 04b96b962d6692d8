"""A task that is done apart, by one who knows nothing but the task. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from vigil.contracts.arguments import Arguments

from ..core import conclusion
from ..core.draft.profile import MCP, MEMORY, Profile, Starter, converse
from ..core.work import children


class SpawnWorker(Arguments, frozen=True, kw_only=True):
    """Have a task done by a worker, who knows nothing of this conversation.

    Write down all that it needs to know: goal, facts, what it is to hand back. It has tools of its
    own and may take minutes.
    """

    task: Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


PROFILE = Profile(
    name="worker",
    prompt="worker.md.j2",
    begins={"start": children.begin},
    question=converse,
    conclude=conclusion.conclude,
    tools=(MEMORY, MCP, "research"),
    first=(
        *("memory_save", "memory_recall", "research", "http_get"),
        *("read_file", "write_file", "shell"),
    ),
    calls_max=50,
    tier="cheap",
    timeout_s=300.0,
    children_max=3,
    lends_steps=True,
    settings={
        "timeout_s": "sessions.worker_timeout_s",
        "calls_max": "cortex.worker_max_turns",
    },
    starter=Starter(name="spawn_worker", arguments=SpawnWorker),
)
