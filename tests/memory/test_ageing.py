"""What age does to a memory: it is summed up and fades, and stays found (SPEC M-4, M-6, M-7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.conversations import Conversation, Family, Question, build
from services.memory.upkeep import merge
from tests.support.memory_records import ANN, DAY, forgotten, memory_id, undone
from tests.support.remembered import NOW, Remembered, remembered
from vigil.contracts import MemoriesMerged
from vigil.memory.answer_text import line
from vigil.memory.operations.list import ListMemories
from vigil.memory.summaries import is_unwritten

DAYS = 400
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


@pytest.mark.parametrize("family", ["held_out", "tuning"])
async def test_a_year_of_maintenance_loses_no_evidence(ann: Remembered, family: Family) -> None:
    """M-6, M-10: of old notes as much is found at 10 as before, and every one by its own words,
    whatever a model made of their summaries."""
    talk = build(21, family, sessions=8)
    await _save(ann, talk)
    before = await _evidence(ann, talk.questions, NOW)
    rewritten = 0
    for day in range(10, DAYS, 30):
        await ann.maintain(NOW + timedelta(days=day))
        rewritten += await _rewrite(ann, NOW + timedelta(days=day))
    assert rewritten > len(talk.turns) // 10
    end = NOW + timedelta(days=DAYS)
    assert await _evidence(ann, talk.questions, end) >= before - 1
    labelled = sorted({number for question in talk.questions for number in question.evidence})
    for number in labelled:
        turn = talk.turns[number]
        hits = (await ann.recall(turn.text, now=end, limit=5, thread=turn.thread)).hits
        assert memory_id(number + 1) in [hit.memory.id for hit in hits]


async def _rewrite(ann: Remembered, now: datetime) -> int:
    """Have a model that loses everything write all merged summaries anew; return how many."""
    listed = await ann.store.list(ANN, ListMemories(types=("summary",), limit=200), now)
    unwritten = [one for one in listed.memories if is_unwritten(one)]
    for number, summary in enumerate(unwritten):
        made = merge.rewritten(summary, f"Nothing of note, {number}.", is_tainted=False, now=now)
        record = MemoriesMerged(
            id=made.memory.id, agent=ANN.agent, owner=ANN.owner, at=now, by="session:x",
            memory=made.memory, merged_ids=made.merged_ids,
        )  # fmt: skip
        await ann.append(ANN, record)
    return len(unwritten)


async def _save(ann: Remembered, talk: Conversation) -> None:
    given: dict[str, Any] = {"created_at": NOW, "stability": "volatile"}
    for turn in talk.turns:
        await ann.save(turn.text, thread=turn.thread, occurred_at=turn.at, **given)


async def _evidence(ann: Remembered, questions: Sequence[Question], now: datetime) -> float:
    """Return how much of the evidence is among the first ten, in percent."""
    shares = []
    for question in questions:
        hits = (await ann.recall(question.text, now=now, limit=10)).hits
        found = {int(hit.memory.id, 16) - 1 for hit in hits}
        shares.append(len(found & set(question.evidence)) / len(question.evidence))
    return 100 * sum(shares) / len(shares)
