"""The pure decisions of the executor, over everything that may happen to a call."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from services.executor import work
from tests.support.examples import up_to
from tests.support.memories import KEY, call_of
from vigil.contracts import (
    RISKS,
    BoardChange,
    BoardChangePayload,
    BoardEntry,
    CallTool,
    CancelCall,
    CancelCallPayload,
    Job,
    State,
    Tool,
    Turn,
    encode,
)
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey
from vigil.worker.turns import may_ask

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEAMS = {"desk": ("ann", "ben"), "den": ("eve",)}

OWNERS = st.sampled_from(["ours", "alive", "gone", "nobody"])


@given(OWNERS, st.booleans(), st.booleans(), st.booleans())
def test_what_may_have_run_never_runs_again(
    owner: Any, is_unrun: bool, is_answered: bool, is_idempotent: bool
) -> None:
    """S-12: unless it may; and what was withdrawn, answered or is in other hands is left alone."""
    is_unrun = is_unrun and owner == "ours"
    next_ = work.next_of(
        owner=owner, is_unrun=is_unrun, is_answered=is_answered, is_idempotent=is_idempotent
    )
    if next_ == "run":
        assert is_unrun or is_idempotent
        assert owner in ("ours", "gone")
    if is_answered or owner == "nobody":
        assert next_ == "leave"
    if next_ == "leave":
        assert is_answered or owner == "nobody"


# ---------------------------------------------------------------- a simulation of the protocol


class Replica:
    """One that follows the protocol with the real decision, a step at a time."""

    def __init__(self, name: int) -> None:
        self.name = name
        self.stage = "idle"
        self.is_unrun = False
        self.has_lease = True


class World:
    """The log as far as one call goes, and the replicas."""

    def __init__(self, *, is_idempotent: bool) -> None:
        self.is_idempotent = is_idempotent
        self.claims: list[int | None] = []
        self.results: list[str] = []
        self.runs = 0
        self.names = 0
        self.replicas = [self.born(), self.born()]

    def born(self) -> Replica:
        self.names += 1
        return Replica(self.names)

    def step(self, which: int) -> None:
        """Let a replica do the next thing that it does about the call."""
        replica = self.replicas[which]
        match replica.stage:
            case "idle":
                self._claim(replica)
            case "to run":
                if replica.has_lease:
                    replica.is_unrun = False
                    self.runs += 1
                    replica.stage = "ran"
                else:
                    replica.stage = "idle"  # given back
            case "ran":
                self.results.append("ran")
                replica.stage = "idle"

    def _claim(self, replica: Replica) -> None:
        if not replica.has_lease:
            return
        if not self.claims:
            self.claims.append(replica.name)
            replica.is_unrun = True
            replica.stage = "to run"
            return
        owner = self._owner(replica)
        is_unrun = owner == "ours" and replica.is_unrun
        next_ = work.next_of(
            owner=owner,
            is_unrun=is_unrun,
            is_answered=bool(self.results),
            is_idempotent=self.is_idempotent,
        )
        if next_ == "answer":
            self.results.append("ambiguous")
        elif next_ == "run":
            if not is_unrun:
                self.claims.append(replica.name)
            replica.stage = "to run"

    def _owner(self, replica: Replica) -> work.Owner:
        by = self.claims[-1]
        if by is None:
            return "nobody"
        if by == replica.name:
            return "ours"
        alive = any(other.name == by and other.has_lease for other in self.replicas)
        return "alive" if alive else "gone"

    def kill(self, which: int) -> None:
        self.replicas[which] = self.born()

    def pause(self, which: int) -> None:
        """Its lease runs out, and it doesn't know."""
        self.replicas[which].has_lease = False

    def wake(self, which: int) -> None:
        """It looks at its own clock before it runs anything, and takes a lease anew."""
        replica = self.replicas[which]
        if replica.stage == "to run" and not replica.has_lease:
            replica.stage = "idle"
        replica.has_lease = True

    def withdraw(self, _: int) -> None:
        if not self.claims:
            self.claims.append(None)


ACTIONS = st.sampled_from(["step", "step", "step", "kill", "pause", "wake", "withdraw"])


@up_to(1000)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 1)), max_size=60), st.booleans())
def test_no_interleaving_runs_a_call_twice(
    actions: list[tuple[str, int]], is_idempotent: bool
) -> None:
    """S-12, X-5: two replicas killed and paused anywhere: at most one run, and an answer."""
    world = World(is_idempotent=is_idempotent)
    for action, which in actions:
        getattr(world, action)(which)
    if not is_idempotent:
        assert world.runs <= 1
    for which in (0, 1):
        world.wake(which)
    for _ in range(8):
        world.step(0)
        world.step(1)
    assert world.results or world.claims == [None]
    if not is_idempotent:
        assert world.runs <= 1
        assert world.results.count("ran") <= world.runs


