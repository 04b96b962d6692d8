"""How often things are repeated: properties with a tenth of their examples in `make test`, with all
in `make chaos`, and kills likewise.

The profile ``fast`` takes the same ones each time, so that no run fails by chance; ``full`` takes
others each time, and says how to repeat what it found.
"""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st

FAST: Final = "fast"
FULL: Final = "full"
PART: Final = 10
FAST_MIN: Final = 12

settings.register_profile(FAST, deadline=None, derandomize=True, max_examples=FAST_MIN)
settings.register_profile(FULL, deadline=None, print_blob=True)


def repeats(count: int, *, fast: int) -> int:
    """Return `count`, or what the profile ``fast`` makes do with.

    Its test is marked ``repeated``, so that `make chaos` runs it in full.
    """
    return count if settings.get_current_profile_name() == FULL else fast


def up_to(count: int, **more: Any) -> settings:
    """Return settings with `count` examples, or as many of them as the profile takes."""
    few = min(count, max(FAST_MIN, count // PART))
    return settings(max_examples=repeats(count, fast=few), **more)


def anything_of(names: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Return objects of any form in which the right names stand, also at the wrong places."""
    return st.recursive(
        st.one_of(names, st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=8)
        ),
        max_leaves=25,
    )
