"""A call that a person accepted, run for a session that went on without it. Pure.

It runs nothing but that call: what comes after would be nobody's order. So its tools are those of
memory, which all kinds have that work.
"""

from __future__ import annotations

from ..core import conclusion
from ..core.draft.profile import MEMORY, Profile, converse
from ..core.work import errands

PROFILE = Profile(
    name=errands.KIND,
    prompt="errand.md.j2",
    begins={"start": errands.begin},
    question=converse,
    conclude=conclusion.conclude,
    tools=(MEMORY,),
    calls_max=5,
    tier="cheap",
    effort="low",
    max_tokens=2048,
    settings={"calls_max": "cortex.errand_max_turns"},
)
