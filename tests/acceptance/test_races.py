"""A person's message against a due follow-up, many times, in both orders (SPEC S-6).

Forty follow-ups are due at one moment, so every step between the timer and the message on the
transcript takes a while, and thirty messages fall at random into that while; five come before
and five after it, so that both orders are there on any machine. What must hold is read from the
log afterwards; nothing of the services' own bookkeeping is believed.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.agent import DONE, Call, ask
from tests.support.examples import repeats
from tests.support.world import Person, World, assert_folded_once_in_order, running_world
from vigil.bus.bus import Message
from vigil.clock import SystemClock
from vigil.contracts import Said, SendMessage, Turn, decode_said, decode_turn

SESSIONS = 40
PARTITIONS = 4
"""Of the log, as `tests/chaos` has."""
ROUNDS = repeats(7, fast=2)
"""In full more than 200 races."""
LEAD_S = 1.5
"""From scheduling to due."""
EARLY_S, LATE_S = -0.03, 0.25
"""Around the due moment, when people write."""


@pytest.mark.repeated
async def test_races_of_a_message_and_a_due_follow_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-6, S-5, S-10: nothing void appears, what was said first stays, replies are all said."""
    chance = random.Random(200)
    sections = {"autonomy": {"cooldown_ms": 0}, "nats": {"partitions": PARTITIONS}}
    async with running_world(tmp_path, monkeypatch, SystemClock(), **sections) as world:
        keys = [f"user{n}:vigil:t" for n in range(SESSIONS)]
        people = await asyncio.gather(*(world.person(key, has_socket=False) for key in keys))
        for number in range(ROUNDS):
            await _race(world, people, number, chance)
        tally: Counter[str] = Counter()
        for person in people:
            assert_folded_once_in_order(person)
            tally += _check(person)
            await _check_transcript(person)
        receipts = sum(len(person.talk.receipts) for person in people)
    assert tally["said first"] >= ROUNDS * 5, tally
    assert tally["void"] >= ROUNDS * 3 - 1, tally
    assert receipts, "some were decided, and void before they were said"


async def _race(world: World, people: list[Person], number: int, chance: random.Random) -> None:
    """Have everybody's follow-up due at one moment, and everybody write around it."""
    due_at = datetime.now(UTC) + timedelta(seconds=LEAD_S)
    begun = await asyncio.gather(*(p.say(ask(_follow_up(number, due_at))) for p in people))
    await asyncio.gather(*(p.talk.ended(seq) for p, seq in zip(people, begun, strict=True)))

    async def write(person: Person, place: int) -> None:
        if place == 0:
            await person.talk.until(lambda: set(_texts(number)) & set(person.talk.texts))
        else:
            jitter_s = -0.2 if place == 1 else chance.uniform(EARLY_S, LATE_S)
            await asyncio.sleep((due_at - datetime.now(UTC)).total_seconds() + jitter_s)
        await person.say(f"hey {number}")

    await asyncio.gather(*(write(p, (n + number) % 8) for n, p in enumerate(people)))
    await world.at_rest()


def _texts(number: int) -> tuple[str, str]:
    """Return what the follow-up of a round says: with a model call, or without."""
    return f"thought {number}", f"fixed {number}"


def _follow_up(number: int, due_at: datetime) -> Call:
    """Return a follow-up with a fixed text, or in every other round one to think about."""
    thought, fixed = _texts(number)
    arguments = {"timer_id": "a", "fire_at": due_at.isoformat(), "reason": thought}
    return "schedule_followup", arguments | ({"message": fixed} if number % 2 else {})


# ---------------------------------------------------------------- what the log must show


def _check(person: Person) -> Counter[str]:
    """Check one session's log; return how its races ended."""
    key, log = person.talk.key, person.talk.log
    people_said = [message.seq for message in log if message.subject == key.in_user]
    turns = [(m.seq, decode_turn(m.data)) for m in log if key.is_turn(m.subject)]
    said = {message.seq: decode_said(message.data) for message in log if _is_said(message)}
    assert len({one.id for one in said.values()}) == len(said), "nothing is said twice"
    _check_settled(person, [turn for _, turn in turns], said)
    _check_replies(person, said)

    ended: Counter[str] = Counter()
    for number in range(ROUNDS):
        places = [
            s for s, one in said.items() if one.text in (f"thought {number}", f"fixed {number}")
        ]
        scheduled, interruption = people_said[2 * number : 2 * number + 2]
        for place in places:
            assert scheduled < place < interruption, f"{person.key}: void, and said at {place}"
        assert len(places) <= 1
        ended["said first" if places else "void"] += 1
    return ended


def _is_said(message: Message) -> bool:
    return ".out.said." in message.subject


def _check_settled(person: Person, turns: list[Turn], said: dict[int, Said]) -> None:
    """Each send is said, or void with a receipt, and not both; no voidable one after its fence."""
    places = {one.id: seq for seq, one in said.items()}
    receipts = Counter(receipt.effect_id for receipt in person.talk.receipts)
    assert {receipt.outcome for receipt in person.talk.receipts} <= {"void"}
    heard = [m.seq for m in person.talk.log if m.subject == person.talk.key.in_user]
    for turn in turns:
        for effect in turn.effects:
            if not isinstance(effect, SendMessage):
                continue
            payload, place = effect.payload, places.get(effect.id)
            assert (place is not None) + receipts[effect.id] == 1, f"{payload.text} is settled once"
            if payload.is_voidable and place is not None:
                assert not [seq for seq in heard if payload.fence < seq < place], payload.text
            assert payload.is_voidable or place is not None, f"{payload.text} is never void"


def _check_replies(person: Person, said: dict[int, Said]) -> None:
    """Each message of the person has its answer, in order."""
    answers = [one.text for _, one in sorted(said.items()) if not one.is_autonomous]
    expected = [text for number in range(ROUNDS) for text in (DONE, f"re: hey {number}")]
    assert answers == expected


async def _check_transcript(person: Person) -> None:
    """What a client reads is the log's transcript, everything in its place."""
    shown = [(line["seq"], line["text"]) for line in await person.transcript()]
    places = [m.seq for m in person.talk.log if ".said." in m.subject]
    assert [seq for seq, _ in shown] == places
    assert [text for _, text in shown if text in person.talk.texts] == person.talk.texts
