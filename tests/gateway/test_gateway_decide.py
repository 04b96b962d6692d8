"""The pure part: what is too deep, how a rate is kept, what an answer is, what is still open."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.http.decide import (
    Exchange,
    TooLarge,
    allowance,
    check_text,
    complaint,
    is_too_deep,
    keyed_event_id,
    open_timers,
)
from services.gateway.http.limits import Limiter
from tests.support.examples import repeats
from vigil.contracts import (
    Cause,
    FollowUp,
    Loop,
    Note,
    Queued,
    Retry,
    Said,
    SendMessage,
    SendPayload,
    State,
    Turn,
)
from vigil.errors import InvalidInput

NOW = datetime(2026, 11, 20, tzinfo=UTC)
_JSON = st.recursive(
    st.text(alphabet='[]{}"\\ab\n') | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\'), inner, max_size=3)
    ),
    max_leaves=30,
)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


@given(_JSON, st.integers(1, 6))
def test_depth_is_exact(value: Any, depth_max: int) -> None:
    """SPEC X-6: brackets in strings don't count, the others do."""
    assert is_too_deep(json.dumps(value).encode(), depth_max) == (_depth(value) > depth_max)


@pytest.mark.repeated
@pytest.mark.parametrize(
    ("first", "unit", "deep"),
    [
        (b"", b"[", True),
        (b"", b"[]", False),
        (b"", b'{"', True),
        (b"", b'"[', True),
        (b'"', b'"[', True),
        (b'"', b'\\"', False),
    ],
)
def test_depth_is_found_in_linear_time(first: bytes, unit: bytes, deep: bool) -> None:
    """SPEC X-6: 30 times the largest body, which a scan that looks back would take hours for; four
    times in `make test`, which it would take minutes for."""
    size = repeats(8_000_000, fast=1_000_000)
    assert is_too_deep(first + unit * (size // len(unit)), 32) is deep


@given(st.text(max_size=40), st.integers(1, 60))
def test_text_is_measured_in_bytes(text: str, bytes_max: int) -> None:
    """SPEC X-6."""
    size = len(text.encode())
    if size > bytes_max:
        with pytest.raises(TooLarge):
            check_text("text", text, bytes_max=bytes_max)
    elif not text.strip() or "\0" in text:
        with pytest.raises(InvalidInput):
            check_text("text", text, bytes_max=bytes_max)
    else:
        assert check_text("text", text, bytes_max=bytes_max) == text


@given(st.lists(st.floats(0, 2), max_size=60), st.floats(0.5, 20), st.integers(1, 10))
def test_no_more_than_rate_and_burst_pass(gaps: list[float], rate: float, burst: int) -> None:
    """SPEC X-6: over any time t at most burst + rate * t."""
    left, passed, elapsed = float(burst), 0, 0.0
    for gap in gaps:
        elapsed += gap
        left, wait_s = allowance(left, gap, rate_per_s=rate, burst=burst)
        passed += wait_s == 0
        assert passed <= burst + rate * elapsed + 1e-6


def test_the_limiter_forgets_the_longest_unseen() -> None:
    """Everything has a limit: the table of callers too."""
    limiter = Limiter(rate_per_s=1, burst=1, callers_max=2)
    assert limiter.take("a", 0) == 0
    assert limiter.take("a", 0) > 0
    limiter.take("b", 0)
    limiter.take("c", 0)
    assert limiter.take("a", 0) == 0


def test_complaints_name_the_field() -> None:
    """SPEC X-6."""
    assert complaint("Object missing required field `text`") == ("text", "is required")
    assert complaint("Input data was truncated") == ("body", "input data was truncated")
    assert complaint("Expected `int` >= 0 - at `$.cursor`") == ("cursor", "expected `int` >= 0")


def test_keyed_ids_differ_by_every_part() -> None:
    """RELIABILITY S6."""
    ids = {keyed_event_id(*parts) for parts in [("a", "s", "k"), ("b", "s", "k"), ("a", "t", "k"),
                                                ("a", "s", "l"), ("as", "", "k")]}  # fmt: skip
    assert len(ids) == 5


# ---------------------------------------------------------------- answers


def _turn(*sends: tuple[str, str], ended: tuple[str, ...] = ()) -> Turn:
    effects = tuple(
        SendMessage(id=i, ordinal=n, payload=SendPayload(text="x", caused_by=cause, fence=0))
        for n, (i, cause) in enumerate(sends)
    )
    return Turn(
        id="t", session_key="a:b:c", ordinal=1, event=None, outcome="answered", state=State(),
        created_at=NOW, effects=effects, ended=ended,
    )  # fmt: skip


def _said(effect_id: str, cause: str) -> Said:
    return Said(
        id=effect_id, session_key="a:b:c", text=effect_id, at=NOW, caused_by=cause, turn_seq=1
    )


def test_an_exchange_is_over_when_all_its_sends_are_settled() -> None:
    """SPEC I-5: over several turns; sends of others don't matter; a void one settles."""
    exchange = Exchange("mine", 7)
    exchange.take_said(_said("old", "other"))
    exchange.take_turn(_turn(("one", "mine"), ("foreign", "other")))
    assert not exchange.is_over
    exchange.take_said(_said("one", "mine"))
    assert not exchange.is_over
    exchange.take_turn(_turn(("two", "mine"), ("three", "mine"), ended=("mine",)))
    exchange.take_receipt("two")
    assert not exchange.is_over
    exchange.take_said(_said("three", "mine"))
    assert exchange.is_over
    assert [said.id for said in exchange.said] == ["one", "three"]


def test_an_exchange_may_be_silent_and_a_claim_may_come_first() -> None:
    """SPEC I-5: nothing to say is an answer; records come in any order."""
    silent = Exchange("mine", 7)
    silent.take_turn(_turn(ended=("mine",)))
    assert silent.is_over
    assert silent.said == ()
    early = Exchange("mine", 7)
    early.take_said(_said("one", "mine"))
    early.take_turn(_turn(("one", "mine"), ended=("x", "mine")))
    assert early.is_over


def test_messages_that_are_answered_together_share_the_answer() -> None:
    """SPEC S-13, I-5: the last of them caused it, and nobody who waits gets an empty one."""
    first = Exchange("first", 7)
    last = Cause(id="last", seq=9, type="user_message")
    joined = Note(code="joined", text="answered together with last", subject="first")
    turn = _turn(("one", "last"), ("two", "other"), ended=("first", "last"))
    first.take_turn(msgspec.structs.replace(turn, event=last, notes=(joined,)))
    assert not first.is_over
    first.take_said(_said("two", "other"))
    first.take_said(_said("one", "last"))
    assert first.is_over
    assert [said.id for said in first.said] == ["one"]


@pytest.mark.parametrize("is_behind", [False, True])
def test_what_is_put_off_is_answered_by_the_notice_of_that(*, is_behind: bool) -> None:
    """SPEC I-5: also one that waits behind the message which the budget or a circuit stopped."""
    exchange = Exchange("mine", 7)
    cause = Cause(id="other" if is_behind else "mine", seq=5, type="user_message")
    retry = Retry(attempt=0, generation=1, due_at=NOW, reason="the limit is reached")
    loop = Loop(cause=cause, fence=5, begun_at=NOW, is_direct=True, retry=retry, is_stopped=True)
    queue = (Queued(seq=7, type="user_message"),) if is_behind else ()
    turn = _turn(("notice", "mine"))
    failing = msgspec.structs.replace(loop, is_stopped=False)
    exchange.take_turn(msgspec.structs.replace(turn, state=State(loop=failing, queue=queue)))
    exchange.take_said(_said("notice", "mine"))
    assert not exchange.is_over, "a call that failed is made again"
    exchange.take_turn(msgspec.structs.replace(turn, state=State(loop=loop, queue=queue)))
    assert exchange.is_over
    other = Exchange("another", 9)
    other.take_turn(msgspec.structs.replace(turn, state=State(loop=loop, queue=queue)))
    assert not other.is_over


# ---------------------------------------------------------------- timers


def test_a_newer_user_message_voids_all_but_reminders() -> None:
    """SPEC S-6: as soon as it's stored, before any turn."""
    soon, later = NOW + timedelta(seconds=1), NOW + timedelta(seconds=2)
    state = State(
        position=7,
        follow_ups={
            "b": FollowUp(generation=1, fire_at=later),
            "kept": FollowUp(generation=1, fire_at=later, keep=True),
            "a": FollowUp(generation=1, fire_at=soon),
        },
    )
    assert [timer.timer_id for timer in open_timers(state, 7)] == ["a", "b", "kept"]
    assert [timer.timer_id for timer in open_timers(state, 8)] == ["kept"]
