"""What of a memory that a team shares goes with a person, and what stays (SPEC X-8)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from vigil.contracts import (
    MemoriesAccessed,
    MemoriesAssociated,
    MemoriesMerged,
    MemoriesUndone,
    Memory,
    MemoryForgotten,
    MemoryRecord,
    MemorySaved,
    encode,
)
from vigil.erasure.shared_memory import BY_NOBODY, Fate, Sifting
from vigil.subjects import Scope

TEAM = Scope("crew", "team")
AT = datetime(2026, 3, 1, tzinfo=UTC)
ANN, BOB = "user:ann", "session:bob:crew:t1"


def envelope(by: str, number: int = 1) -> dict[str, Any]:
    return {"id": f"r{number}", "agent": "crew", "owner": "team", "at": AT, "by": by}


def memory(id_: str, *provenance: str) -> Memory:
    return Memory(id=id_, content=id_, created_at=AT, provenance=provenance)


def saved(id_: str, by: str, *provenance: str) -> MemorySaved:
    return MemorySaved(**envelope(by), memory=memory(id_, *provenance))


def merged(id_: str, *members: str) -> MemoriesMerged:
    return MemoriesMerged(**envelope("maintenance"), memory=memory(id_), merged_ids=members)


def sift(*records: MemoryRecord, user: str = "ann") -> list[Fate]:
    sifting = Sifting(user)
    return [
        sifting.fate_of(TEAM.record(str(one.__struct_config__.tag)), encode(one)) for one in records
    ]


def going(*records: MemoryRecord) -> list[bool]:
    return [found.goes for found in sift(*records)]


def test_what_somebody_saved_goes_with_what_was_made_of_it() -> None:
    """X-8: a summary holds its members word for word, at every remove."""
    assert going(
        saved("a", ANN),
        saved("a2", "session:ann:crew:t1"),
        saved("b", BOB),
        merged("of both", "a", "b"),
        merged("of that", "of both", "b"),
        merged("of bob's", "b"),
        saved("derived", BOB, "event", "a"),
        saved("from an event", BOB, "event"),
    ) == [True, True, False, True, True, False, True, False]


def test_a_summary_whose_member_is_gone_goes() -> None:
    """X-8: killed between the two, the next run knows it all the same."""
    assert going(saved("b", BOB), merged("of both", "a", "b")) == [False, True]


def test_the_same_id_in_another_memory_is_another() -> None:
    sifting = Sifting("ann")
    other = Scope("other", "team")
    assert sifting.fate_of(TEAM.record("save"), encode(saved("a", ANN))).goes
    record = MemorySaved(**(envelope(BOB) | {"agent": "other"}), memory=memory("x", "a"))
    assert not sifting.fate_of(other.record("save"), encode(record)).goes


def test_what_they_decided_stays_decided_without_their_name() -> None:
    """X-8: what was asked to be forgotten never comes back because of an erasing."""
    forget = MemoryForgotten(**envelope(ANN), memory_ids=("b",))
    undo = MemoriesUndone(**envelope(ANN), source="chat:ann", memory_ids=("c",))
    for (found,), record in ((sift(forget), forget), (sift(undo), undo)):
        assert found.goes
        again = found.instead
        assert again is not None
        assert again.by == BY_NOBODY
        assert again.id != record.id
        assert b"ann" not in encode(again)
        assert again.memory_ids == record.memory_ids  # type: ignore[union-attr]
    assert sift(forget) == sift(forget), "killed in between, it is stored under the same id"


@pytest.mark.parametrize("by", ["user:anna", "session:anna:crew:t1", "maintenance", "memory"])
def test_what_others_did_stays(by: str) -> None:
    forget = MemoryForgotten(**envelope(by), memory_ids=("a",))
    accessed = MemoriesAccessed(**envelope(by), memory_ids=("a",))
    assert going(saved("x", by), forget, accessed) == [False, False, False]


def test_bookkeeping_of_theirs_goes() -> None:
    assert going(MemoriesAssociated(**envelope(ANN))) == [True]


def test_what_cannot_be_read_goes_if_it_may_be_theirs() -> None:
    """X-6: nobody can use it; the name in it is reason enough."""
    sifting = Sifting("ann")
    assert sifting.fate_of(TEAM.record("save"), b'{"by":"user:ann"').goes
    assert not sifting.fate_of(TEAM.record("save"), b'{"by":"user:bob"').goes
