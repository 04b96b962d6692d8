"""A forked thought: it knows what its parent knew, and a conversation waits for it. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from vigil.contracts.arguments import Arguments

from ..core import conclusion
from ..core.draft.profile import MCP, MEMORY, Profile, Starter, converse
from ..core.work import children


class Branch(Arguments, frozen=True, kw_only=True):
    """Think one question through in a fork of this conversation, and get what came of it.

    The fork knows all that was said here; nothing that it does but its conclusion comes back. Use
    it for what would take many steps of looking things up. You wait for it.
    """

    prompt: Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


PROFILE = Profile(
    name="branch",
    prompt="branch.md.j2",
    begins={"start": children.begin},
    question=converse,
    conclude=conclusion.conclude,
    tools=(MEMORY, MCP, "spawn_worker", "research"),
    bulletin="short",
    calls_max=10,
    timeout_s=60.0,
    children_max=3,
    settings={
        "timeout_s": "sessions.branch_timeout_s",
        "calls_max": "cortex.branch_max_turns",
    },
    starter=Starter(name="branch", arguments=Branch, is_awaited=True),
    is_heir=True,
)
