"""What full text stores and asks for: any script is found by its own words, no input is syntax."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.memory.recall import dates, terms

MAY_8 = datetime(2023, 5, 8, 13, tzinfo=UTC)
HOSTILE = (
    "",
    " ",
    '"',
    "'",
    "NEAR(a b, 2)",
    "a NOT b",
    "terms : x",
    "{facets} : s1",
    "-a ^b c*",
    "a AND",
    "(((((",
    '" OR 1=1; DROP TABLE memories; --',
    "\0\0",
    "a\0b",
    "\ud800 lone",
    "\u202e\u200d\ufeff",
    "?" * 16_384,
    "word " * 3_000,
    " ".join(f"w{n}" for n in range(3_000)),
    "x" * 16_384,
    "OR",
    "AND NOT OR NEAR",
)


def table(*texts: str) -> sqlite3.Connection:
    """A full-text table as a scope has it, with these texts as rows 1, 2, ..."""
    db = sqlite3.connect(":memory:")
    db.execute(
        "CREATE VIRTUAL TABLE t USING fts5(terms, facets, content='', tokenize='porter unicode61')"
    )
    for number, text in enumerate(texts, start=1):
        row = (number, terms.index_terms(text, MAY_8), "sa0 typefact0")
        db.execute("INSERT INTO t (rowid, terms, facets) VALUES (?, ?, ?)", row)
    return db


def found(db: sqlite3.Connection, question: str) -> list[int]:
    query = terms.query(question)
    if not query:
        return []
    match = terms.match(query, [["sa0"], ["typefact0", "typeevent0"]])
    return [
        num for (num,) in db.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank", [match])
    ]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Мы купили дачу под Тверью", "Где дача? под Тверью"),
        ("ПРИВЕТ из Москвы", "привет"),
        ("我昨天买了一只猫", "猫"),
        ("我昨天买了一只猫", "她买了什么?"),
        ("東京タワーに行きました", "タワー"),
        ("우리는 부산에서 만났다", "부산"),
        ("ฉันรักแมว", "แมว"),
        ("मुझे हिन्दी पसंद है", "हिन्दी"),
        ("The party was 🎉🎂", "🎂"),
        ("Straße in Köln", "STRASSE"),
        ("ﬁne ｆｕｌｌ ｗｉｄｔｈ", "fine full"),
        ("Caroline's paintings", "caroline painting"),
        ("I bought two mice and went home", "did he buy a mouse?"),
        ("Its O'Brien", "o'brien"),
    ],
)  # fmt: skip
def test_a_text_is_found_by_its_own_words(text: str, question: str) -> None:
    """Issue 4: a Cyrillic, Chinese and emoji corpus is found by its own words."""
    db = table("nothing of the kind", text)
    assert found(db, question) == [2]


@pytest.mark.parametrize("question", HOSTILE)
def test_no_question_is_syntax(question: str) -> None:
    """Issue 4: SQL and FTS syntax in a query is words, or nothing."""
    db = table("a plain text", "near or and not terms facets drop table")
    assert isinstance(found(db, question), list)


@given(st.text(max_size=300))
@example('"a" OR "b')
@example("¸")
def test_any_text_can_be_stored_and_asked_for(text: str) -> None:
    """Issue 4: bad input."""
    assert found(table(text), text) in ([], [1])
    assert bool(terms.query(text)) == bool(terms.searched(text) or dates.terms_asked(text))


@given(st.text("aZ9 é ß'’-_.,\"*():ЖжЙ мы 猫我タ 한 แ 🎉✈", min_size=1, max_size=60))
def test_a_text_of_any_script_finds_itself(text: str) -> None:
    """Issue 4: Cyrillic, Chinese, emoji."""
    assert found(table(text), text) == [1] * bool(terms.searched(text))


def test_a_question_of_stop_words_only_is_searched_as_it_is() -> None:
    assert terms.searched("who am I") == ["who", "am", "i"]
    assert terms.searched("What did the cat do?") == ["cat"]


def test_a_long_question_is_cut() -> None:
    assert len(terms.searched(" ".join(f"w{n}" for n in range(3_000)))) == terms.TERMS_MAX


def test_a_date_in_a_question_asks_for_the_day_that_it_happened() -> None:
    """M-3: the date stands in no text."""
    db = table("we had dinner")
    assert found(db, "what happened in May 2023?") == [1]
    assert found(db, "what happened on 2023-05-08?") == [1]
    assert found(db, "what happened on the 7th of May, 2023?") == [1]  # told on the day after
    assert found(db, "what happened in June 2023?") == []
    assert found(db, "May I?") == []


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("on 31 February 2023", ["m202302"]),
        ("on 2023-13-45", ["y2023"]),
        ("May 8", ["m5"]),
        ("yesterday", ["d20240229"]),
        ("last Friday", ["d20240223"]),
        ("this weekend", ["d20240302", "d20240303"]),
        ("2 days ago", ["d20240228"]),
        ("last month", ["m202402"]),
        ("last year", ["y2023"]),
        ("version 2.1 of 40000 things", []),
    ],
)
def test_dates_that_a_question_names(question: str, asked: list[str]) -> None:
    found_ = dates.terms_asked(question, date(2024, 3, 1))
    assert found_ == asked


@given(st.text(max_size=200), st.dates())
def test_no_text_trips_the_reading_of_dates(text: str, today: date) -> None:
    dates.terms_asked(text, today)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Melanie: hello", {"melanie"}),
        ("[8 May 2023] Dr. Patel: hello", {"dr", "patel"}),
        ('Caroline said, "hello"', {"caroline"}),
        ("My address: 5 High Street", {"my", "address"}),
        ("I said hello", set()),
        ("12:30 we met", set()),
        ("https://example.org", set()),
    ],
)
def test_who_speaks(text: str, names: set[str]) -> None:
    assert terms.speaker(text) == names
