"""The checker itself: a sound log passes, and each planted fault is found and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from tests.chaos.checker import check_log
from tests.chaos.records import Received, Records, Sent, check_records, recovery_s
from tests.chaos.sound import (
    AT,
    KEY,
    RULES,
    Script,
    asks,
    at,
    cancel,
    histories,
    order,
    outside,
    person,
    receipt,
    row_of,
    said,
    schedule,
    send,
    sound,
    timer,
    turn,
)
from vigil.contracts import Cause, FollowUp, Loop, SendMessage

replace = msgspec.structs.replace


def _with_turn(script: Script, seq: int, **changes: Any) -> None:
    subject, record = script[seq]
    state = changes.pop("state", {})
    script[seq] = (subject, replace(record, state=replace(record.state, **state), **changes))


def _with_send(script: Script, seq: int, **changes: Any) -> None:
    record = script[seq][1]
    effects = tuple(
        replace(e, payload=replace(e.payload, **changes)) if isinstance(e, SendMessage) else e
        for e in record.effects
    )
    _with_turn(script, seq, effects=effects)


def _lost_turn(script: Script) -> None:
    del script[50], script[60]


def _passes_over(script: Script) -> None:
    script[85] = person("m1b")


def _goes_back(script: Script) -> None:
    _with_turn(script, 80, state={"position": 30})


def _from_the_future(script: Script) -> None:
    script[15] = script.pop(20)
    _with_turn(script, 15, state={"position": 40})


def _ends_twice(script: Script) -> None:
    _with_turn(script, 140, ended=("m3", "m2"))


def _repeat_answered(script: Script) -> None:
    script[130] = person("m1")
    _with_send(script, 140, caused_by="m1")


def _effect_twice(script: Script) -> None:
    first = script[20][1].effects[0]
    _with_turn(script, 110, effects=(first, *script[110][1].effects))


def _not_folded(script: Script) -> None:
    script[160] = person("m4")


def _loop_open(script: Script) -> None:
    cause = Cause(id="m3", seq=130, type="user_message")
    loop = Loop(cause=cause, fence=130, begun_at=AT, is_direct=True)
    _with_turn(script, 140, state={"loop": loop})


def _never_said(script: Script) -> None:
    del script[150]


def _over_a_channel(script: Script) -> None:
    """e5 goes over a channel, and arrives: that is sound."""
    _with_send(script, 140, channel="ops")
    script[150] = (script[150][0], replace(script[150][1], channel="ops"))
    script[151] = order("e5")
    script[153] = receipt("e5", "delivered")


def _never_ordered(script: Script) -> None:
    _over_a_channel(script)
    del script[151], script[153]


def _never_closed(script: Script) -> None:
    _over_a_channel(script)
    del script[153]


def _closed_twice(script: Script) -> None:
    _over_a_channel(script)
    script[154] = receipt("e5", "failed")


def _said_and_closed(script: Script) -> None:
    script[160] = receipt("e5")


def _no_end(script: Script) -> None:
    _with_turn(script, 140, ended=())


def _no_answer(script: Script) -> None:
    _with_turn(script, 140, effects=(cancel("c", 4),))
    del script[150]


def _said_twice(script: Script) -> None:
    script[160] = said("e5")


def _said_by_nobody(script: Script) -> None:
    script[160] = said("e9")


def _other_words(script: Script) -> None:
    script[150] = said("e5", "something else")


def _timer_speaks_twice(script: Script) -> None:
    twin = send("e6", "b-1", 130, "e5")
    script[160] = turn(6, 130, twin, at_s=12)
    script[170] = said("e6")


def _answered_twice(script: Script) -> None:
    twin = send("e6", "m3", 130, "e5")
    script[160] = turn(6, 130, twin, at_s=12)
    script[170] = said("e6")


def _wrong_chain(script: Script) -> None:
    _with_send(script, 140, previous="e2")


def _out_of_order(script: Script) -> None:
    script[155] = script.pop(120)


def _too_soon(script: Script) -> None:
    _with_turn(script, 80, created_at=at(5.999))


def _over_the_cap(script: Script) -> None:
    third = send("e2b", "x", 10, "e2", is_autonomous=True)
    script[55] = turn(3, 40, third, at_s=7, open=[("b", 1, 9)])
    script[65] = said("e2b")
    _with_turn(script, 80, ordinal=4, state={"turns": 4})
    _with_send(script, 80, previous="e2b")
    _with_turn(script, 110, ordinal=5, state={"turns": 5})
    _with_turn(script, 140, ordinal=6, state={"turns": 6})


def _over_the_cap_when_said(script: Script) -> None:
    _over_the_cap(script)
    del script[100]
    script[85] = said("e3")


def _too_many_ordered(script: Script) -> None:
    _with_send(script, 50, is_voidable=False)
    _with_send(script, 80, is_voidable=False)
    script[100] = said("e3")


def _void_is_said(script: Script) -> None:
    script[100] = said("e3")


def _void_without_cause(script: Script) -> None:
    script[85] = script.pop(100)


def _direct_is_void(script: Script) -> None:
    script[150] = receipt("e5")


def _closed_timer_speaks(script: Script) -> None:
    _with_turn(script, 50, state={"follow_ups": {}})


def _old_generation_speaks(script: Script) -> None:
    _with_turn(script, 50, state={"follow_ups": {"b": FollowUp(generation=2, fire_at=at(9))}})


def _timer_lost(script: Script) -> None:
    _with_turn(script, 140, effects=script[140][1].effects[1:])


def _timer_early(script: Script) -> None:
    subject, event = script[40]
    script[40] = (subject, replace(event, created_at=at(4.999)))


def _left_open(script: Script) -> None:
    _with_turn(script, 140, state={"follow_ups": {"c": FollowUp(generation=4, fire_at=at(60))}})


def _wrong_due_order(script: Script) -> None:
    script[40], script[70] = script[70], script[40]


def _told_of(script: Script, *rows: str, **changes: Any) -> None:
    """Let an event from outside be answered at the end."""
    script[160] = outside("x1")
    answer = send("e6", "x1", 130, "e5", is_autonomous=True)
    answer = replace(answer, payload=replace(answer.payload, is_tainted=True))
    script[170] = turn(6, 160, answer, at_s=12, ended=("x1",))
    subject, record = said("e6")
    script[180] = (subject, replace(record, is_tainted=changes.pop("is_marked", True)))
    _with_turn(script, 170, rows=tuple(map(row_of, rows)))
    if changes:
        _with_send(script, 170, **changes)


def _event_unknown(script: Script) -> None:
    _told_of(script)


def _event_known_twice(script: Script) -> None:
    _told_of(script, "x1", "x1")


def _event_unmarked(script: Script) -> None:
    _told_of(script, "x1", is_tainted=False, is_marked=False)


def _event_ordered(script: Script) -> None:
    _told_of(script, "x1", is_voidable=False)


def _mark_lost(script: Script) -> None:
    _told_of(script, "x1", is_marked=False)


def _event_repeated(script: Script) -> None:
    _told_of(script, "x1")
    script[190] = outside("x1")
    script[200] = turn(7, 190, at_s=13)


PLANTED: Final[list[tuple[Callable[[Script], None], str]]] = [
    (_lost_turn, "I1 ann:vigil:t1: turn 80 has ordinal 3, expected 2"),
    (_passes_over, "I1 ann:vigil:t1: turn 4 folds 90, the next event is 85"),
    (_goes_back, "I1 ann:vigil:t1: turn 3 goes back from 40 to 30"),
    (_from_the_future, "I1 ann:vigil:t1: turn 1 at 15 folds the later 40"),
    (_ends_twice, "I2 ann:vigil:t1: the exchange of m2 ended 2 times"),
    (_repeat_answered, "I2 ann:vigil:t1: the repeat 130 of m1 was folded as news"),
    (_event_unknown, "I4 ann:vigil:t1: the event x1 from outside is told 0 times"),
    (_event_known_twice, "I4 ann:vigil:t1: the event x1 from outside is told 2 times"),
    (_event_unmarked, "I6 ann:vigil:t1: e6 descends from untrusted content and isn't marked"),
    (_event_ordered, "I6 ann:vigil:t1: e6 descends from untrusted content and isn't marked"),
    (_mark_lost, "I6 ann:vigil:t1: the mark of e6 was lost or made up on the way"),
    (_event_repeated, "I2 ann:vigil:t1: the repeat 190 of x1 was folded as news"),
    (_effect_twice, "I2 ann:vigil:t1: the effect s-a-1 was decided 2 times"),
    (_not_folded, "I3 ann:vigil:t1: stuck: the event 160 is not folded"),
    (_loop_open, "I3 ann:vigil:t1: stuck: the loop of 130 is open"),
    (_never_said, "I4 ann:vigil:t1: the send e5 of turn 5 is not settled"),
    (_never_ordered, "I4 ann:vigil:t1: e5 was said over ops, and nothing was ordered"),
    (_never_closed, "I4 ann:vigil:t1: the order 151 of e5 has 0 receipts"),
    (_closed_twice, "I4 ann:vigil:t1: the order 151 of e5 has 2 receipts"),
    (_said_and_closed, "I4 ann:vigil:t1: the send e5 is said and has a receipt"),
    (_no_end, "I4 ann:vigil:t1: the exchange of the message m3 did not end"),
    (_no_answer, "I4 ann:vigil:t1: the message m3 has no answer"),
    (_said_twice, "I5 ann:vigil:t1: e5 was said 2 times"),
    (_said_by_nobody, "I5 ann:vigil:t1: e9 was said and no turn before had decided it"),
    (_other_words, "I5 ann:vigil:t1: e5 was said in other words"),
    (_timer_speaks_twice, "I5 ann:vigil:t1: 2 sends for the timer b/1"),
    (_answered_twice, "I5 ann:vigil:t1: 2 sends for the event m3"),
    (_wrong_chain, "I5 ann:vigil:t1: e5 names e2, not e4, before itself"),
    (_out_of_order, "I5 ann:vigil:t1: e5 was said at 150, before"),
    (_too_soon, "I6 ann:vigil:t1: e3 comes 999 ms after the one before"),
    (_over_the_cap, "I6 ann:vigil:t1: e3 is autonomous send 3 in a row"),
    (_over_the_cap_when_said, "I6 ann:vigil:t1: 3 autonomous messages were said in a row"),
    (_too_many_ordered, "I6 ann:vigil:t1: 2 ordered sends within an hour"),
    (_void_is_said, "I6 ann:vigil:t1: void: e3 was said at 100, after [90]"),
    (_void_without_cause, "I6 ann:vigil:t1: e3 was void and nobody had spoken"),
    (_direct_is_void, "I6 ann:vigil:t1: e5 can't be void and was"),
    (_closed_timer_speaks, "I7 ann:vigil:t1: e3 comes from the timer b/1"),
    (_old_generation_speaks, "I7 ann:vigil:t1: e3 comes from the timer b/1"),
    (_timer_lost, "I8 ann:vigil:t1: the timer ('c', 4) of turn 4 is lost"),
    (_timer_early, "I8 ann:vigil:t1: the timer event 40 is early"),
    (_left_open, "I8 ann:vigil:t1: the follow-up c is open"),
    (_wrong_due_order, "I8 ann:vigil:t1: the timer a at 70 comes after b"),
]


def _is_found(found: list[str], wanted: str) -> bool:
    return any(one.startswith(wanted) for one in found)


def test_a_sound_log_passes() -> None:
    """RELIABILITY 3.1: no false alarm."""
    assert check_log(histories(sound()), RULES) == []


def test_a_cancelled_timer_that_comes_after_all_is_out_of_no_order() -> None:
    """I8: it was due at 60 s, and comes after one that was due later; one that waits may not."""
    script = sound()
    script[160] = turn(6, 130, schedule("d", 6, 90), at_s=12, open=[("d", 6, 90)])
    script[170] = timer("d", 6, 90)
    script[180] = turn(7, 170, at_s=90, ended=("d-6",))
    script[190] = timer("c", 4, 60)
    script[200] = turn(8, 190, at_s=90, ended=("c-4",))
    assert check_log(histories(script), RULES) == []
    script[140] = turn(5, 130, send("e5", "m3", 130, "e4"), at_s=11, ended=("m3",))
    found = check_log(histories(script), RULES)
    assert _is_found(found, "I8 ann:vigil:t1: the timer c at 190 comes after d")


def test_a_request_for_leave_is_no_second_answer() -> None:
    """I5, I4: it comes beside the answer, once, and isn't one."""
    script = sound()
    script[160] = turn(6, 130, asks("a1", "m3"), send("e6", "m3", 130, "e5"), at_s=12)
    script[170] = said("e6")
    assert check_log(histories(script), RULES) == []
    script[180] = turn(7, 130, send("e7", "m3", 130, "e6"), at_s=13)
    script[190] = said("e7")
    assert _is_found(check_log(histories(script), RULES), "I5 ann:vigil:t1: 2 sends for the event")


