"""Words of questions against words of texts, over the real codebook (SPEC M-3)."""

from __future__ import annotations

import random
import string
import tracemalloc

import pytest

from services.memory.recall.frequencies import Frequencies
from services.memory.recall.words import ASKED_MAX, Words

MEBIBYTE = 1024 * 1024


def noise(length: int, letters: str) -> str:
    numbers = random.Random(4)
    return "".join(numbers.choice(letters) for _ in range(length))


@pytest.mark.parametrize("question", ["a pasted key", "a long text"])
def test_a_long_question_takes_little_memory(question: str) -> None:
    """X-4: one question must not take what all services of the process have."""
    asked_text, text = {
        "a pasted key": (noise(16_000, string.ascii_letters + string.digits), "a thought of Ann's"),
        "a long text": (noise(16_000, string.ascii_lowercase + "     "), None),
    }[question]
    words = Words()
    texts = [words.tokens(f"{text or asked_text[number:]} {number}") for number in range(300)]
    frequencies = Frequencies(words.size)
    for number, stored in enumerate(texts):
        frequencies.add(number, stored)
    asked, rarity = words.asked(asked_text), frequencies.rarity()
    tracemalloc.start()
    try:
        compared = words.compare(asked, rarity, texts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(compared.words) == len(texts)
    assert len(asked) <= ASKED_MAX
    assert peak < 64 * MEBIBYTE
