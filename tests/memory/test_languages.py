"""Questions in other languages than English (SPEC M-3, issue 19)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.conversations import build
from bench.languages import PAIRS, others
from services.memory.recall import english, languages, terms
from tests.support.remembered import remembered


async def test_a_question_in_any_language_finds_other_forms_of_its_words(tmp_path: Path) -> None:
    """Issue 19: stems, and letters and pairs of unspaced scripts; soft words only of others."""
    first = {"text": 0, "hybrid": 0}
    for language, pairs in PAIRS.items():
        async with remembered(tmp_path / language) as memory:
            ids = await memory.save(*(told for told, _ in pairs))
            await memory.save(*others(language))
            for mode in first:
                for id_, (_, question) in zip(ids, pairs, strict=True):
                    hits = (await memory.recall(question, limit=1, mode=mode)).hits
                    first[mode] += [hit.memory.id for hit in hits] == [id_]
    assert first["text"] >= 117
    assert first["hybrid"] >= 119


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie heißt die Katze von Anna?", "german"),
        ("Où sont les clés ?", "french"),
        ("Где мой ключ?", "russian"),
        ("Was Anna in Rome?", ""),
        ("katze", ""),
        ("鍵はどこ", ""),
        ("", ""),
    ],
)
def test_a_language_is_told_by_its_small_words(text: str, language: str) -> None:
    words = terms.index_terms(text).split()
    assert languages.language_of(words, english.STOP_WORDS) == language


def test_english_is_taken_for_no_other_language() -> None:
    for question in build(11, "held_out").questions:
        assert not any(term.endswith("*") for term in terms.asked(question.text))
