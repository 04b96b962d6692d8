"""Who answers an MCP server in the middle of a call (sampling): one question, and no tools. Pure.

It knows what the server says and nothing else, since only the server is shown the answer: no
memory, no person, nothing of the conversation that made the call (ADR 76).
"""

from __future__ import annotations

from ...core import conclusion
from ...core.draft.profile import Profile, converse
from ...core.work import children

PROFILE = Profile(
    name=children.SAMPLER,
    prompt="sampler.md.j2",
    begins={"start": children.begin},
    question=converse,
    conclude=conclusion.conclude,
    calls_max=1,
    tier="cheap",
    timeout_s=120.0,
    knows_person=False,
)
