"""What a session hands down to those that it starts, and readers of workers (FLOW F-14)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cortex.core import Draft
from services.cortex.core.allowance import lent
from services.cortex.model import ModelAnswer
from tests.cortex.driver import answer, call
from tests.cortex.family import Family, Member
from tests.cortex.test_core_children import results, scripted, uses
from tests.support.examples import up_to
from vigil.contracts import SpawnSession, TellParent

QUESTIONS = ("tea?", "rice?", "salt?")


def of_worker(family: Family, worker: Member) -> list[Member]:
    """Return a worker and all that it started."""
    keys = {str(worker.key)}
    return [
        one
        for one in family.members.values()
        if one is worker or (one.state.start is not None and one.state.start.parent in keys)
    ]


# ---------------------------------------------------------------- the numbers


class Spender:
    """One that may spend steps, and lends of them by the rule to whoever it starts."""

    def __init__(self, steps: int, children_max: int, parent: Spender | None = None) -> None:
        self.steps, self.children_max, self.parent = steps, children_max, parent
        self.used = self.lent = 0
        self.children: list[Spender] = []
        self.is_over = False

    @property
    def left(self) -> int:
        return self.steps - self.used - self.lent

    def begin(self, most: int) -> Spender | None:
        free = self.children_max - sum(not one.is_over for one in self.children)
        steps = lent.steps_for(self.left, most, free) if free > 0 else 0
        if not steps:
            return None
        self.lent += steps
        child = Spender(steps, self.children_max, self)
        self.children.append(child)
        return child

    def end(self, *, tells: bool) -> None:
        """Be over; told of that, the parent has again what wasn't used."""
        self.is_over = True
        assert self.parent is not None
        used = self.used + self.lent if tells else 0
        self.parent.lent += lent.kept_of(self.steps, used) - self.steps

    def spent(self) -> int:
        return self.used + sum(one.spent() for one in self.children)


@given(
    steps=st.integers(1, 60),
    children_max=st.integers(1, 4),
    moves=st.lists(
        st.tuples(
            st.sampled_from(["use", "begin", "end", "lose"]), st.integers(0, 9), st.integers(1, 30)
        ),
        max_size=80,
    ),
)
@up_to(300)
def test_all_that_descends_never_spends_more_than_was_set_aside(
    steps: int, children_max: int, moves: list[tuple[str, int, int]]
) -> None:
    """F-14: whoever starts whom, at any depth, and whatever comes back unused."""
    root = Spender(steps, children_max)
    family = [root]
    for move, which, most in moves:
        one = family[which % len(family)]
        if one.is_over:
            continue
        if move == "use" and one.left > 0:
            one.used += 1
        elif move == "begin" and (child := one.begin(most)) is not None:
            assert 0 < child.steps <= most
            family.append(child)
        elif one is not root and all(child.is_over for child in one.children):
            one.end(tells=move == "end")
        for each in family:
            assert each.left >= 0
            assert each.spent() <= each.steps
    has_kept = all(one.left >= lent.STEPS_KEPT for one in family if not one.used and one.children)
    assert has_kept, "who lends can still go on, and say what came of it"


# ---------------------------------------------------------------- through the core


def test_a_conversation_starts_as_many_workers_as_if_they_started_nobody() -> None:
    """Each of the six has three readers, and none of those is one of the six sessions."""

    def think(key: str, draft: Draft) -> ModelAnswer:
        loop, kind = draft.loop, draft.policy.profile.name
        if kind == "channel" and loop.calls % 2 == 0:
            return answer(*uses("spawn_worker", "and again"))
        if kind == "worker" and not loop.calls:
            return answer(*uses("research", *QUESTIONS))
        return answer("Done.")

    family = Family(think, fan_out_max=6)
    family.say()
    family.settle()
    assert Counter(one.key.kind for one in family.children) == {"worker": 6, "reader": 18}
    for worker in family.of_kind("worker"):
        assert [r.content for r in results(worker)] == ["Done."] * 3
        assert worker.state.loop is None
    given = [e.payload for e in family.effects(SpawnSession)]
    assert {(p.kind, p.allowance, p.steps) for p in given} == {
        ("worker", 0, 0),
        ("reader", 0, 12),
    }


