"""What age does to a memory: it is summed up and fades, and stays found (SPEC M-4, M-6, M-7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bench import ageing
from bench.conversations import Family, build
from tests.support.examples import repeats
from tests.support.memory_records import DAY, forgotten, memory_id, undone
from tests.support.remembered import NOW, Remembered, remembered
from vigil.memory.answer_text import line

OLD = NOW - 10 * DAY
NOTES = ("The plumber rang about the boiler", "The parcel went to number nine", "Gil fed the cat")


@pytest.fixture
async def ann(tmp_path: Path) -> AsyncIterator[Remembered]:
    async with remembered(tmp_path) as found:
        yield found


async def _noted(ann: Remembered, **fields: Any) -> tuple[list[str], str]:
    """Save three old notes and merge them -> their ids, and that of their summary."""
    ids = await ann.save(*NOTES, stability="volatile", thread="t1", created_at=OLD, **fields)
    assert (await ann.maintain(NOW)).merged == 1
    (hit,) = (await ann.recall("what did the plumber ring about", limit=1)).hits
    assert hit.memory.superseded_by is not None
    return ids, hit.memory.superseded_by


# ---------------------------------------------------------------- members of a merge


async def test_a_member_of_a_merge_is_found_and_names_its_summary(ann: Remembered) -> None:
    """M-6: by words and by meaning; the summary, which repeats it, is not found beside it."""
    ids, summary = await _noted(ann)
    for mode in ("hybrid", "text", "vector"):
        hits = (await ann.recall("what did the plumber ring about", mode=mode)).hits
        assert hits[0].memory.id == ids[0]
        assert (hits[0].memory.ended, hits[0].memory.superseded_by) == ("merged", summary)
        assert summary not in [hit.memory.id for hit in hits]
    assert f"part of {summary}" in line(hits[0].memory)
    (found,) = (await ann.recall("boiler plumber", types=("summary",))).hits
    assert found.memory.id == summary


async def test_members_stay_neighbours(ann: Remembered) -> None:
    """M-3: what was said around lends to it as it did before, and the summary isn't between."""
    await ann.save("Do you like the garden?", "Very much", thread="t2", created_at=OLD)
    await ann.save(*NOTES, thread="t1", created_at=OLD, stability="volatile")
    query = "what did the plumber ring about"
    before = {hit.memory.id: hit.parts for hit in (await ann.recall(query)).hits}
    await ann.maintain(NOW)
    after = {hit.memory.id: hit.parts for hit in (await ann.recall(query)).hits}
    assert {id_: parts.neighbours for id_, parts in after.items()} == {
        id_: pytest.approx(parts.neighbours) for id_, parts in before.items()
    }


async def test_what_is_forgotten_or_undone_is_not_found_behind_a_summary(ann: Remembered) -> None:
    """M-4, R-8: neither is the summary, which holds its words."""
    await _noted(ann)
    await ann.apply(forgotten, 1)
    assert await ann.found("plumber boiler", limit=3) == [NOTES[1], NOTES[2]]
    await ann.apply(undone, 2)
    assert await ann.found("parcel number nine", limit=3) == [NOTES[2]]
    assert await ann.found("boiler parcel", limit=3, types=("summary",)) == []


async def test_a_member_ends_when_it_expires(ann: Remembered) -> None:
    """M-6: what was to be kept for some days only is not found after them."""
    await _noted(ann, expires_at=NOW + DAY)
    assert await ann.found("plumber boiler", now=NOW + 2 * DAY) == []


# ---------------------------------------------------------------- what was pruned


async def test_what_faded_is_found_by_asking_for_it(ann: Remembered) -> None:
    """M-7: and says that it faded; what was forgotten or undone isn't found that way either."""
    seen = "Ada was seen at the harbour"
    old: dict[str, Any] = {"type": "observation", "importance": 0.3, "created_at": NOW - 60 * DAY}
    await ann.save(seen, "Ada was seen at the mill", "Ada was seen at the inn", **old)
    await ann.save("Ada was seen at the forge", created_at=OLD, expires_at=NOW - DAY)
    assert (await ann.maintain(NOW)).pruned == 4
    await ann.apply(forgotten, 2)
    await ann.apply(undone, 3)
    query = "where was Ada seen"
    assert await ann.found(query) == []
    for mode in ("hybrid", "text", "vector"):
        hits = (await ann.recall(query, with_pruned=True, mode=mode)).hits
        assert {hit.memory.ended for hit in hits} == {"decayed", "expired"}
    assert any("faded" in line(hit.memory) for hit in hits)
    assert await ann.found(query, with_pruned=True, as_of=NOW - 70 * DAY) == []


# ---------------------------------------------------------------- 400 days


@pytest.mark.repeated
@pytest.mark.parametrize("family", [pytest.param("held_out", marks=pytest.mark.long), "tuning"])
async def test_a_year_of_upkeep_loses_no_evidence(
    tmp_path: Path, ann: Remembered, family: Family
) -> None:
    """M-6, M-10: of old notes as much is found at 10 as without it, and every one by its own words,
    whatever a model made of their summaries; the long form is `make bench ARGS=ageing`."""
    # Of fewer than 8 one question is two points and more: there none may be less.
    talk = build(21, family, sessions=repeats(8, fast=4))
    async with remembered(tmp_path / "without") as kept:
        await ageing.save(kept, talk.turns)
        without = await ageing.evidence(kept, talk)
    done = await ageing.live(ann, talk)
    assert done.rewritten > len(talk.turns) // 10
    assert await ageing.evidence(ann, talk) >= without - 1
    labelled = sorted({number for question in talk.questions for number in question.evidence})
    for number in labelled:
        turn = talk.turns[number]
        hits = (
            await ann.recall(turn.text, now=ageing.end_of(talk), limit=5, thread=turn.thread)
        ).hits
        assert memory_id(number + 1) in [hit.memory.id for hit in hits]
