"""What of the best a model is given: as much as fits, what says the same once. Pure.

A prompt has room for so many tokens, not for so many memories: many short ones fit, or few long
ones. Of a long one the passage is given that has most of the question's words; what a memory says
again is counted and not repeated; what no longer holds is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from vigil.memory.questions import Hit

from . import terms

BYTES_PER_TOKEN: Final = 4
"""Of English; other scripts have fewer, so less of them is given."""
LINE_BYTES: Final = 50
"""What a memory is given with: its day, type and source."""
PASSAGE_LENGTH_MAX: Final = 1000
"""Characters that are given of one memory."""
SAME_FROM: Final = 0.9
"""Share of their words that two memories have in common which say the same; numbers all."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n+")


def selected(hits: Iterable[Hit], query: str, now: datetime, tokens: int) -> list[Hit]:
    """Return as many of the best as fit into `tokens`; always one."""
    asked = set(terms.searched(query))
    taken: list[Hit] = []
    said: list[frozenset[str]] = []
    left = tokens * BYTES_PER_TOKEN
    is_full = False
    for hit in hits:
        memory = hit.memory
        if memory.valid_to is not None and memory.valid_to < now:
            continue
        words = frozenset(terms.index_terms(memory.content).split())
        at = next((at for at, other in enumerate(said) if _is_same(words, other)), None)
        if at is not None:
            taken[at] = msgspec.structs.replace(taken[at], times=taken[at].times + 1)
            continue
        if is_full:
            continue  # what follows may still say again what was taken
        text = passage(memory.content, asked)
        left -= len(text.encode()) + LINE_BYTES
        is_full = bool(taken) and left < 0
        if is_full:
            continue
        taken.append(msgspec.structs.replace(hit, text=text))
        said.append(words)
    return taken


def _is_same(words: frozenset[str], others: frozenset[str]) -> bool:
    common = len(words & others)
    if common < SAME_FROM * len(words | others):
        return False
    return not any(char.isdigit() for word in words ^ others for char in word)


def passage(text: str, asked: set[str], limit: int = PASSAGE_LENGTH_MAX) -> str:
    """Return the part of a text, at most `limit` characters, that has most of what is asked for.

    A word counts the more, the fewer sentences it stands in; of parts that are as good, the first.

    >>> passage("One. The tea was green. Two. Three.", {"tea"}, 20)
    '… The tea was green. …'
    """
    if len(text) <= limit:
        return text
    sentences = [part[:limit] for part in _SENTENCE_END.split(text) if part]
    words = [asked.intersection(terms.index_terms(sentence).split()) for sentence in sentences]
    frequencies = Counter(word for found in words for word in found)
    start, end = _best(sentences, words, frequencies, limit)
    before, after = "… " if start else "", " …" if end < len(sentences) else ""
    return before + " ".join(sentences[start:end]) + after


def _best(
    sentences: Sequence[str], words: Sequence[set[str]], frequencies: Counter[str], limit: int
) -> tuple[int, int]:
    """Return the run of sentences that fits and has the most."""
    best, found = (0, 1), -1.0
    end = length = 0
    for start in range(len(sentences)):
        while end < len(sentences) and length + len(sentences[end]) <= limit:
            length += len(sentences[end]) + 1
            end += 1
        worth = sum(1 / frequencies[word] for word in set().union(*words[start:end]))
        if worth > found:
            best, found = (start, end), worth
        length -= len(sentences[start]) + 1
    return best