def test_that_a_request_is_withdrawn_is_no_second_answer() -> None:
    """I5: whoever orders the same in words of their own is told so, beside the answer, once."""
    script = sound()
    script[160] = turn(6, 130, asks("a1", "m3"), send("e6", "m3", 130, "e5"), at_s=12)
    script[170] = said("e6")
    withdrawn, told = asks("a1", "m3", "superseded"), send("e7", "m3", 130, "e6")
    script[180] = turn(7, 130, withdrawn, told, at_s=13)
    script[190] = said("e7")
    _with_turn(script, 180, event=Cause(id="m3", seq=130, type="user_message"))
    assert check_log(histories(script), RULES) == []
    _with_turn(script, 180, effects=(told,))
    assert _is_found(check_log(histories(script), RULES), "I5 ann:vigil:t1: 2 sends for the event")


def test_what_is_still_to_come_is_no_fault() -> None:
    """I8: a follow-up may be open if it is due after the end of the run."""
    script = sound()
    del script[130], script[140], script[150]
    assert check_log(histories(script), RULES)[0].startswith("I8")
    early = replace(RULES, ended_at=at(30))
    assert check_log(histories(script), early) == []


def test_cooldown_is_over_when_it_is_equal() -> None:
    """S-7: elapsed == cooldown passes."""
    script = sound()
    _with_turn(script, 80, created_at=at(6))
    assert check_log(histories(script), RULES) == []


