"""Why a memory was found, in words: the parts of its score, the largest first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WORDS: Final = {
    "text": "it mentions your words",
    "vector": "it means something like it",
    "words": "it has words near yours",
    "gist": "it is about the same",
    "speaker": "whom you name said it",
    "date": "it happened on the day that you name",
    "question": "it is a question itself",
    "brief": "it says little",
}
"""Of each part what it means; what isn't here is told by its name."""
SAID_MAX: Final = 2


def because(parts: Mapping[str, float]) -> str:
    """Return why something was found, and what speaks against it.

    >>> because({"vector": 0.2, "text": 0.4, "gist": 0.1, "brief": -0.1})
    'because it mentions your words, and it means something like it; though it says little'
    >>> because({})
    ''
    """
    ranked = sorted(parts.items(), key=lambda pair: -pair[1])
    for_it = [_WORDS.get(name, name) for name, value in ranked if value > 0][:SAID_MAX]
    against = [_WORDS.get(name, name) for name, value in ranked if value < 0]
    if not for_it:
        return ""
    though = f"; though {' and '.join(against)}" if against else ""
    return f"because {', and '.join(for_it)}{though}"


def importance_in_words(importance: float) -> str:
    """Return how much a memory weighs now.

    >>> importance_in_words(0.9), importance_in_words(0.5), importance_in_words(0.1)
    ('important', 'of some importance', 'nearly faded')
    """
    if importance >= 0.7:
        return "important"
    return "of some importance" if importance >= 0.25 else "nearly faded"
