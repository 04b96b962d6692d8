"""How many examples a property is tried with: a fifth in `make test`, all in `make chaos`.

The profile ``fast`` takes the same ones each time, so that no run fails by chance; ``full`` takes
others each time, and says how to repeat what it found.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings

FAST: Final = "fast"
FULL: Final = "full"
PART: Final = 5
FAST_MIN: Final = 20

settings.register_profile(FAST, deadline=None, derandomize=True, max_examples=100 // PART)
settings.register_profile(FULL, deadline=None, print_blob=True)


def up_to(count: int, **more: Any) -> settings:
    """Return settings with `count` examples, or as many of them as the profile takes."""
    if settings.get_current_profile_name() != FULL:
        count = min(count, max(FAST_MIN, count // PART))
    return settings(max_examples=count, **more)
