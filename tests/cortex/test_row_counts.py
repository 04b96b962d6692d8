"""What the rows of a request take: each is put into words and counted once."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.row_counts import NONE, ShownRows, counted
from vigil.contracts import Attachment, AttachmentBlock, Row, TextBlock

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
SOURCES = st.sampled_from(["person", "agent", "external"])


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Row, ...]]:
    """Make what a session asks with, one call after the other: more at the end, and at times less
    at the beginning."""
    asked: list[tuple[Row, ...]] = [()]
    for number in range(draw(st.integers(1, 6))):
        kept = asked[-1][draw(st.integers(0, 2)) :] if draw(st.booleans()) else asked[-1]
        more = tuple(_row(f"{number}.{i}", draw(SOURCES)) for i in range(draw(st.integers(0, 3))))
        asked.append((*kept, *more))
    return asked


def _row(name: str, source: str) -> Row:
    file = Attachment(hash=name, name=name, type="image/png", size=9, width=8, height=8)
    blocks = (TextBlock(text="ä" * len(name)), AttachmentBlock(file=file))
    role = "assistant" if source == "agent" else "user"
    return Row(role=role, source=source, blocks=blocks[: 1 + len(name) % 2], at=AT)  # type: ignore[arg-type]


@given(histories())
def test_what_is_known_of_rows_is_what_counting_them_anew_finds(
    asked: list[tuple[Row, ...]],
) -> None:
    known, put = ShownRows(), list[Row]()

    def shown(row: Row) -> Row:
        put.append(row)
        return msgspec.structs.replace(row, by="ann")

    for rows in asked:
        put.clear()
        found = known.of(rows, shown)
        anew = counted([msgspec.structs.replace(row, by="ann") for row in rows])
        assert found == anew
        if rows:
            assert found.size == len(msgspec.json.encode(found.rows))
            for source, size in found.sizes.items():
                alike = [row for row in found.rows if row.source == source]
                assert size + 1 == len(msgspec.json.encode(alike))
    assert known.of(asked[-1], shown) is found, "the very same, and nothing put into words again"


def test_a_row_that_stays_is_put_into_words_once() -> None:
    known, put = ShownRows(), list[Row]()
    first, second, third = (_row(name, "person") for name in ("a", "b", "c"))

    def shown(row: Row) -> Row:
        put.append(row)
        return row

    known.of((first, second), shown)
    known.of((first, second, third), shown)
    assert put == [first, second, third]
    assert known.of((second, third), shown).rows == (second, third), "the oldest is gone"
    assert NONE.rows == ()