def test_what_a_reader_does_not_use_comes_back_to_the_worker() -> None:
    """With ten steps a worker has three readers after each other, who take one step each."""
    ask = [answer(*uses("research", one)) for one in QUESTIONS]
    think = scripted(channel=[answer(*uses("spawn_worker", "find out"))], worker=ask)
    family = Family(think)
    family.calls_max = {"worker": 10}
    family.say()
    family.arrive()
    steps = [e.payload.steps for e in family.effects(SpawnSession) if e.payload.kind == "reader"]
    assert steps == [3, 3, 3]
    told = [e.payload.steps for e in family.effects(TellParent) if e.payload.state == "done"]
    assert sorted(told) == [0, 1, 1, 1], "of readers; a worker has steps of its own"
    (worker,) = family.of_kind("worker")
    assert worker.turns[-1].state.loop is None
    assert [r.is_error for r in results(worker)] == [False] * 3


def test_what_a_reader_used_and_what_failed_stays_taken() -> None:
    """The second is refused: of seven steps two are the worker's calls, and three are spent."""
    think = scripted(
        channel=[answer(*uses("spawn_worker", "find out"))],
        worker=[answer(*uses("research", "tea?")), answer(*uses("research", "rice?"))],
        reader=[answer("Looking.", call("nonsense"))] * 3,
    )
    family = Family(think)
    family.calls_max = {"worker": 7}
    family.say()
    family.arrive()
    (worker,) = family.of_kind("worker")
    assert [r.content for r in results(worker)] == [
        "It took more steps than it may.\n\nLooking.",
        "Too few steps are left for that; do it yourself, or say what you have.",
    ]


ANY = st.sampled_from(
    [
        answer("So."),
        answer(call("nonsense")),
        answer(*uses("research", "tea?")),
        answer(*uses("research", *QUESTIONS)),
        TimeoutError("529"),
        ValueError("401"),
    ]
)


@given(st.lists(ANY, max_size=40), st.integers(1, 14), st.lists(st.integers(0, 9), max_size=30))
@up_to(200)
def test_a_worker_and_its_readers_make_no_more_calls_than_one_worker_may(
    script: list[Any], steps: int, order: list[int]
) -> None:
    """F-14: however they answer, fail, are ended or lost, and in whatever order that is heard."""
    left, made = list(script), Counter[str]()

    def think(key: str, draft: Draft) -> Any:
        kind = draft.policy.profile.name
        if kind == "channel":
            made[key] += 1
            return answer(*uses("spawn_worker", "go")) if made[key] == 1 else answer("On it.")
        said = left.pop(0) if left else answer("Done.")
        made[key] += not isinstance(said, Exception)
        return said

    family = Family(think, retries_max=1)
    family.calls_max = {"worker": steps}
    family.say()
    for step in order:
        if family.pending and step < 8:
            family.deliver(step % len(family.pending), twice=step % 2 == 0)
        elif step == 8:
            family.wait(100)
        elif (readers := family.of_kind("reader")) and readers[0].events:
            family.control(readers[0].key, op="cancel")
    family.settle()
    (worker,) = family.of_kind("worker")
    assert sum(made[str(one.key)] for one in of_worker(family, worker)) <= steps
    assert worker.state.loop is None
    assert worker.state.tasks == {}


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_reader_without_a_word_is_given_up_before_the_worker_is(*, is_slow: bool) -> None:
    """So the worker can say what it has, also when it was last heard of minutes ago."""
    think = scripted(
        channel=[answer(*uses("spawn_worker", "find out"))],
        worker=[answer(*uses("research", "tea?")), answer("Nobody answered.")],
    )
    family = Family()

    def slowly(key: str, draft: Draft) -> Any:
        if is_slow and "_worker" in key:
            family.now = family.now.replace(minute=family.now.minute + 4)
            draft.moment = type(draft.moment)(now=family.now)
        return think(key, draft)

    family.brain = slowly
    family.say()
    family.deliver()  # the worker begins; its reader never hears of it
    family.pending = [one for one in family.pending if one[0].kind != "reader"]
    family.arrive()
    family.wait(299)
    family.arrive()
    (worker,) = family.of_kind("worker")
    (result,) = results(worker)
    assert result.content == "There was no word of it in time, so it was ended."
    (end,) = (e.payload for e in family.effects(TellParent) if e.payload.state == "done")
    assert end.content == "Nobody answered."
