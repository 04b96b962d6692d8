"""The breaker, whatever happens in whatever order (SPEC C-5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.examples import up_to
from vigil.backoff import Backoff
from vigil.circuits import breaker as rules
from vigil.circuits.breaker import Breaker, BreakerTerms

TERMS: Final = BreakerTerms(failures_max=3, open=Backoff(30.0, 300.0), trial_s=60.0)


class Calls(RuleBasedStateMachine):
    """Calls that begin, succeed, fail or say nothing, late or never, while time goes by."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 1, 5, tzinfo=UTC)
        self.breaker = Breaker()
        self.under_way: list[int] = []
        """Numbers of the calls that passed and have not ended."""
        self.in_a_row = 0
        """Failures since the last success, of calls that passed since it last changed."""

    def _end(self, which: int) -> int:
        return self.under_way.pop(which % len(self.under_way))

    def _become(self, new: Breaker) -> None:
        if new.number != self.breaker.number:
            self.in_a_row = 0
        self.breaker = new

    @rule()
    def begin(self) -> None:
        before = self.breaker
        if rules.is_due(before, self.now, TERMS):
            self._become(rules.trial(before, self.now, TERMS))
            self.under_way.append(self.breaker.number)
            return
        number = rules.pass_of(before)
        assert (number is not None) == (before.state == "closed")
        if number is not None:
            self.under_way.append(number)

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0), wait_s=st.sampled_from([0.0, 45.0, 9999.0]))
    def fail(self, which: int, wait_s: float) -> None:
        before, number = self.breaker, self._end(which)
        counts = number == before.number and before.state != "open"
        self.in_a_row += counts
        new = rules.failed(before, number, self.now, TERMS, "no answer", wait_s)
        must_open = counts and (before.state == "half_open" or self.in_a_row >= 3)
        assert (new.state == "open" and new.number != before.number) == must_open
        if must_open:
            assert new.until is not None
            assert new.opened_at is not None
            assert timedelta(seconds=30) <= new.until - self.now <= timedelta(seconds=300)
            assert new.opened_at == (before.opened_at or self.now)
        self._become(new)

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0))
    def succeed(self, which: int) -> None:
        before, number = self.breaker, self._end(which)
        new = rules.succeeded(before, number)
        if number == before.number and before.state != "open":
            self.in_a_row = 0
            assert (new.state, new.failures, new.openings) == ("closed", 0, 0)
        else:
            assert new == before, "it began before the last change"
        self._become(new)

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0))
    def say_nothing(self, which: int) -> None:
        before, number = self.breaker, self._end(which)
        new = rules.unsaid(before, number, self.now)
        if number == before.number and before.state == "half_open":
            assert rules.is_due(new, self.now, TERMS), "the next is the trial"
        else:
            assert new == before
        self._become(new)

    @rule(seconds=st.sampled_from([1, 29, 31, 61, 400]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(hours=st.sampled_from([1, 24, 1000]))
    def have_the_clock_set_back(self, hours: int) -> None:
        self.now -= timedelta(hours=hours)

    @rule()
    def reset(self) -> None:
        self._become(rules.closed(self.breaker))
        assert self.breaker.state == "closed"

    @invariant()
    def one_trial_at_most(self) -> None:
        if self.breaker.state == "half_open":
            assert self.under_way.count(self.breaker.number) <= 1

    @invariant()
    def it_always_comes_back(self) -> None:
        """Nothing that happened can keep it from being asked within the longest pause."""
        if self.breaker.state == "closed":
            return
        assert self.breaker.until is not None
        later = self.now + timedelta(seconds=300)
        assert rules.is_due(self.breaker, later, TERMS)
        tried = rules.trial(self.breaker, later, TERMS)
        assert rules.succeeded(tried, tried.number).state == "closed"


Calls.TestCase.settings = up_to(500, stateful_step_count=40)
TestCalls: Any = Calls.TestCase
