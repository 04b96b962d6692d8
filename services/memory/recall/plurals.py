"""Questions for several things, which stand in several conversations.

"Which instruments has Ann begun to learn?" is answered by a turn here and a turn there, told by
Ann each time, some without a word of the question: "I picked up the cello again". So what stands
around the best counts for little, who speaks for more, and a second look is taken: what says
something like the best ones is led to by them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from ..numeric import np
from .scores import Candidates, Floats, Scored, Weights
from .words import Words

FOLLOWED: Final = 3
"""The best to which others are compared. (With five, less of the evidence was among the first.)"""
EMPHASIS: Final = {
    "weight_text": 0.7,
    "weight_neighbours": 0.4,
    "weight_thread": 0.0,
    "weight_speaker": 2.0,
    "weight_repeat": 3.0,
}
"""By how much a weight is multiplied for such a question."""
_BE: Final = r"(?:are|were|did|do|does|has|have|had|can|could|will|would)"
_SEVERAL: Final = r"[^\W\d_]+(?<!s)(?<!u)(?<!i)s(?:\s+of\s+\w+)?"
_GATHERS: Final = re.compile(
    rf"\b(?:which|what)\s+(?:[\w'’-]+\s+){{0,2}}?{_SEVERAL}\s+{_BE}\b"  # which instruments has
    rf"|\b(?:which|what|who)\s+(?:are|were)\s+(?!you\b)(?:[\w'’-]+\s+){{0,3}}?{_SEVERAL}(?=\W|$)"
    r"|^\W*(?:what|where|whom?)\s+(?:has|have)\b"  # where has Ann been
    r"|\b(?:list|name|tell me|show me)\s+(?:all|every|each)\b",
    re.IGNORECASE,
)


def is_gathering(question: str) -> bool:
    """Tell whether a question asks for several things, by its grammar; English alone.

    >>> [is_gathering(f"Which {what} has Ann taken?") for what in ("pictures", "bus")]
    [True, False]
    """
    return _GATHERS.search(question) is not None


def weighted(weights: Weights) -> Weights:
    """Return the weights that such a question is answered by."""
    changed = {name: factor * getattr(weights, name) for name, factor in EMPHASIS.items()}
    return msgspec.structs.replace(weights, **changed)


def with_likeness(
    pool: Candidates, best: Sequence[Scored], words: Words, rarity: Floats
) -> Candidates:
    """Return the candidates with how much each says something like the best of them.

    That is 1 for the very same as the best one, and less by the square of how much worse than that
    one the others are which it is like.
    """
    first = max(best[0].score, 0.0) if best else 0.0
    alike = np.zeros(len(pool.nums))
    followed = best[:FOLLOWED] if first else ()
    gists = words.gists(rarity, pool.tokens.tolist(), [one.at for one in followed])
    for one, gist in zip(followed, gists, strict=True):
        if gist[one.at] > 0:
            share = max(one.score / first, 0.0) ** 2
            alike = np.maximum(alike, share * np.clip(gist / gist[one.at], 0.0, 1.0))
    return msgspec.structs.replace(pool, alike=alike)
