"""How long a text is, for a reader that it must not sway. Pure.

Whoever wrote it chose its length, too: as a number that is shown, a few texts could spell a word.
"""

from __future__ import annotations

from typing import Final

STEPS: Final = (100, 1_000, 10_000)


def length(text: str) -> str:
    """Say how long a text is: two bits of it.

    >>> length("short"), length("a" * 2314), length("a" * 10_000)
    ('under 100 characters', 'under 10,000 characters', '10,000 or more characters')
    """
    above = next((step for step in STEPS if len(text) < step), None)
    return f"{STEPS[-1]:,} or more characters" if above is None else f"under {above:,} characters"