def test_a_sound_log_with_a_channel_passes() -> None:
    script = sound()
    _over_a_channel(script)
    assert check_log(histories(script), RULES) == []


def test_a_sound_log_with_an_event_from_outside_passes() -> None:
    script = sound()
    _told_of(script, "x1")
    assert check_log(histories(script), RULES) == []


@pytest.mark.parametrize(("plant", "wanted"), PLANTED, ids=[p.__name__[1:] for p, _ in PLANTED])
def test_a_planted_fault_is_found(plant: Callable[[Script], None], wanted: str) -> None:
    """RELIABILITY 3.1, I1 to I8: each check can fail."""
    script = sound()
    plant(script)
    found = check_log(histories(script), RULES)
    assert _is_found(found, wanted), found


# ---------------------------------------------------------------- clients


def _sent(event_id: str, seq: int, at_s: float = 0.0, answered_s: float = 1.0) -> Sent:
    return Sent(
        text=event_id, idempotency_key=event_id, sent_at_s=at_s, accepted_at_s=at_s + 0.1,
        event_id=event_id, seq=seq, answered_at_s=answered_s,
    )  # fmt: skip


def _received(effect_id: str, cursor: int, connection: int = 1, at_s: float = 0.0) -> Received:
    return Received(
        connection=connection, id=effect_id, cursor=cursor, text=effect_id, caused_by="", at_s=at_s
    )


