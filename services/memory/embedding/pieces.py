"""Cuts texts into the tokens of LLaMA 2's vocabulary, as its own tokenizer does. Pure.

Byte pairs are merged as SentencePiece has it: of all neighbours that make a token together, the one
that stands first in the vocabulary, until none do. So a vocabulary is all that is needed, besides
the order of runs of spaces. The library for this (`tokenizers`) brings 12 packages and 40 MB, most
of them for fetching other vocabularies; a test compares the two.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

SPACE: Final = "▁"
"""Stands for a space in tokens, and before each text."""
_WORD: Final = re.compile(f"{SPACE}*[^{SPACE}]+|{SPACE}+")
"""No token has a space behind a letter, so words are cut each for itself."""
_WORDS_KEPT: Final = 8192
"""Whose tokens are remembered: most of what is said consists of them."""
_WORD_MAX: Final = 64
"""Characters of a word that is remembered."""


class Pieces:
    """A vocabulary.

    Args:
        ids: of each token; letters that none stands for are told by their bytes, ``<0x0A>``.
        runs: what runs of spaces are merged of, first to last; they come after everything else.
        marks: tokens that stand for themselves wherever a text has them, as ``</s>``.
    """

    def __init__(
        self,
        ids: Mapping[str, int],
        runs: Sequence[tuple[str, str]] = (),
        marks: Sequence[str] = (),
    ) -> None:
        self._ids = ids
        self._runs = {pair: number for number, pair in enumerate(runs, len(ids) << 32)}
        self._marks = re.compile(f"({'|'.join(map(re.escape, marks))})") if marks else None
        self._kept = lru_cache(_WORDS_KEPT)(self._word)

    def tokens(self, text: str) -> list[int]:
        """Return the ids of a text's tokens, in its order."""
        found: list[int] = []
        for part in self._marks.split(text) if self._marks else [text]:
            if self._marks and self._marks.fullmatch(part):
                found.append(self._ids[part])
            elif part:
                for word in _WORD.findall(SPACE + part.replace(" ", SPACE)):
                    found += self._kept(word) if len(word) <= _WORD_MAX else self._word(word)
        return found

    def _word(self, word: str) -> tuple[int, ...]:
        ids = self._ids
        pieces = list(self._letters(word))
        before, after = list(range(-1, len(pieces) - 1)), list(range(1, len(pieces) + 1))
        waiting = [
            (rank, at)
            for at, (one, other) in enumerate(itertools.pairwise(pieces))
            if (rank := self._rank(one, other)) is not None
        ]
        heapq.heapify(waiting)
        while waiting:
            rank, at = heapq.heappop(waiting)
            right = after[at]
            if right == len(pieces) or self._rank(pieces[at], pieces[right]) != rank:
                continue  # one of the two has become a part of something else
            pieces[at] += pieces[right]
            pieces[right] = ""
            after[at] = after[right]
            if after[at] < len(pieces):
                before[after[at]] = at
            for left in (before[at], at):
                if left >= 0 and (next_one := after[left]) < len(pieces):
                    rank_there = self._rank(pieces[left], pieces[next_one])
                    if rank_there is not None:
                        heapq.heappush(waiting, (rank_there, left))
        return tuple(ids[piece] for piece in pieces if piece)

    def _letters(self, word: str) -> Iterator[str]:
        for letter in word:
            if letter in self._ids:
                yield letter
            else:
                yield from (f"<0x{byte:02X}>" for byte in letter.encode())

    def _rank(self, one: str, other: str) -> int | None:
        """Return how early two neighbours are merged; None: never."""
        merged = self._ids.get(one + other) if one else None
        if merged is None:
            return None
        if other[-1] == SPACE:
            return self._runs.get((one, other))
        return merged << 32 | self._ids[one] << 16 | self._ids[other]
