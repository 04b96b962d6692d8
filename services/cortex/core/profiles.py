"""What the kinds of sessions may do (SPEC C-1): they differ by a row of this table, and by nothing
else. The numbers are the defaults; the configuration overrides them.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

MEMORY: Final = (
    "memory_save", "memory_recall", "remember", "search", "list_memory", "summarize",
)  # fmt: skip
FOLLOW_UPS: Final = ("schedule_followup", "cancel_followup", "send_message")
LOOKING: Final = ("read_file", "http_get")
"""Tools of the executor that change nothing."""
MCP: Final = "*__*"
"""Every tool of every MCP server."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of session."""

    prompt: str
    """The template that says what this session is for."""
    tools: tuple[str, ...]
    """Names of tools that it is offered, and `MCP`."""
    calls_max: int
    """Model calls for one event."""
    tier: Literal["main", "cheap"] = "main"
    """Which model thinks."""
    timeout_s: float = 0.0
    """How long its parent waits for a word of it; 0: it has none."""
    children_max: int = 0
    """Sessions that it may have started at once."""
    is_conversation: bool = False
    """Whether a person is there: it speaks, and doesn't wait for what takes long. The others speak
    to nobody but their parent, and wait for all that they ask for."""


PROFILES: Final[dict[str, Profile]] = {
    "channel": Profile(
        prompt="channel.md.j2",
        tools=(
            *FOLLOW_UPS, *MEMORY, *LOOKING, "shell", "write_file", MCP, "ask_user", "branch",
            "spawn_worker",
        ),
        calls_max=10,
        children_max=5,
        is_conversation=True,
    ),
    "branch": Profile(
        prompt="branch.md.j2",
        tools=(*MEMORY, *LOOKING, MCP, "spawn_worker"),
        calls_max=10,
        timeout_s=60.0,
        children_max=3,
    ),
    "worker": Profile(
        prompt="worker.md.j2",
        tools=(*MEMORY, *LOOKING, "shell", "write_file", MCP, "ask_user"),
        calls_max=50,
        tier="cheap",
        timeout_s=300.0,
    ),
    "planner": Profile(
        prompt="plan.md.j2",
        tools=(*MEMORY, *LOOKING, "shell", "write_file", MCP),
        calls_max=2,
    ),
}  # fmt: skip


def profile_of(kind: str) -> Profile:
    """Return the row of a kind (`SessionKey.kind`); an unknown one may do nothing.

    >>> profile_of("worker").calls_max, profile_of("nonsense").tools
    (50, ())
    """
    return PROFILES.get(kind) or Profile(prompt="worker.md.j2", tools=(), calls_max=1)


def offers(profile: Profile, tool: str) -> bool:
    """Whether sessions of this kind are offered the tool.

    >>> offers(PROFILES["branch"], "shell"), offers(PROFILES["branch"], "github__search")
    (False, True)
    """
    return tool in profile.tools or (MCP in profile.tools and "__" in tool)