def _records() -> Records:
    """Everything as the sound log has it; the last but one came twice, around a cut."""
    return Records(
        session=str(KEY),
        sent=[_sent("m1", 10), _sent("m2", 90), _sent("m3", 130)],
        received=[
            _received("e1", 30),
            _received("e2", 60),
            _received("e4", 120, at_s=9.0),
            _received("e4", 120, connection=2, at_s=10.5),
            _received("e5", 150, connection=2, at_s=11.0),
        ],
        closed_at_s={1: 10.0},
    )


def test_sound_records_pass() -> None:
    """S-10: what was not acknowledged in time may come again after a cut."""
    assert check_records(histories(sound()), [_records()]) == []


def _accepted_and_lost(records: Records) -> None:
    records.sent.append(_sent("m4", 160))


def _sent_by_nobody(records: Records) -> None:
    del records.sent[1]


def _accepted_out_of_order(records: Records) -> None:
    records.sent.reverse()


def _never_got(records: Records) -> None:
    del records.received[1]


def _got_what_nobody_said(records: Records) -> None:
    records.received.append(_received("e9", 170, connection=2))


def _got_another_text(records: Records) -> None:
    records.received[-1] = replace(records.received[-1], text="x")


def _late_arrival(records: Records) -> None:
    records.received.append(replace(records.received.pop(0), connection=2))