# ---------------------------------------------------------------- the rest


EFFECTS = st.lists(
    st.one_of(
        st.integers(0, 3).map(lambda n: ("call", n)),
        st.integers(0, 3).map(lambda n: ("memory", n)),
        st.integers(0, 2).map(lambda n: ("board", n)),
        st.integers(0, 3).map(lambda n: ("cancel", n)),
    ),
    max_size=12,
)


def _effect(kind: str, number: int, ordinal: int) -> Any:
    if kind in ("call", "memory"):
        service: Any = "executor" if kind == "call" else "memory"
        return call_of("t", {"n": number}, ordinal, service=service)
    if kind == "cancel":
        payload = CancelCallPayload(call_id=f"c{number}", tool="t")
        return CancelCall(id=f"e{ordinal}", ordinal=ordinal, payload=payload)
    job = Job(id=f"j{number}", session_key=str(KEY), created_at=NOW, runs=ordinal)
    return BoardChange(id=f"e{ordinal}", ordinal=ordinal, payload=BoardChangePayload(entity=job))


@given(EFFECTS)
def test_a_turn_is_taken_apart_in_order(kinds: list[tuple[str, int]]) -> None:
    """S-5: everything of ours and nothing else; of an entity's changes the last one."""
    effects = tuple(_effect(kind, number, n) for n, (kind, number) in enumerate(kinds))
    turn = Turn(
        id="t", session_key=str(KEY), ordinal=1, event=None, outcome="answered", state=State(),
        created_at=NOW, effects=effects,
    )  # fmt: skip
    found = work.work_of(turn)
    assert all(e in effects for e in found)
    quick = work.quick_of(turn)
    assert [e.ordinal for e in quick] == sorted(e.ordinal for e in quick)
    calls = [e for e in effects if isinstance(e, CallTool) and e.payload.service == "executor"]
    assert work.calls_of(turn) == calls
    newest = {e.payload.entity.id: e for e in effects if isinstance(e, BoardChange)}
    assert [e for e in quick if isinstance(e, BoardChange)] == sorted(
        newest.values(), key=lambda e: int(e.ordinal)
    )
    assert [e for e in quick if isinstance(e, CancelCall)] == [
        e for e in effects if isinstance(e, CancelCall)
    ]
    if found:
        assert may_ask(KEY.turn, None, encode(turn), work.LETTER, work.TAGS)


@given(st.permutations(range(1, 8)))
def test_the_newest_turn_stands_on_the_board(order: list[int]) -> None:
    """RELIABILITY 0.5: in whatever order they come."""
    job = Job(id="j", session_key=str(KEY), created_at=NOW)
    stored: BoardEntry | None = None
    for seq in order:
        entry = BoardEntry(entity=job, turn_seq=seq, at=NOW)
        if work.is_newer(entry, stored):
            stored = entry
    assert stored is not None
    assert stored.turn_seq == max(order)
    assert not work.is_newer(stored, stored)


@given(st.sampled_from(RISKS), st.sampled_from(RISKS))
def test_a_tool_runs_only_as_what_it_was_let_through(decided: Any, now: Any) -> None:
    """X-2."""
    effect = call_of("t", {}, risk=decided)
    tool = Tool(name="t", description="", input_schema={}, risk=now)
    assert work.may_run(effect, tool) == (RISKS.index(now) <= RISKS.index(decided))
    riskier = msgspec.structs.replace(tool, risk="destructive")
    assert work.may_run(effect, riskier) == (decided == "destructive")


@given(
    st.sampled_from(("ann", "ben", "eve", "team")), st.sampled_from(("desk", "den", "vigil")),
    st.sampled_from(("ann", "ben", "eve", "team")), st.sampled_from(("desk", "den", "vigil")),
    st.sampled_from(("main", "_worker-1")),
)  # fmt: skip
@example("team", "vigil", "team", "desk", "main")
def test_a_home_is_ones_own_or_a_members(
    user: str, agent: str, other: str, others: str, thread: str
) -> None:
    """L-17: nothing is told to whom it isn't about."""
    is_own = (user, agent) == (other, others)
    is_members = user == "team" and other in TEAMS.get(agent, ())
    wanted = f"{other}:{others}:{thread}"
    try:
        home = work.home_of(SessionKey(user, agent, "_planner-1"), wanted, TEAMS)
    except InvalidInput:
        assert thread != "main" or not (is_own or is_members)
    else:
        assert str(home) == wanted
        assert thread == "main"
        assert is_own or is_members
