"""What a text's length counts in full text (ADR 78)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from services.memory.recall import lookups, terms
from services.memory.store.places import Place
from services.memory.store.store import FILE, Store
from tests.support.memory_records import ANN, WITHOUT_LENGTHS, dump, forgotten
from tests.support.remembered import NOW, Remembered, remembered
from vigil.memory.operations.recall import Recall

OLD_FORM = "USING fts5(terms, facets, content='', tokenize='porter unicode61')"


async def _place(ann: Remembered) -> Place:
    place = await ann.store.place(ANN)
    assert place is not None
    return place


async def _scores(ann: Remembered, query: str) -> dict[int, float]:
    """Return how well full text finds each memory, by its number."""
    place = await _place(ann)
    narrowed = lookups.narrow(place, Recall(query=query), NOW)
    expression = terms.query(query)
    return dict(
        await ann.store.read(lambda db: lookups.matching(db, narrowed, expression, 100, 100))
    )


async def _letters(ann: Remembered) -> list[tuple[int, int]]:
    return await ann.store.read(
        lambda db: db.execute("SELECT num, letters FROM lengths ORDER BY num").fetchall()
    )


def _told(words: int) -> str:
    """The word that is asked for, and others that nobody asks for: of seven letters each."""
    return " ".join(["walnuts", *(f"pebble{n:03}"[-7:] for n in range(words - 1))])


async def test_length_counts_from_a_paragraph_on(tmp_path: Path) -> None:
    """As BM25 has it, the shortest of the first three would be found best."""
    async with remembered(tmp_path) as ann:
        await ann.save(_told(1), _told(8), _told(20), _told(60), _told(600))
        scores = await _scores(ann, "walnuts")
        assert scores[1] == scores[2] == scores[3] > scores[4] > scores[5] > 0
        letters = dict(await _letters(ann))
        assert letters[3] < terms.LONG < letters[4]
        for long in (4, 5):
            assert scores[long] == pytest.approx(scores[1] * terms.LONG / letters[long])


async def test_in_a_script_without_spaces_it_counts_earlier(tmp_path: Path) -> None:
    async with remembered(tmp_path) as ann:
        await ann.save("钥匙放在花盆下面", "叔叔夏天在火车站和公园还有图书馆里找钥匙和自行车")
        scores = await _scores(ann, "钥匙")
        assert scores[1] > 1.2 * scores[2]


async def test_who_asks_finds_what_answers_and_not_what_has_all_words(tmp_path: Path) -> None:
    async with remembered(tmp_path) as ann:
        pages = " ".join(f"the {n}th page of minutes: walnuts, allergy, dog" for n in range(60))
        await ann.save(pages, "Mei: my sister has an allergy to walnuts, since she was five")
        await ann.save(*(f"Mei: number {n} of many other things" for n in range(30)))
        for mode in ("text", "hybrid"):
            (best, *_) = await ann.found("who has an allergy to walnuts?", mode=mode)
            assert best.startswith("Mei: my sister"), mode


async def test_lengths_go_with_their_texts(tmp_path: Path) -> None:
    """SPEC X-8: what is forgotten leaves nothing, not even how long it was."""
    async with remembered(tmp_path) as ann:
        await ann.save(_told(1), _told(2))
        await ann.apply(forgotten, 1)
        assert [num for num, _ in await _letters(ann)] == [2]


async def test_full_text_of_an_older_version_is_made_again(tmp_path: Path) -> None:
    """Also if it was killed between the script and the texts; and only once."""
    async with remembered(tmp_path) as ann:
        await ann.save("Ann likes tea", _told(60), "Ann likes rum", source="elsewhere")
        await ann.apply(forgotten, 3)
        expected, scores = await dump(ann.store), await _scores(ann, "ann tea walnuts")
        place = await _place(ann)
    (file,) = tmp_path.rglob(FILE)
    for rest in ("PRAGMA user_version = 5;" + WITHOUT_LENGTHS, ""):
        with closing(sqlite3.connect(file, isolation_level=None)) as db:
            db.executescript(f"DROP TABLE {place.text}; {rest}")
            db.execute(f"CREATE VIRTUAL TABLE {place.text} {OLD_FORM}")
        for _ in range(2):
            store = await Store.open(file.parent)
            assert await dump(store) == expected
            await store.close()
    async with remembered(tmp_path) as again:
        assert await _scores(again, "ann tea walnuts") == scores