def _first_after_newer(records: Records) -> None:
    records.received.append(replace(records.received.pop(1), connection=3))


def _twice_after_ack(records: Records) -> None:
    records.received[2] = replace(records.received[2], at_s=4.0)


def _refused(records: Records) -> None:
    records.refusals.append("401 for 'm1'")


@pytest.mark.parametrize(
    ("plant", "wanted"),
    [
        (_accepted_and_lost, "I3 ann:vigil:t1: the accepted m4"),
        (_sent_by_nobody, "I2 ann:vigil:t1: the message at 90 was sent by nobody"),
        (_accepted_out_of_order, "I3 ann:vigil:t1: m2 lies at 90, before"),
        (_never_got, "I5 ann:vigil:t1: the client never got e2"),
        (_got_what_nobody_said, "I5 ann:vigil:t1: the client got e9, which was not said"),
        (_got_another_text, "I5 ann:vigil:t1: the client got another e5"),
        (_late_arrival, "I5 ann:vigil:t1: cursor 30 came after 150 on one connection"),
        (_first_after_newer, "I5 ann:vigil:t1: 60 came for the first time after 150"),
        (_twice_after_ack, "I5 ann:vigil:t1: 120 came again, acknowledged 6.0 s"),
        (_refused, "X6 ann:vigil:t1: 401"),
    ],
)
def test_what_clients_saw_is_checked(plant: Callable[[Records], None], wanted: str) -> None:
    """S-10, X-5: each contradiction between a client and the log is found."""
    records = _records()
    plant(records)
    found = check_records(histories(sound()), [records])
    assert _is_found(found, wanted), found


def test_one_message_under_two_ids_is_found() -> None:
    """X-5: a gateway that forgets an idempotency key stores a message twice."""
    script = sound()
    subject, message = script[130]
    script[130] = (subject, replace(message, payload=replace(message.payload, text="m2")))
    found = check_records(histories(script), [_records()])
    assert found == ["I2 ann:vigil:t1: 'm2' was stored under 2 ids"]


def test_recovery_is_the_longest_interrupted_exchange() -> None:
    """X-5: what was asked before a kill and answered after it counts, the rest doesn't."""
    records = Records(
        session=str(KEY),
        sent=[
            _sent("m1", 10, at_s=1.0, answered_s=2.0),
            _sent("m2", 20, at_s=2.5, answered_s=7.0),
            _sent("m3", 30, at_s=4.0, answered_s=9.0),
        ],
    )
    assert recovery_s([records], 3.0) == 4.0
