"""The agenda of the timetable's clock: each row once, at the sooner instant; nothing piles up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.timetable.agenda import STALE_MAX, RowAgenda
from tests.support import examples

START = datetime(2026, 3, 1, tzinfo=UTC)
MOVES = st.lists(
    st.tuples(st.sampled_from(("put", "put", "forget", "due")), st.sampled_from("abcd"),
              st.integers(0, 50)),
    max_size=60,
)  # fmt: skip


@given(moves=MOVES)
@examples.up_to(300)
def test_each_name_comes_up_once_at_its_sooner_instant(moves: list[tuple[str, str, int]]) -> None:
    agenda, expected = RowAgenda(), dict[str, datetime]()
    for move, name, minute in moves:
        at = START + timedelta(minutes=minute)
        if move == "put":
            agenda.put(name, at)
            expected[name] = min(expected.get(name, at), at)
        elif move == "forget":
            agenda.forget(name)
            expected.pop(name, None)
        else:
            due = sorted(one for one, when in expected.items() if when <= at)
            assert sorted(agenda.due(at, len(expected) + 1)) == due
            expected = {one: when for one, when in expected.items() if one not in due}
        assert agenda.next_at() == min(expected.values(), default=None)


def test_a_row_with_much_news_leaves_nothing_behind() -> None:
    """A yearly row that is run by hand each minute is put to next year again and again."""
    agenda = RowAgenda()
    for minute in range(10_000):
        now = START + timedelta(minutes=minute)
        agenda.put("a", now)
        assert agenda.due(now, 1) == ["a"]
        agenda.put("a", START + timedelta(days=365))
    assert agenda.size <= 2 * len(agenda) + STALE_MAX + 1
