"""A conversation with a person. Pure."""

from __future__ import annotations

from ..core import conclusion, external, home, person
from ..core.draft.profile import MCP, MEMORY, Profile, converse

PROFILE = Profile(
    name="channel",
    prompt="channel.md.j2",
    begins={"user_message": person.receive, "external": external.receive, "told": home.receive},
    question=converse,
    conclude=conclusion.conclude,
    tools=(MEMORY, MCP, "branch", "spawn_worker", "research"),
    first=(
        *("schedule_followup", "cancel_followup"),
        *("memory_save", "memory_recall", "learn_preference"),
    ),
    bulletin="whole",
    calls_max=10,
    children_max=5,
    settings={"calls_max": "model.calls_max", "children_max": "sessions.children_max"},
    source="chat:{id}",
    is_conversation=True,
)
