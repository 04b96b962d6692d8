"""What follows from verdicts once they are on the board: lessons, and a proposal (G-3, L-8)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

from msgspec.structs import replace

from services.executor.board.verdicts import judged_by, proposal_of
from tests.executor.test_executor_effects import effect_of
from tests.shared.test_verdicts import decided
from tests.support.executing import session_of
from tests.support.goal_records import ANN, AT, action_of
from tests.support.memories import KEY
from tests.support.stack import Stack
from vigil.actions.log import judged
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.preference import PREFERENCES
from vigil.bus.bus import Bus
from vigil.contracts import (
    Approval,
    BoardChange,
    BoardChangePayload,
    Change,
    ToldEvent,
    decode_event,
)
from vigil.contracts.board.action import ActionFeedback
from vigil.minds import mind_of
from vigil.preferences.check import id_of
from vigil.subjects import SessionKey


def closed(approval: Approval, ordinal: int, key: SessionKey = KEY) -> BoardChange:
    made: BoardChange = effect_of(BoardChange, BoardChangePayload(entity=approval), ordinal, key)
    return made


async def lessons(bus: Bus, key: str) -> list[str]:
    """The causes of what is known of a key."""
    found = await KeptBoard(bus, PREFERENCES).find([ANN], id_of(ANN, key))
    return [] if found is None else [one.cause for one in found.entity.learned_from]


async def test_what_was_decided_teaches_once_and_a_grant_is_proposed_once(stack: Stack) -> None:
    """The cortex isn't asked; a repeat of the turns changes nothing."""
    session = await session_of(stack)
    now = datetime.now(UTC)
    at = {"decided_at": now}
    decisions = [
        decided("edited", 1, edited={"path": "a", "to": "c"}, **at),
        decided("rejected", 2, text="never on Fridays", **at),
        decided("rejected", 3, is_tainted=True, text="always", **at),
        *(decided(number=number, **at) for number in (4, 5, 6, 7)),
        decided("rejected", 8, tool="shell", text="not now", **at),
        *(
            decided("rejected", n, tool="shell", input={}, decided_at=now + timedelta(minutes=n))
            for n in (9, 10, 11)
        ),
    ]
    changes = [closed(one, ordinal) for ordinal, one in enumerate(decisions, start=1)]
    for change in (*changes, *changes):
        await session.turn(change)
    await session.all_acked()
    known = [one.entity for one in await KeptBoard(session.bus, PREFERENCES).all(ANN)]
    assert sorted((one.key.rpartition(".")[0], one.value, one.confidence) for one in known) == [
        ("asked.files__move", "c", 0.3),
        ("asked.files__move", 'never on Fridays: {"path":"a","to":"b"}', 0.9),
        ("asked.shell", "rejected: {}", 0.3),
    ]
    home = SessionKey("ann", "vigil", "main")
    events = [decode_event(one.data) for one in await session.bus.read("SESSIONS", [home.in_all])]
    (told,) = [one.payload for one in events if isinstance(one, ToldEvent)]
    assert "vigil approvals always 00000000" in told.text
    assert '{"path": "a", "to": "b"}' in told.text
    assert (told.what, told.urgency, told.is_tainted) == ("grant", "low", False)


async def test_how_a_deed_ended_is_noted_while_its_person_speaks_of_it(stack: Stack) -> None:
    """G-5: neither takes the other's place, whoever comes between the other's look and write; what
    only began hasn't ended."""
    mind = mind_of(ANN)
    session = await session_of(stack, mind)
    board, deed, by = KeptBoard(session.bus, ACTIONS), action_of(), Change(by="ann")
    begun = effect_of(BoardChange, BoardChangePayload(entity=deed), 1, mind)
    await session.turn(begun)
    await session.all_acked()
    found = await board.find([ANN], deed.id)
    assert found is not None
    assert (found.entity.outcome, found.entity.ended_at) == ("pending", None)
    words = 0

    async def speaks() -> None:
        """Again and again, until it's noted and a little longer."""
        nonlocal words
        known, more = found, 20
        async with asyncio.timeout(20):
            while more:
                words += 1
                said = ActionFeedback(is_good=True, text=f"word {words}", by="ann", at=AT)
                one = partial(judged, feedback=said)
                known = await board.revise([ANN], deed.id, one, by, AT)
                more -= known is not None and known.entity.outcome != "pending"

    done = replace(deed, outcome="success")
    ended = effect_of(BoardChange, BoardChangePayload(entity=done), 2, mind)
    await asyncio.gather(speaks(), session.turn(ended))
    await session.all_acked()
    found = await board.find([ANN], deed.id)
    assert found is not None
    assert found.entity.outcome == "success"
    assert found.entity.ended_at is not None
    assert found.entity.feedback is not None
    assert found.entity.feedback.text == f"word {words}"
    assert await board.revise([ANN], "c" * 32, lambda known: known, by, AT) is None


def test_a_home_is_told_of_a_members_call_without_its_words() -> None:
    """L-17: whoever has a team's agent call something three times says nothing in another's home;
    and to oneself nothing is hidden."""
    input_ = {"path": "a", "to": "do: shell\u202e {}\u3164"}
    desk = SessionKey("team", "desk", "t1")
    told = proposal_of(desk, decided(session_key=str(desk), input=input_))
    assert "do: shell" not in told.text
    assert told.text.startswith("desk: `files__move` was let run 3 times")
    own = proposal_of(KEY, decided(input=input_))
    assert "do: shell\\u202e {}\\u3164" in own.text


def test_what_an_outsider_wrote_is_in_no_feedback() -> None:
    """X-3: looks at what may be trusted are shown it, too; so an edit of what outside content had a
    part in says that it was one, and not what stands there."""
    edited = {"path": "a", "note": "do: shell"}
    for is_tainted in (False, True):
        approval = decided("edited", edited=edited, is_tainted=is_tainted)
        judged = judged_by(action_of(is_tainted=is_tainted), approval, datetime.now(UTC))
        assert judged.feedback is not None
        assert ("do: shell" in judged.feedback.text) != is_tainted
        assert judged.feedback.text.startswith("changed")
