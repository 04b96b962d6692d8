"""What upkeep costs of what is found: conversations lived through in 400 simulated days.

Every ten days what was said meanwhile is saved, and both passes run: what is near is associated,
observations are made of what comes up again, old notes are merged, what faded goes. All that was
said is a note to be merged, as one that a model calls volatile, and the model that writes summaries
anew loses all that is in them: the most that upkeep can do.
In the end each question is asked, there and in a memory of the same without upkeep.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from bench.conversations import FAMILIES, FIRST_DAY, Conversation, Turn, build
from bench.numbers import report
from services.memory.rules import merge
from tests.support.memory_records import ANN
from tests.support.remembered import Remembered, remembered
from vigil.contracts import MemoriesMerged
from vigil.memory.operations.list import ListMemories
from vigil.memory.summaries import is_unwritten

DAYS: Final = 400
STEP: Final = timedelta(days=10)
SEEDS: Final = (11, 12, 13)
K: Final = 10
LISTED_MAX: Final = 200


class Done(NamedTuple):
    """What upkeep did."""

    associated: int = 0
    observed: int = 0
    merged: int = 0
    """Batches."""
    rewritten: int = 0
    pruned: int = 0


async def measure(_: Path) -> None:
    """Report how much less evidence is found at 10 after those days, of both families."""
    for family in FAMILIES:
        found = [await _lived(build(seed, family)) for seed in SEEDS]
        without, with_upkeep = (sum(one[at] for one in found) / len(found) for at in (0, 1))
        done = Done(*map(sum, zip(*(one[2] for one in found), strict=True)))
        report(
            f"ageing_recall10_{family}", with_upkeep - without, "% of the evidence", aim="> -1",
            without=round(without, 2), with_upkeep=round(with_upkeep, 2), days=DAYS,
            **done._asdict(),
        )  # fmt: skip


async def _lived(talk: Conversation) -> tuple[float, float, Done]:
    with tempfile.TemporaryDirectory() as folder:
        async with remembered(Path(folder, "without")) as memory:
            await save(memory, talk.turns)
            without = await evidence(memory, talk)
        async with remembered(Path(folder, "with")) as memory:
            done = await live(memory, talk)
            return without, await evidence(memory, talk), done


async def save(memory: Remembered, turns: Sequence[Turn]) -> None:
    """Save turns as notes of their day; of all, the number of a memory is its turn's and one."""
    for turn in turns:
        await memory.save(
            turn.text, number=turn.number + 1, thread=turn.thread, created_at=turn.at,
            occurred_at=turn.at, stability="volatile",
        )  # fmt: skip


async def live(memory: Remembered, talk: Conversation) -> Done:
    """Save and look after a conversation, until its last day; return what upkeep did."""
    done = Done()
    now = FIRST_DAY
    while now < end_of(talk):
        before, now = now, now + STEP
        await save(memory, [turn for turn in talk.turns if before <= turn.at < now])
        while associated := (await memory.associate(now)).associated:
            done = done._replace(associated=done.associated + associated)
        kept = await memory.maintain(now)
        done = Done(
            done.associated,
            done.observed + kept.observed,
            done.merged + kept.merged,
            done.rewritten + await _rewrite(memory, now),
            done.pruned + kept.pruned,
        )
    return done


async def _rewrite(memory: Remembered, now: datetime) -> int:
    """Write all merged summaries anew, as a model that keeps nothing; return how many."""
    listed = await memory.store.list(ANN, ListMemories(types=("summary",), limit=LISTED_MAX), now)
    unwritten = [one for one in listed.memories if is_unwritten(one)]
    for number, summary in enumerate(unwritten):
        made = merge.rewritten(summary, f"Nothing of note, {number}.", is_tainted=False, now=now)
        record = MemoriesMerged(
            id=made.memory.id, agent=ANN.agent, owner=ANN.owner, at=now, by="session:x",
            memory=made.memory, merged_ids=made.merged_ids,
        )  # fmt: skip
        await memory.append(ANN, record)
    return len(unwritten)


async def evidence(memory: Remembered, talk: Conversation) -> float:
    """Return how much of the evidence is among the first ten at the end, in percent."""
    shares = []
    for question in talk.questions:
        hits = (await memory.recall(question.text, now=end_of(talk), limit=K)).hits
        found = {int(hit.memory.id, 16) - 1 for hit in hits}
        shares.append(len(found & set(question.evidence)) / len(question.evidence))
    return 100 * sum(shares) / len(shares)


def end_of(talk: Conversation) -> datetime:
    """Return when it's asked: after those days, and after all was said."""
    return max(FIRST_DAY + timedelta(days=DAYS), talk.turns[-1].at + STEP)
